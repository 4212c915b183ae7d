"""What DVC compares: the mean of every cell, and of every method over a table, as nested numbers."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from fedrepro.config.reading import Reading, make
from fedrepro.errors import UserError
from fedrepro.exhibits.records import SCHEMA, Record
from fedrepro.exhibits.statistics import mean_of_all
from fedrepro.files import again, read_json, write_json

Table = dict[str, Any]  # the JSON of a table, see `fedrepro.exhibits.records`


def load_table(path: Path) -> Table:
    """Reads the JSON of a table. UserError when the file is missing or of another version."""
    content = read_json(path)
    header = content.get("header") if isinstance(content, dict) else None
    if not isinstance(header, dict) or header.get("schema") != SCHEMA or not ("table" in header and "cells" in content):
        raise UserError(f"{path}: not the report of a table of schema {SCHEMA}; {again(path)}")
    return content


def write_summary(tables: Iterable[Table], data_sets: Collection[str], path: Path = Path("results/summary.json")) -> Path:
    """Writes `{scale: {paper: {table: {column: {row: mean}}}}}` of the given reports and of nothing else; beside the columns
    `over_seeds`, so that a diff shows where the seeds differ.

    A column named after one of `data_sets`, such as `fashion_mnist-mlp-100`, gets the name of the data set that its run used.
    Cells without a mean (not run, diverged) are left out. What the file held before is replaced, so nothing stale survives.
    """
    summary: dict = {}
    for table in tables:
        header = table["header"]
        columns = summary.setdefault(header["scale"], {}).setdefault(header["paper"], {}).setdefault(header["table"], {})
        columns["over_seeds"] = _seeds(header)
        for cell in table["cells"]:
            if cell["mean"] is not None:
                columns.setdefault(_column(cell, data_sets), {})[cell["row"]] = round(cell["mean"], 4)
    return write_json(Path(path), summary)


def _column(cell: Record, data_sets: Collection[str]) -> str:
    column_set, run_set = (
        max((name for name in data_sets if text.startswith(f"{name}-")), key=len, default="")
        for text in (cell["column"], cell["run_id"] or "")
    )
    return run_set + cell["column"].removeprefix(column_set) if column_set and run_set else cell["column"]


def write_means(tables: Iterable[Table], path: Path = Path("results/means.json")) -> Path:
    """Writes `{row: mean over the table's columns}`: few enough numbers, with names short enough, for `dvc exp show`.

    Beside the rows stands `mean_of`: the table, called as its report, the scale and the seeds, so that a diff shows where they
    differ. Further tables follow under their names, `{table: {row: mean}}`, so that another table renames no key. A row has no
    mean where one of its runs is missing or has diverged. Columns of several metrics, or of a metric and of rounds to a target,
    have a mean each, `{row: {metric: mean}}`.
    """
    means: dict = {}
    for table in tables:
        header, cells = table["header"], table["cells"]
        name = header["table"] if header["paper"] == "fedlaw" else f"{header['paper']}/{header['table']}"
        means[name] = {"mean_of": f"{name} {header['scale']}, seeds {_seeds(header)}"}
        metrics = list(dict.fromkeys(map(_quantity, cells)))
        for row in dict.fromkeys(cell["row"] for cell in cells):
            row_cells = [cell for cell in cells if cell["row"] == row and cell["run_id"]]
            by_metric = {
                metric: mean_of_all(cell["mean"] for cell in row_cells if _quantity(cell) == metric) for metric in metrics
            }
            present = {metric: round(value, 4) for metric, value in by_metric.items() if value is not None}
            if present:
                means[name][row] = present[metrics[0]] if len(metrics) == 1 else present
    first, *_ = [*means.values(), {}]
    return write_json(Path(path), first | dict([*means.items()][1:]))


def _quantity(cell: Record) -> str:
    """What the number of a cell measures, see `Reading.quantity`."""
    return Reading(cell["metric"], make(cell["read"])).quantity if cell["read"] else cell["metric"]


def _seeds(header: Record) -> str:
    return ", ".join(map(str, header["seeds"]))
