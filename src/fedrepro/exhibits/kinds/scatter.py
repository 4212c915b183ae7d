"""Points: the metric against another one, or against a setting or an argument. A panel for each group of columns."""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.config.plan import Place, Plan
from fedrepro.config.reading import Reading
from fedrepro.errors import UserError
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.values import values
from fedrepro.exhibits.names import metric_label
from fedrepro.exhibits.receipt import Evidence, Receipt
from fedrepro.exhibits.statistics import mean
from fedrepro.registry import named_arguments, unknown


@KINDS.register("scatter")
@dataclass(frozen=True)
class Scatter(Kind):
    """What a table reads of each cell (upwards) against `x`: a recorded metric, a setting (`local_epochs`) or an argument
    (`fedprox.mu`). A metric is read as the cell is. A point for each cell, mean over its seeds.

    `joined`: a line joins the points of a row, by `x`.
    `minus`: a row whose number is taken away at each seed. Of rows made by `axes:`, the beginning of their keys, or "without
    +ima" for what this ending adds.
    """

    x: str
    joined: bool = False
    minus: str = ""

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Makes a point for each cell."""
        series: list[Series] = []
        for cell, per_seed in values(plan, evidence, self.minus):
            receipts = evidence[cell.run_id or ""]
            xs = self._x(plan, cell, {seed: receipts[seed] for seed in per_seed})
            if len(xs) == len(per_seed):
                series.append(Series.of(cell, xs, y=(mean(per_seed.values()),), x=(mean(xs.values()),)))
        return Drawing(plan, tuple(series), self.x, "difference" if self.minus else "value")

    def _x(self, plan: Plan, cell: Place, receipts: dict[int, Receipt]) -> dict[int, float]:
        """Returns seed -> x, for the seeds that have one. UserError when it is neither a setting, an argument nor a metric."""
        settings = named_arguments(plan.run(cell).method) | plan.run(cell).config
        fixed = settings.get(self.x)
        if isinstance(fixed, int | float):
            return dict.fromkeys(receipts, fixed)
        read, xs = Reading(self.x, cell.reading.call, cell.metric.better), {}
        for seed, receipt in receipts.items():
            if self.x not in receipt.curves:
                names = sorted([*receipt.curves, *settings])
                raise UserError(f"{plan.paper}/{plan.table}: kind: x: {unknown('metric or setting', self.x, names)}")
            value = read.value(receipt.curves)
            if value is not None:
                xs[seed] = value
        return xs

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws points with a colour and a mark for each row."""
        rows, groups, looks = figure.rows, figure.groups, style.looks(figure.plan)
        title = style.title(figure.plan)
        with style.panelled(path, title, list(groups), [row.label for row in rows]) as panels:
            for axes, columns in zip(panels, groups.values(), strict=True):
                panel_series = figure.of(columns)
                for row in rows:
                    points = sorted((point for point in panel_series if point.row == row.key), key=lambda point: point.x)
                    (colour, dash), marker = looks[row.key], style.MARKERS[figure.plan.rows.index(row) % len(style.MARKERS)]
                    line = dash if self.joined else "none"
                    coordinates = [point.x[0] for point in points], [point.y[0] for point in points]
                    axes.plot(
                        *coordinates, linestyle=line, linewidth=1.2, marker=marker, markersize=5, color=colour, label=row.label
                    )
                axes.set_xlabel(metric_label(self.x))
                metrics = [figure.metrics[point.metric] for point in panel_series]
                axes.set_ylabel(style.quantities(metrics, figure.label(self.minus)))
                axes.grid(alpha=0.25, linewidth=0.5)
