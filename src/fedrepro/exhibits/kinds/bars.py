"""Bars: a panel for each group of columns, in it the columns beside each other, and a bar for each row."""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.config.plan import Plan
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.values import band, require_band, values
from fedrepro.exhibits.receipt import Evidence
from fedrepro.exhibits.statistics import mean
from fedrepro.pictures import INK, wrapped


@KINDS.register("bars")
@dataclass(frozen=True)
class Bars(Kind):
    """What a table reads of each cell, mean over seeds.

    `band`: one standard deviation to both sides (std), from the lowest to the highest seed (range), or none.
    `minus`: a row whose number is taken away at each seed. Of rows made by `axes:`, the beginning of their keys, or "without
    +ima" for what this ending adds.
    """

    band: str = "std"
    minus: str = ""

    def __post_init__(self) -> None:
        require_band(self.band)

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Makes one number for each cell, with the band around it."""
        series = []
        for cell, per_seed in values(plan, evidence, self.minus):
            numbers = list(per_seed.values())
            low, high = band(self.band, [numbers], [mean(numbers)])
            series.append(Series.of(cell, per_seed, y=(mean(numbers),), low=low, high=high))
        return Drawing(plan, tuple(series), y="difference" if self.minus else "value")

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws the bars, which start at zero."""
        by_place = {(bar.row, bar.column): bar for bar in figure.series}
        rows, groups, looks = figure.rows, figure.groups, style.looks(figure.plan)
        width = 0.8 / max(1, len(rows))
        title = style.title(figure.plan)
        with style.panelled(path, title, list(groups), [row.label for row in rows]) as panels:
            for axes, columns in zip(panels, groups.values(), strict=True):
                for number, row in enumerate(rows):
                    bars = [(x, by_place[row.key, c.key]) for x, c in enumerate(columns) if (row.key, c.key) in by_place]
                    xs = [x - 0.4 + width * (number + 0.5) for x, _ in bars]
                    axes.bar(xs, [bar.y[0] for _, bar in bars], 0.92 * width, color=looks[row.key].colour, label=row.label)
                    for x, (_, bar) in zip(xs, bars, strict=True):
                        if bar.low != bar.high:
                            axes.plot([x, x], [bar.low[0], bar.high[0]], color=INK, linewidth=1)
                panel_bars = figure.of(columns)
                axes.set_ylabel(style.quantities([figure.metrics[bar.metric] for bar in panel_bars], figure.label(self.minus)))
                axes.set_xticks(range(len(columns)), [wrapped(column.label, max(8, 56 // len(columns))) for column in columns])
                axes.set_xlim(-0.5, len(columns) - 0.5)
                axes.axhline(0, color=INK, linewidth=0.8)
                axes.grid(axis="y", alpha=0.25, linewidth=0.5)
                axes.set_axisbelow(True)
