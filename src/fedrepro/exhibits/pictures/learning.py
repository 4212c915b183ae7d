"""Learning curves of a table: a picture for each column, by the kind `curves`."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fedrepro.config.plan import Column, Place, Plan
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.curves import Curves
from fedrepro.exhibits.kinds.kind import Series
from fedrepro.exhibits.names import metric_label
from fedrepro.exhibits.receipt import Evidence
from fedrepro.pictures import LINE

KIND = Curves()


def columns(plan: Plan) -> list[tuple[Column, str]]:
    """Lists the columns that get a picture, each with its title. Columns that read one metric of the same runs at different
    rounds share the picture of the first, under the name of their group or of the metric."""
    columns_by_curve: dict[tuple, list[Column]] = {}
    for column in plan.columns:
        runs = tuple(place.run_id for place in plan.cells if place.column == column.key)
        columns_by_curve.setdefault((runs, column.metric.name), []).append(column)
    shared = ((first, first.group or metric_label(first.metric.name), others) for first, *others in columns_by_curve.values())
    return [(first, name if others else first.title) for first, name, others in shared]


def curves(plan: Plan, evidence: Evidence, column: Column) -> list[Series]:
    """Makes a curve of the column's metric for each row with evidence. A row that shows something else of a run is left out
    where another row has that run's curve: the two lines would be one."""
    column_places = [place for place in plan.planned if place.column == column.key]
    place_by_run = {place.run_id: place for place in column_places if place.metric.name == column.metric.name}
    recorded = column.metric.model_copy(update={"diagnostic": None})

    def places() -> Iterator[Place]:
        for place in column_places:
            if place.metric.name == column.metric.name:
                yield place
            elif place_by_run.setdefault(place.run_id, place) is place:
                yield replace(place, metric=recorded)

    return list(KIND.lines([*places()], evidence))


def draw(plan: Plan, column: Column, title: str, lines: list[Series], path: Path) -> None:
    """Draws the curves of one column."""
    title = style.title(plan, title)
    labels = [*dict.fromkeys(plan.row(line.row).label for line in lines)]
    with style.drawing(path, 2.9 + LINE * title.count("\n") + style.below(labels)) as (figure, (axes,)):
        derived = any(place.reading.derived for place in plan.cells if place.column == column.key)
        # The unit of a derived reading, rounds to a target, is not that of the curve.
        KIND.plot(axes, lines, plan, metric_label(column.metric.name) if derived else style.quantities([column.metric]))
        axes.set_title(title, fontsize=10, loc="left")
        figure.legend(loc="outside lower left", ncols=style.legend_columns(labels), frameon=False)
