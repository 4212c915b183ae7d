"""Whole pages: of a table, of a paper, what is looked up of a paper, and the lists of all papers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.judge import VERDICTS, Verdict
from fedrepro.exhibits.names import period
from fedrepro.exhibits.paper import PageHeader, PaperPage
from fedrepro.exhibits.sections import blocks_of, words
from fedrepro.exhibits.verdict import STATUSES
from fedrepro.exhibits.write import blocks as b

WHAT_HOLDS = (
    "Made from the evidence beside the pages. Only what ran at scale full, by a paper's own protocol, is compared with its "
    "printed numbers; at scale short nothing is judged. What does not hold comes first."
)
CLAIMS = (
    "Every claim by its verdict. Not run: some of its numbers, or all, have no runs. Not comparable: scale full has no "
    "verdict and scale short has runs, or the paper does not give the settings. A claim leads to its place on its paper's "
    "page; the details beside that page say which rule decides it."
)
ALL_PAGES = (
    "One page for each paper and scale. Only at scale full, and there only where a page says so, may numbers be compared with "
    "the printed ones. Scale short has fewer rounds, demo has other data; each page says what was run."
)
NONE = "There is no page yet: no run has left any evidence below reports/."
SCALES = ["full", "short", "demo"]  # in this order on the list
Placed = tuple[Path, PageHeader]  # a page with the path of its JSON


def table_page(table: Exhibit) -> b.Document:
    """Makes the page of a table: what it is, the numbers, what they show. All other sections fold."""
    plan = table.plan
    title = f"{plan.paper_name}, {plan.source}: {plan.title} [{plan.scale} scale]"
    return b.Document(title, f"{plan.paper_title}. {plan.source}", blocks_of("table", table))


def paper_page(paper: PaperPage) -> b.Document:
    """Makes the page of a paper: the answer on one screen. All other sections fold."""
    return b.Document(f"{paper.plan.paper_name} [{paper.plan.scale} scale]", paper.plan.paper_title, blocks_of("paper", paper))


def details_page(paper: PaperPage) -> b.Document:
    """Makes the page with details of a paper."""
    title = f"{paper.plan.paper_name} in detail [{paper.plan.scale} scale]"
    return b.Document(title, paper.plan.paper_title, blocks_of("details", paper))


def site(pages: Sequence[Placed]) -> b.Document:
    """Makes the list of all pages."""
    ordered = sorted(pages, key=lambda pair: (pair[1].paper_name, SCALES.index(pair[1].scale), pair[1].own))
    columns = b.heads("paper", "scale", "tables run", "cells", "claims", "runs finished")
    listed = b.Grid("Papers and scales", columns, tuple(_listed(path, page) for path, page in ordered))
    return b.Document("All pages", ALL_PAGES, (listed if pages else b.Paragraph(NONE),))


def _listed(path: Path, page: PageHeader) -> b.Row:
    name = b.Text(page.paper_name, link=_link(path))
    cells = words.counts({status: page.counts[status] for status in STATUSES})
    tables = f"{page.tables_run} of {page.tables}"
    return (name, page.scale, tables, cells, words.counts(page.verdicts), period(*(page.finished or (None, None))))


def overview(pages: Sequence[Placed], others: Mapping[str, int]) -> b.Document:
    """Makes the page on all papers: what holds of each, then every claim by its verdict.

    `pages` are those of published scales, `others` papers without any page -> how many numbers they print.
    """
    papers: dict[str, list[Placed]] = {}
    for path, page in sorted(pages, key=lambda one: (one[1].paper_name, one[1].scale)):  # full comes before short
        papers.setdefault(page.paper, []).append((path, page))
    blocks = [*(_paper(scales) for scales in papers.values()), *_others(others), _claims([*papers.values()])]
    return b.Document("What holds", WHAT_HOLDS, tuple(blocks))


def _paper(scales: list[Placed]) -> b.Section:
    told = [page.answers for _, page in scales if page.answers]
    lines: list[b.Line | b.Points] = [words.named("Proposes:", told[0].proposes)] if told else []
    shares = [_share(page) for _, page in scales if page.printed_measured] or ["none of its printed numbers."]
    lines.append(words.named("Re-run:", " ".join(shares)))
    for _, page in scales:
        lines += _answers(page)
    lines += [words.named("Not obtained:", told[0].missing)] if told else []
    links = b.joined(b.Text(f"scale {page.scale}", link=_link(path)) for path, page in scales)
    lines.append((b.Text("Pages:", "strong"), " ", *links))
    return b.Section(scales[0][1].paper_name, (b.Bullets(tuple(lines)),))


def _share(page: PageHeader) -> str:
    """`48 of its 134 printed numbers by its protocol (36 %).`"""
    measured, total = page.printed_measured, page.printed_total
    share = f"{100 * measured / total:.0f} %" if total else "none printed"
    below = f"at scale {page.scale}, with fewer rounds or seeds and in part other data or networks, where nothing is judged"
    return f"{measured} of its {total} printed numbers {'by its protocol' if page.scale == 'full' else below} ({share})."


def _answers(page: PageHeader) -> list[b.Line | b.Points]:
    if page.answers is None:
        return []
    at = "" if page.scale == "full" else f" at scale {page.scale}"
    named = {"Seen here": "Seen"}
    return [words.points(f"{named.get(name, name)}{at}:", lines) for name, lines in page.answers.headed(page.scale)]


def _others(others: Mapping[str, int]) -> list[b.Block]:
    if not others:
        return []
    lines = tuple(
        f"papers/{name}: {count} printed numbers are here to be compared with; nothing has been run."
        for name, count in others.items()
    )
    return [b.Section("Not run yet", (b.Bullets(lines),))]


def _claims(papers: list[list[Placed]]) -> b.Section:
    """Makes a grid of papers by verdicts. A claim links to the page with its verdict."""
    by_verdict = [(scales[0][1].paper_name, _by_verdict(scales)) for scales in papers]
    used: list[Verdict] = [verdict for verdict in VERDICTS if any(verdict in own for _, own in by_verdict)]
    rows = tuple((name, *(b.joined(own.get(verdict, [])) or "–" for verdict in used)) for name, own in by_verdict)
    heads = (tuple(b.Head(name) for name in ("paper", *(words.verdict(verdict).text for verdict in used))),)
    return b.Section("Claims", (b.Paragraph(CLAIMS), b.Grid("Claims by verdict", heads, rows, "claims")))


def _by_verdict(scales: list[Placed]) -> dict[Verdict, list[b.Text]]:
    """Returns verdict -> claims. A claim that has not run at full scale takes the verdict of scale short, "not comparable"."""
    best: dict[str, tuple[Verdict, Path]] = {}
    for path, page in scales:
        for id, verdict in page.claims:
            if id not in best or (best[id][0] == "not run" and verdict != "not run"):
                best[id] = verdict, path
    found: dict[Verdict, list[b.Text]] = {}
    for id, (verdict, path) in best.items():
        found.setdefault(verdict, []).append(b.Text(id, link=f"{_link(path)}#{id}"))
    return found


def _link(path: Path) -> str:
    return path.with_suffix(".page").as_posix()
