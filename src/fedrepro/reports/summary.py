"""What DVC compares: the mean of every cell, and of every method over a table, as nested numbers."""

from collections.abc import Collection, Iterable
from pathlib import Path

from fedrepro.files import write_json
from fedrepro.reports.analysis.paired import mean
from fedrepro.reports.model import Cell, Table


def write_summary(tables: Iterable[Table], data_sets: Collection[str], path: Path = Path("results/summary.json")) -> Path:
    """Writes `{scale: {paper: {table: {column: {row: mean}}}}}` of the given reports and of nothing else; beside the columns
    `over_seeds`, so that a diff shows where the seeds differ.

    A column called after one of `data_sets`, as `fashion_mnist-mlp-100` is, is called after the one that was used here. Cells
    without a mean (not run, diverged) are left out. What the file held before is replaced, so nothing stale survives.
    """
    summary: dict = {}
    for table in tables:
        columns = summary.setdefault(table.scale, {}).setdefault(table.paper, {}).setdefault(table.table, {})
        columns["over_seeds"] = _seeds(table)
        for cell in table.cells:
            if cell.mean is not None:
                columns.setdefault(_column(cell, data_sets), {})[cell.method] = round(cell.mean, 4)
    return write_json(Path(path), summary)


def _column(cell: Cell, data_sets: Collection[str]) -> str:
    own, used = (
        max((name for name in data_sets if text.startswith(f"{name}-")), key=len, default="")
        for text in (cell.setting, cell.run_id or "")
    )
    return used + cell.setting.removeprefix(own) if own and used else cell.setting


def write_means(tables: Iterable[Table], path: Path = Path("results/means.json")) -> Path:
    """Writes `{row: mean over the table's columns}`: few enough numbers, with names short enough, for `dvc exp show`.

    Beside the rows stands `mean_of`: the table, called as its report, the scale and the seeds, so that a diff shows where they
    differ. Several tables are `{table: {row: mean}}`. A row has no mean where one of its runs is missing or has diverged.
    Columns of several metrics have a mean each, `{row: {metric: mean}}`.
    """
    found: dict = {}
    for table in tables:
        name = table.table if table.paper == "fedlaw" else f"{table.paper}/{table.table}"
        found[name] = {"mean_of": f"{name} {table.scale}, seeds {_seeds(table)}"}
        metrics = list(dict.fromkeys(cell.metric for cell in table.cells))
        for row in table.rows:
            cells = [cell for cell in table.cells if cell.method == row.key and cell.run_id]
            means = {metric: _mean([cell.mean for cell in cells if cell.metric == metric]) for metric in metrics}
            known = {metric: value for metric, value in means.items() if value is not None}
            if known:
                found[name][row.key] = known[metrics[0]] if len(metrics) == 1 else known
    return write_json(Path(path), next(iter(found.values())) if len(found) == 1 else found)


def _seeds(table: Table) -> str:
    return ", ".join(map(str, table.seeds))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(mean(known), 4) if values and len(known) == len(values) else None
