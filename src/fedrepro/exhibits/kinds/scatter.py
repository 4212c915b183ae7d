"""Points: the metric against another one, or against a setting or an argument. A panel for each group of columns."""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.choices import require_known
from fedrepro.config.plan import Plan
from fedrepro.config.reading import Reading, make
from fedrepro.errors import UserError
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.values import CellNumbers, band, require_band, values
from fedrepro.exhibits.names import metric_label
from fedrepro.exhibits.receipt import Evidence
from fedrepro.exhibits.statistics import mean
from fedrepro.registry import named_arguments, unknown

EACH = ("mean", "seed")


@KINDS.register("scatter")
@dataclass(frozen=True)
class Scatter(Kind):
    """What a table reads of each cell (upwards) against `x`: a recorded metric, a setting (`local_epochs`) or an argument
    (`fedprox.mu`). A metric is read as the cell is, or by `read`.

    `each`: a point for each cell, mean over its seeds, or for each seed. `joined`: a line joins the points of a row, by `x`.
    `band`: of means, as bars to both sides; none, std or range. `log`: the horizontal axis is logarithmic.
    `minus`: a row whose number is taken away at each seed. Of rows made by `axes:`, the beginning of their keys, or "without
    +ima" for what this ending adds.
    """

    x: str
    read: str = ""
    each: str = "mean"
    joined: bool = False
    band: str = "none"
    log: bool = False
    minus: str = ""

    def __post_init__(self) -> None:
        require_band(self.band)
        require_known(f"each = {self.each!r}", "word", self.each, EACH)
        _ = self.read and make(self.read)

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """A point for each cell, or for each of its seeds."""
        found: list[Series] = []
        for one in values(plan, evidence, self.minus):
            xs = self._x(plan, one)
            if self.each == "seed":
                found += [Series.of(one.cell, [seed], y=(y,), x=(xs[seed],)) for seed, y in one.per_seed.items() if seed in xs]
            elif len(xs) == len(one.per_seed):
                numbers = list(one.per_seed.values())
                ends = band(self.band, numbers, mean(numbers))
                low, high = ((ends[0],), (ends[1],)) if ends else ((), ())
                x = mean(list(xs.values()))
                found.append(Series.of(one.cell, xs, y=(mean(numbers),), x=(x,), low=low, high=high))
        return Drawing(plan, tuple(found), self.x, "difference" if self.minus else "value")

    def _x(self, plan: Plan, one: CellNumbers) -> dict[int, float]:
        """Seed -> x, of the seeds that have one. UserError when it is neither a setting, an argument nor a metric."""
        fixed = one.run.config.get(self.x, named_arguments(one.run.method).get(self.x))
        if isinstance(fixed, int | float):
            return dict.fromkeys(one.per_seed, fixed)
        call = make(self.read) if self.read else one.cell.reading.call
        read = Reading(self.x, call, one.cell.metric.better)
        found = {}
        for seed in one.per_seed:
            curves = one.receipts[seed].curves
            if self.x not in curves:
                known = [*curves, *one.run.config, *named_arguments(one.run.method)]
                raise UserError(f"{plan.paper}/{plan.table}: kind: x: {unknown('metric or setting', self.x, sorted(known))}")
            value = read.value(curves)
            if value is not None:
                found[seed] = value
        return found

    def draw(self, figure: Drawing, path: Path) -> None:
        """A colour and a mark for each row."""
        rows, groups, looks = figure.rows, figure.groups, style.looks(figure.plan)
        title = style.title(figure.plan)
        with style.panelled(path, title, list(groups), [row.label for _, row in rows]) as panels:
            for axes, columns in zip(panels, groups.values(), strict=True):
                shown = figure.of(columns)
                for place, row in rows:
                    points = sorted((one for one in shown if one.row == row.key), key=lambda one: one.x)
                    (colour, dash), marker = looks[row.key], style.MARKERS[place % len(style.MARKERS)]
                    for one in points:
                        if one.low != one.high:
                            axes.plot([one.x[0], one.x[0]], [one.low[0], one.high[0]], color=colour, linewidth=1)
                    line = dash if self.joined else "none"
                    at = [one.x[0] for one in points], [one.y[0] for one in points]
                    axes.plot(*at, linestyle=line, linewidth=1.2, marker=marker, markersize=5, color=colour, label=row.label)
                axes.set_xlabel(metric_label(self.x))
                axes.set_ylabel(style.quantities([figure.metrics[one.metric] for one in shown], figure.label(self.minus)))
                axes.grid(alpha=0.25, linewidth=0.5)
                if self.log:
                    axes.set_xscale("log")
