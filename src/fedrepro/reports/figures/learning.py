"""Learning curves of a table: a picture for each column, by the kind `curves`."""

from dataclasses import replace
from pathlib import Path

from fedrepro.files import write_atomic
from fedrepro.pictures import LINE
from fedrepro.reports.figures import style
from fedrepro.reports.figures.curves import Curves
from fedrepro.reports.model import Column, ColumnCurves, Evidence, Plan, Series

KIND = Curves()


def draw_all(plan: Plan, evidence: Evidence, folder: Path) -> tuple[ColumnCurves, ...]:
    """Draws `<folder>/<table>/<column>.svg` for every column that has a curve, and removes stale ones.

    Columns that read one metric of the same runs after different rounds share the picture of the first.
    """
    folder = Path(folder) / plan.table
    drawn: dict[str, Path] = {}
    first: dict[tuple, Column] = {}
    for column in plan.columns:
        runs = tuple(cell.run_id for cell in plan.cells if cell.column == column.key)
        first.setdefault((runs, column.metric.name), column)
    for column in first.values():
        lines = curves(plan, evidence, column)
        if lines:
            write = lambda temporary, c=column, ls=lines: _draw(plan, c, ls, temporary)  # noqa: E731
            drawn[column.key] = write_atomic(folder / style.file_name(column.key), write)
    for stale in set(folder.glob("*.svg")) - set(drawn.values()):
        stale.unlink()
    return tuple(ColumnCurves(key, path.as_posix()) for key, path in drawn.items())


def curves(plan: Plan, evidence: Evidence, column: Column) -> list[Series]:
    """One for each row that has any in this column, of the column's metric."""
    here = [cell for cell in plan.planned if cell.column == column.key]
    recorded = column.metric.model_copy(update={"diagnostic": None})
    other = lambda cell: replace(cell, metric=recorded)  # noqa: E731
    cells = [cell if cell.metric.name == column.metric.name else other(cell) for cell in here]
    return list(KIND.lines(cells, evidence))


def _draw(plan: Plan, column: Column, lines: list[Series], path: Path) -> None:
    title = " · ".join(part for part in (_data(plan, column) or column.group, column.label) if part)
    title = style.scaled_title(title, plan.scale)
    rows = {row.key: (place, row.label) for place, row in enumerate(plan.rows)}
    labels = [rows[line.row][1] for line in lines]
    with style.drawing(path, 2.9 + LINE * title.count("\n") + style.below(labels)) as (figure, axes):
        KIND.plot(axes, lines, rows, style.quantities([column.metric]))
        axes.set_title(title, fontsize=10, loc="left")
        figure.legend(loc="outside lower left", ncols=style.legend_columns(labels), frameon=False)


def _data(plan: Plan, column: Column) -> str | None:
    """`digits in the place of FashionMNIST` for a column that is called after data which were not used; None for others."""
    cells = [cell for cell in plan.planned if cell.column == column.key]
    used = dict.fromkeys(plan.run(cell).config["dataset"] for cell in cells)
    called_after = lambda names: all(column.key.startswith(f"{name}-") for name in names)  # noqa: E731
    if called_after(used) or not called_after(cell.instead_of.get("dataset") for cell in cells):
        return None
    return f"{', '.join(used)} in the place of {column.group}"
