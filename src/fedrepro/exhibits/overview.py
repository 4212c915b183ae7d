"""What holds of all papers, on one page: counts, what the evidence says of each paper, and the claims."""

from collections.abc import Mapping, Sequence

from fedrepro.console import some
from fedrepro.exhibits.cells import COMPARED
from fedrepro.exhibits.judge import DECIDED, VERDICTS, Verdict
from fedrepro.exhibits.pages import Placed, link
from fedrepro.exhibits.paper import PageHeader
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.write import blocks as b
from fedrepro.grouping import grouped

TITLE = "Papers on federated learning, re-run: what holds and what does not"
WHAT_HOLDS = (
    "This page is made from the evidence beside the pages. Runs at scale full are compared with the printed numbers. They have "
    "the paper's settings, but for the departures that each page lists, and ours where the paper states none. Runs at scale "
    "short have fewer rounds or seeds; they are shown and not judged. Of each paper some questions are answered here; its page "
    "has the answers at length. Intervals are 95 % intervals over paired seeds, not corrected for how many there are."
)
COUNTED = (
    "Measured: at scale full. A number that several tables print is judged once, a claim when all its numbers are measured. "
    f"{words.MEANT} {words.CLAIM_RULE}"
)
JUDGED = (
    "Each claim links to its paper's page, which quotes the paper. The details beside that page name the rule that decides the "
    "claim. Claims of a paper share some of their runs, so their verdicts are not independent."
)
CHANGED = (
    " † Added or changed after results had been read. The rules for numbers were changed then, too. The details beside "
    "each paper's page list these changes and what they moved."
)
WAITING = (
    "Not run: some of a claim's numbers, or all, have no runs, or lack seeds. Not comparable: scale full has no verdict and "
    "scale short has runs, or the paper does not give the settings."
)
LATE = " †"
Paper = list[Placed]  # the pages of one paper, full before short
Told = dict[Verdict, list[tuple[b.Text, str]]]  # verdict -> claims: a link, and what the claim says


def overview(pages: Sequence[Placed]) -> b.Document:
    """Makes the page of all published scales."""
    ordered = sorted(pages, key=lambda placed: (placed[1].paper_name, placed[1].scale))  # full comes before short
    by_name = grouped((placed[1].paper_name, placed) for placed in ordered)
    by_paper = {name: _by_verdict(scales) for name, scales in by_name.items()}
    sections = [*map(_paper, by_name.values()), *_judged_claims(by_paper), *_waiting(by_paper)]
    return b.Document(TITLE, WHAT_HOLDS, (*([_counts(by_name)] if by_name else []), *sections))


def _counts(papers: Mapping[str, Paper]) -> b.Section:
    """Makes a grid of papers: how many numbers and claims are judged, and how they come out. A last line has the sums."""
    first = [scales[0] for scales in papers.values()]
    rows = [_line(b.Text(page.paper_name, link=link(path)), [page]) for path, page in first]
    rows += [_line("together", [page for _, page in first])] if len(rows) > 1 else []
    heads = b.heads("paper", "printed numbers measured", "different numbers judged", "claims judged")
    full = [page for _, page in first if page.scale == "full"]
    near = words.near(sum(page.counts["reproduced"] for page in full), sum(page.well_within for page in full))
    paragraphs = (b.Paragraph(text, soft=True) for text in (COUNTED, near) if text)
    return b.Section("In numbers", (b.Grid("Papers in numbers", heads, tuple(rows)), *paragraphs))


def _line(name: b.Line, pages: list[PageHeader]) -> b.Row:
    """Makes a row of sums over pages. What is below scale full counts as not measured."""
    full = [page for page in pages if page.scale == "full"]
    numbers = {status: sum(page.counts[status] for page in full) for status in COMPARED}
    verdicts = {verdict: sum(page.verdicts[verdict] for page in full) for verdict in DECIDED}
    measured, printed = sum(page.printed_measured for page in full), sum(page.printed_total for page in pages)
    total_text = f" of {sum(len(page.claims) for page in pages)}"
    single = sum(page.at_one_seed for page in full)
    seeds_text = f" ({single} at one seed)" if single else ""
    return (name, f"{measured} of {printed}", _tally(numbers, seeds_text), _tally(verdicts, total_text))


def _tally(numbers: words.Counts, total_text: str = "") -> b.Line:
    """Writes the total and the counts, `21: 15 reproduced, 3 consistent, 3 inconclusive`."""
    total = sum(numbers.values())
    return (f"{total}{total_text}: ", *words.counted(numbers)) if total else f"none{total_text}"


