"""A heat map: a panel for each group of columns, rows downwards, columns across."""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.config.plan import Plan
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.values import values
from fedrepro.exhibits.receipt import Evidence
from fedrepro.exhibits.statistics import mean
from fedrepro.pictures import INK, LINE, wrapped
from fedrepro.units import decimal

DARK = 0.6  # share of the colours above which a number is written in white


@KINDS.register("heat_map")
@dataclass(frozen=True)
class HeatMap(Kind):
    """What a table reads of each cell, mean over seeds, as a colour. All panels share their colours.

    `numbers`: the value stands in its field, too; else a bar beside the panels says what the colours mean.
    `minus`: a row whose number is taken away at each seed. Of rows made by `axes:`, the beginning of their keys, or "without
    +ima" for what this ending adds.
    """

    numbers: bool = True
    minus: str = ""

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Makes one number for each cell."""
        series = tuple(
            Series.of(cell, per_seed, y=(mean(per_seed.values()),)) for cell, per_seed in values(plan, evidence, self.minus)
        )
        return Drawing(plan, series, y="difference" if self.minus else "value")

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws the fields. A cell without a number stays empty."""
        by_place = {(field.row, field.column): field for field in figure.series}
        rows, groups, ends = figure.rows, figure.groups, self._ends(figure)
        title, colours = style.title(figure.plan), "RdBu" if self.minus else "Blues"
        with style.panelled(path, title, list(groups), [], 1.0 + 1.8 * LINE * len(rows)) as panels:
            mesh = None
            for axes, columns in zip(panels, groups.values(), strict=True):
                fields = [[by_place.get((row.key, column.key)) for column in columns] for row in rows]
                shades = [[field.y[0] if field else float("nan") for field in line] for line in fields]
                mesh = axes.pcolormesh(shades, cmap=colours, vmin=ends[0], vmax=ends[1], edgecolors="white", linewidth=1)
                for y, line in enumerate(fields if self.numbers else []):
                    for x, field in enumerate(line):
                        text = decimal(field.y[0], figure.metrics[field.metric].digits) if field else "–"
                        ink = INK if field is None else self._ink(field.y[0], ends)
                        axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color=ink, fontsize=8)
                names = [wrapped(column.label, max(8, 48 // len(columns))) for column in columns]
                axes.set_xticks([x + 0.5 for x in range(len(columns))], names)
                axes.set_yticks([y + 0.5 for y in range(len(rows))], [wrapped(row.label, 16) for row in rows])
                axes.tick_params(length=0)
                axes.invert_yaxis()
            if mesh is not None:
                label = style.quantities(list(figure.metrics.values()), figure.label(self.minus))
                if self.numbers:
                    panels[-1].set_xlabel(label, loc="right")
                else:
                    panels[0].figure.colorbar(mesh, ax=panels, label=label)

    def _ends(self, figure: Drawing) -> tuple[float, float]:
        """Returns the ends of the colours. They lie around zero where a row's number is taken away."""
        numbers = [field.y[0] for field in figure.series] or [0.0]
        reach = max(map(abs, numbers)) or 1.0
        return (
            (-reach, reach) if self.minus else (min(numbers), max(numbers) if max(numbers) > min(numbers) else min(numbers) + 1)
        )

    def _ink(self, value: float, ends: tuple[float, float]) -> str:
        share = (value - ends[0]) / (ends[1] - ends[0])
        return "white" if (2 * abs(share - 0.5) if self.minus else share) > DARK else "black"
