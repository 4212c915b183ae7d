"""Whole pages: of a table, of a paper, what is looked up of a paper, and the list of all pages."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from fedrepro.choices import PUBLISHED
from fedrepro.config.places import SCALES
from fedrepro.config.plan import Plan
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.names import period
from fedrepro.exhibits.paper import PageHeader, PaperPage
from fedrepro.exhibits.sections import blocks_of, words
from fedrepro.exhibits.verdict import STATUSES
from fedrepro.exhibits.write import blocks as b

ALL_PAGES = (
    "One page for each paper and scale. Only at scale full, and there only where a page says so, may numbers be compared with "
    "the printed ones. Scale short has fewer rounds, demo has other data; each page says what was run."
)
NONE = "There is no page yet: no run has left any evidence below reports/."
Placed = tuple[Path, PageHeader]  # a page with the path of its JSON


def table_page(table: Exhibit) -> b.Document:
    """Makes the page of a table: what it is, the numbers, what they show. All other sections fold."""
    plan = table.plan
    title = f"{plan.paper_name}, {plan.source}: {plan.title} [{plan.scale} scale]"
    return b.Document(title, (*_paper(plan), f". {plan.source}", *_up(plan, True)), blocks_of("table", table))


def paper_page(paper: PaperPage) -> b.Document:
    """Makes the page of a paper: the answer on one screen. All other sections fold."""
    title = f"{paper.plan.paper_name} [{paper.plan.scale} scale]"
    return b.Document(title, (*_paper(paper.plan), *_up(paper.plan)), blocks_of("paper", paper))


def details_page(paper: PaperPage) -> b.Document:
    """Makes the page with details of a paper."""
    title = f"{paper.plan.paper_name} in detail [{paper.plan.scale} scale]"
    return b.Document(title, (*_paper(paper.plan), *_up(paper.plan, True)), blocks_of("details", paper))


def _paper(plan: Plan) -> tuple[str | b.Text, ...]:
    """Names the paper, with a link to `url` in paper.yaml, which may be another version's: the link is the name of the host."""
    host = urlsplit(plan.paper_url).netloc
    return (plan.paper_title, *((" ", b.Text(host, link=plan.paper_url)) if host else ()))


def _up(plan: Plan, below: bool = False) -> tuple[str | b.Text, ...]:
    """Links from a published page to that of all papers; `below` a paper's page, to this one first."""
    if plan.own or plan.scale not in PUBLISHED:
        return ()
    paper = (" · ", b.Text(f"{plan.paper_name} at scale {plan.scale}", link=f"{plan.folder}/index.page")) if below else ()
    return (*paper, " · ", b.Text("all papers", link=b.OVERVIEW))


def site(pages: Sequence[Placed]) -> b.Document:
    """Makes the list of all pages."""
    ordered = sorted(pages, key=lambda pair: (pair[1].paper_name, -SCALES.index(pair[1].scale), pair[1].own))
    columns = b.heads("paper", "scale", "tables run", "cells", "claims", "runs finished")
    grid = b.Grid("Papers and scales", columns, tuple(_page_row(path, page) for path, page in ordered))
    return b.Document("All pages", ALL_PAGES, (grid if pages else b.Paragraph(NONE),))


def _page_row(path: Path, page: PageHeader) -> b.Row:
    name = b.Text(page.paper_name, link=link(path))
    cells = words.counts({status: page.counts[status] for status in STATUSES})
    tables = f"{page.tables_run} of {page.tables}"
    return (name, page.scale, tables, cells, words.counts(page.verdicts), period(page.finished))


def link(path: Path) -> str:
    """Returns the link to the page beside its JSON."""
    return path.with_suffix(".page").as_posix()