def _paper(scales: Paper) -> b.Section:
    answers = [page.answers for _, page in scales if page.answers]
    lines: list[b.Line | b.Points] = [words.named("Proposes:", answers[0].proposes)] if answers else []
    shares = [_share(page) for _, page in scales if page.printed_measured] or ["none of its printed numbers."]
    lines.append(words.named("Re-run:", " ".join(shares)))
    for _, page in scales:
        lines += _answers(page)
    lines += [words.named("What we did not have:", answers[0].missing)] if answers else []
    links = b.joined(b.Text(f"scale {page.scale}", link=link(path)) for path, page in scales)
    lines.append((b.Text("Pages:", "strong"), " ", *links))
    return b.Section(scales[0][1].paper_name, (b.Bullets(tuple(lines)),))


def _share(page: PageHeader) -> str:
    """Says how many numbers were measured, `48 of its 134 printed numbers by its protocol (36 %).`"""
    measured, total = page.printed_measured, page.printed_total
    share = f"{100 * measured / total:.0f} %" if total else "none printed"
    share += f"; {words.lost(page.printed_diverged)}" if page.printed_diverged else ""
    if page.scale == "full":
        return f"{measured} of its {total} printed numbers at full scale ({share})."
    below = f"at scale {page.scale}, with fewer rounds or seeds and in part other data or networks; none of these is comparable"
    return f"{measured} of its {total} printed numbers {below}."


def _answers(page: PageHeader) -> list[b.Line | b.Points]:
    if page.answers is None:
        return []
    first = page.answers.first(page.scale)
    if page.scale != "full":
        short = {"Seen here": f"Seen at scale {page.scale}"}
        first = [(short.get(name, f"At scale {page.scale}: {name[0].lower()}{name[1:]}"), lines) for name, lines in first]
    return words.headed(first)


def _judged_claims(papers: Mapping[str, Told]) -> list[b.Section]:
    """Makes a grid of the claims with a verdict and what they say, the least favourable verdict first."""
    rows: list[b.Row] = []
    least_first: list[Verdict] = [*reversed(DECIDED)]
    for name, claims in papers.items():
        judged = [(verdict, claim) for verdict in least_first for claim in claims.get(verdict, [])]
        rows += [b.Subheading(name)] if judged else []
        rows += [((id, ": ", text), words.verdict(verdict)) for verdict, (id, text) in judged]
    grid = b.Grid("Claims that were judged", b.heads("claim", "verdict"), tuple(rows), "claims")
    ids = [id.text for claims in papers.values() for verdict in DECIDED for id, _ in claims.get(verdict, [])]
    changed = CHANGED if any(id.endswith(LATE) for id in ids) else ""
    return [b.Section("Claims that were judged", (b.Paragraph(JUDGED + changed), grid))] if rows else []


def _waiting(papers: Mapping[str, Told]) -> list[b.Section]:
    """Makes a grid of papers by the claims without a verdict."""
    verdicts: list[Verdict] = [
        verdict for verdict in VERDICTS if verdict not in DECIDED and any(verdict in claims for claims in papers.values())
    ]
    if not verdicts:
        return []
    links = {name: [[id for id, _ in claims.get(verdict, [])] for verdict in verdicts] for name, claims in papers.items()}
    rows = tuple((name, *(b.joined(ids) or "–" for ids in lists)) for name, lists in links.items())
    heads = b.heads("paper", *(words.verdict(verdict).text for verdict in verdicts))
    grid = b.Grid("Claims without a verdict", heads, rows, "claims")
    number = sum(len(ids) for lists in links.values() for ids in lists)
    return [b.Section("Claims without a verdict", (b.Paragraph(WAITING), grid), folded=True, note=some(number, "claim"))]


def _by_verdict(scales: Paper) -> Told:
    """Sorts the claims by verdict. One that has not run at full scale takes the verdict of scale short, "not comparable"."""
    best: dict[str, tuple[Verdict, b.Text, str]] = {}
    for path, page in scales:
        for id, verdict in page.claims:
            if id not in best or (best[id][0] == "not run" and verdict != "not run"):
                late = LATE if id in page.claims_changed else ""
                best[id] = verdict, b.Text(f"{id}{late}", link=f"{link(path)}#{id}"), page.claim_texts.get(id, "")
    return grouped((verdict, (id, text)) for verdict, id, text in best.values())
