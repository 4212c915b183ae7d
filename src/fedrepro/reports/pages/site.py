"""The list of all pages."""

from collections.abc import Sequence
from pathlib import Path

from fedrepro.reports.model import STATUSES, Page
from fedrepro.reports.names import period
from fedrepro.reports.pages import parts
from fedrepro.reports.pages import sections as s

NOTE = (
    "One page for each paper and scale. Only at scale full, and there only where a page says so, may numbers be compared with "
    "the printed ones. Scale short has fewer rounds, demo has other data; each page says what was run."
)
NONE = "There is no page yet: no run has left any evidence below reports/."
SCALES = ["full", "short", "demo"]  # in this order on the list


def site(pages: Sequence[tuple[Path, Page]]) -> s.Document:
    """Each page is given with the path of its JSON."""
    ordered = sorted(pages, key=lambda pair: (pair[1].paper_name, SCALES.index(pair[1].scale), pair[1].own))
    columns = s.heads("paper", "scale", "tables run", "cells", "claims", "runs finished")
    listed = s.Grid("Papers and scales", columns, tuple(_row(path, page) for path, page in ordered))
    return s.Document("All pages", NOTE, (listed if pages else s.Paragraph(NONE),))


def _row(path: Path, page: Page) -> s.Row:
    about = page.about
    name = s.Text(page.paper_name, link=f"{path.with_suffix('.page').as_posix()}")
    cells = parts.counts({status: page.counts[status] for status in STATUSES})
    finished = period(about.first_finished_at, about.last_finished_at)
    tables = f"{about.tables_run} of {about.tables}"
    return (name, page.scale, tables, cells, parts.counts(page.verdicts), finished)
