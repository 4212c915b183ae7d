"""What DVC compares: the mean of every cell, and of every method over a table, as nested numbers."""

import math
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from fedrepro.config import scales
from fedrepro.files import write_json
from fedrepro.reports.words import Document


def write_summary(documents: Iterable[Document], data_sets: Collection[str], path: Path = Path("results/summary.json")) -> Path:
    """Writes `{scale: {paper: {table: {column: {row: mean}}}}}` of the given report documents and of nothing else.

    A column called after one of `data_sets`, as `fashion_mnist-mlp-100` is, is called after the one that was used here. Cells
    without a mean (not run, diverged) are left out. What the file held before is replaced, so nothing stale survives.
    """
    summary: dict = {}
    for document in documents:
        table = (
            summary.setdefault(scales.plain(document["scale"]), {})
            .setdefault(document["paper"], {})
            .setdefault(document["table"], {})
        )
        for cell in document["cells"]:
            if cell["mean"] is not None:
                table.setdefault(_column(cell, data_sets), {})[cell["method"]] = round(cell["mean"], 4)
    return write_json(Path(path), summary)


def _column(cell: dict[str, Any], data_sets: Collection[str]) -> str:
    own, used = (
        max((name for name in data_sets if text.startswith(f"{name}-")), key=len, default="")
        for text in (cell["setting"], cell["run_id"])
    )
    return used + cell["setting"].removeprefix(own) if own and used else cell["setting"]


def write_means(documents: Iterable[Document], path: Path = Path("results/means.json")) -> Path:
    """Writes `{table: {row: mean over the table's columns}}`: few enough numbers to stand side by side in `dvc exp show`.

    A table is called as its report, `table3` or `fedgh/table2`. A row has no mean where one of its runs is missing or has
    diverged. Columns of several metrics have a mean each, `{row: {metric: mean}}`.
    """
    found: dict = {}
    for document in documents:
        name = document["table"] if document["paper"] == "fedlaw" else f"{document['paper']}/{document['table']}"
        metrics = list(dict.fromkeys(cell["metric"] for cell in document["cells"]))
        for row in (row["key"] for row in document["rows"]):
            cells = [cell for cell in document["cells"] if cell["method"] == row and cell["run_id"]]
            means = {metric: _mean([cell["mean"] for cell in cells if cell["metric"] == metric]) for metric in metrics}
            known = {metric: value for metric, value in means.items() if value is not None}
            if known:
                found.setdefault(name, {})[row] = known[metrics[0]] if len(metrics) == 1 else known
    return write_json(Path(path), found)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(math.fsum(known) / len(known), 4) if values and len(known) == len(values) else None
