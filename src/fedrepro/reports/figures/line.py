"""Curves over x that a diagnostic measures in one round: a panel for each column, a line for each row, mean over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fedrepro.errors import UserError
from fedrepro.pictures import INK, wrapped
from fedrepro.registry import parse
from fedrepro.reports.analysis.paired import mean
from fedrepro.reports.figures import style
from fedrepro.reports.figures.kinds import KINDS, Drawn
from fedrepro.reports.figures.places import measured
from fedrepro.reports.figures.values import band, require_band
from fedrepro.reports.model import Evidence, Figure, Plan, Series


@KINDS.register("line")
@dataclass(frozen=True)
class Line:
    """In the round that a cell is read at, or the last kept one before it. Places x without a value at some seed are left out.

    `band`: around the mean over seeds, range, std or none. `lowest`: the lowest point of each line is marked. `log`: the
    vertical axis is logarithmic.
    """

    band: str = "range"
    lowest: bool = True
    log: bool = False

    name: ClassVar[str]
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_band(self.band)

    def check(self, rows: Sequence[str]) -> None:
        """All rows are fine."""

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawn:
        """A line for each cell; `x` is called as the diagnostic has it. UserError for a metric that is no curve over x."""
        series, names = [], {}
        for cell, of in measured(plan, evidence, self.name):
            lines = [found.line(cell.metric.name, number) for found, number in of.values()]
            xs = sorted(set.intersection(*(set(one) for one in lines)))
            if not any(lines):
                raise UserError(f"{plan.paper}/{plan.table}: kind: line draws a metric over x, {cell.metric.name!r} is none")
            values = [[one[x] for one in lines] for x in xs]
            ends = [end for each in values if (end := band(self.band, each, mean(each)))]
            low, high = (tuple(side) for side in zip(*ends, strict=True)) if ends else ((), ())
            place = (cell.row, cell.column, cell.metric.name, cell.run_id or "", tuple(of))
            series.append(Series(*place, y=tuple(map(mean, values)), x=tuple(xs), low=low, high=high))
            names[_x(cell.diagnostic or "")] = None
        return Drawn(tuple(series), ", ".join(names) or "x")

    def draw(self, figure: Figure, path: Path) -> None:
        """A colour and a dash for each row; a point where a line is lowest."""
        places = {row.key: (place, row.label) for place, row in enumerate(figure.rows)}
        columns = [one for one in figure.columns if any(line.column == one.key for line in figure.series)]
        labels = [row.label for row in figure.rows if any(line.row == row.key for line in figure.series)]
        title = style.scaled_title(figure.title, figure.scale)
        with style.panelled(path, title, [one.title for one in columns], labels) as panels:
            for axes, column in zip(panels, columns, strict=True):
                lines = [line for line in figure.series if line.column == column.key]
                for line in lines:
                    (place, name), colour = places[line.row], style.colour(places[line.row][0])
                    if line.low:
                        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.13, linewidth=0)
                    axes.plot(line.x, line.y, color=colour, linestyle=style.dash(place), linewidth=1.5, label=name)
                    if self.lowest and line.y:
                        y, x = min(zip(line.y, line.x, strict=True))
                        axes.plot([x], [y], marker="v", markersize=6, color=colour, markeredgecolor=INK, linestyle="none")
                axes.set_xlabel(wrapped(figure.x, 40))
                axes.set_ylabel(style.quantities([figure.metric(line.metric) for line in lines]))
                axes.grid(alpha=0.25, linewidth=0.5)
                axes.margins(x=0.01)
                if self.log:
                    axes.set_yscale("log")


def _x(call: str) -> str:
    import fedrepro.diagnostics  # noqa: F401  (registers them)
    from fedrepro.diagnostics.diagnostic import DIAGNOSTICS

    return DIAGNOSTICS.get(parse(call)[0].name).x  # type: ignore[attr-defined]
