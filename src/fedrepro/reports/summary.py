"""The means of all tables as flat nested numbers, for `dvc metrics show` and `dvc metrics diff`."""

from collections.abc import Iterable
from pathlib import Path

from fedrepro.config import scales
from fedrepro.files import write_json
from fedrepro.reports.words import Document


def write_summary(documents: Iterable[Document], path: Path = Path("results/summary.json")) -> Path:
    """Writes `{scale: {paper: {table: {column: {row: mean}}}}}` of the given report documents and of nothing else.

    Cells without a mean (not run, diverged) are left out. What the file held before is replaced, so nothing stale survives.
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
                table.setdefault(cell["setting"], {})[cell["method"]] = round(cell["mean"], 4)
    return write_json(Path(path), summary)
