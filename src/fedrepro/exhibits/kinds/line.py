"""Curves over x that a diagnostic measures in one round: a panel for each column, a line for each row, mean over seeds."""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.config.plan import Plan
from fedrepro.errors import UserError
from fedrepro.exhibits.kinds import panels, style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.measured import measurements_of
from fedrepro.exhibits.kinds.values import band, require_band
from fedrepro.exhibits.receipt import Evidence
from fedrepro.exhibits.statistics import mean
from fedrepro.pictures import INK, wrapped
from fedrepro.registry import parse


@KINDS.register("line")
@dataclass(frozen=True)
class LineKind(Kind):
    """In the round that a cell is read at, or the last kept one before it. Places x without a value at some seed are left out.

    `band`: around the mean over seeds, range, std or none. `lowest`: the lowest point of each line is marked.
    """

    band: str = "range"
    lowest: bool = True

    def __post_init__(self) -> None:
        require_band(self.band)

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Makes a line for each cell; `x` is called as the diagnostic has it. UserError for a metric that is no curve over
        x."""
        series, names = [], {}
        for cell, by_seed in measurements_of(plan, evidence, self.name):
            if not any(v.on_line for measured, number in by_seed.values() for v in measured.at(cell.metric.name, number)):
                raise UserError(f"{plan.paper}/{plan.table}: kind: line draws a metric over x, {cell.metric.name!r} is none")
            curves = [measured.line(cell.metric.name, number) for measured, number in by_seed.values()]
            xs = sorted(set.intersection(*(set(curve) for curve in curves)))
            if not xs:  # nothing finite at some seed
                continue
            values = [[curve[x] for curve in curves] for x in xs]
            means = tuple(map(mean, values))
            low, high = band(self.band, values, means)
            series.append(Series.of(cell, by_seed, y=means, x=tuple(xs), low=low, high=high))
            names[x_of(cell.diagnostic or "")] = None
        return Drawing(plan, tuple(series), ", ".join(names) or "x")

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws lines with a colour and a dash for each row, and a point where a line is lowest."""
        looks = style.looks(figure.plan)
        with panels.by_column(figure, path) as columns:
            for axes, lines in columns:
                label = style.quantities([figure.metrics[line.metric] for line in lines])
                panels.plot(axes, lines, figure.plan, wrapped(figure.x, 28), label)
                for line in lines:
                    if self.lowest and line.y:
                        (y, x), colour = min(zip(line.y, line.x, strict=True)), looks[line.row].colour
                        axes.plot([x], [y], marker="v", markersize=6, color=colour, markeredgecolor=INK, linestyle="none")


def x_of(call: str) -> str:
    """Says what the x of a diagnostic's curves counts."""
    from fedrepro.diagnostics.diagnostic import DIAGNOSTICS

    return DIAGNOSTICS.get(parse(call)[0].name).x  # type: ignore[attr-defined]
