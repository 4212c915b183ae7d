"""Points: the metric against another one, or against a setting or an argument. A panel for each group of columns."""

from dataclasses import dataclass
from pathlib import Path

from fedrepro.config.plan import Plan
from fedrepro.config.reading import Reading
from fedrepro.errors import UserError
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.values import CellNumbers, values
from fedrepro.exhibits.names import metric_label
from fedrepro.exhibits.receipt import Evidence
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
        for cell_numbers in values(plan, evidence, self.minus):
            xs = self._x(plan, cell_numbers)
            if len(xs) == len(cell_numbers.per_seed):
                x, y = mean(list(xs.values())), mean(list(cell_numbers.per_seed.values()))
                series.append(Series.of(cell_numbers.cell, xs, y=(y,), x=(x,)))
        return Drawing(plan, tuple(series), self.x, "difference" if self.minus else "value")

    def _x(self, plan: Plan, cell_numbers: CellNumbers) -> dict[int, float]:
        """Returns seed -> x, for the seeds that have one. UserError when it is neither a setting, an argument nor a metric."""
        fixed = cell_numbers.run.config.get(self.x, named_arguments(cell_numbers.run.method).get(self.x))
        if isinstance(fixed, int | float):
            return dict.fromkeys(cell_numbers.per_seed, fixed)
        read = Reading(self.x, cell_numbers.cell.reading.call, cell_numbers.cell.metric.better)
        xs = {}
        for seed in cell_numbers.per_seed:
            curves = cell_numbers.receipts[seed].curves
            if self.x not in curves:
                names = [*curves, *cell_numbers.run.config, *named_arguments(cell_numbers.run.method)]
                raise UserError(f"{plan.paper}/{plan.table}: kind: x: {unknown('metric or setting', self.x, sorted(names))}")
            value = read.value(curves)
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
                axes.set_ylabel(
                    style.quantities([figure.metrics[point.metric] for point in panel_series], figure.label(self.minus))
                )
                axes.grid(alpha=0.25, linewidth=0.5)
