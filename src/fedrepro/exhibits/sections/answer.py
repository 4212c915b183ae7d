"""The first screen of a paper's page: what holds, counts, the numbered tables at a glance, a picture."""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial

from fedrepro.config.plan import Plan
from fedrepro.console import some
from fedrepro.exhibits.cells import COMPARED, count_statuses
from fedrepro.exhibits.comparisons import Gap, pictured
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.judge import DECIDED
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.pictures import agreement
from fedrepro.exhibits.pictures import gaps as gap_pictures
from fedrepro.exhibits.sections import grid, words
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b

AT_A_GLANCE = 3  # numbered tables that stand beside each other at the top
AGREEMENT = "Measured numbers against the printed ones, in percent; on the line they are the same."
LEGEND = f"Measured: mean ± deviation over seeds; without ± one seed. Differences: {words.MEANT}"
BESIDE = "Numbers behind the verdicts, gaps between methods, cost, authors' code, known gaps, and more"
BESIDE_UNJUDGED = "Claims, gaps between methods, cost, deviations from the paper, known gaps, and more"


@section("paper", at=10)
def answer(paper: PaperPage) -> list[b.Block]:
    """A banner, then tables and a picture side by side."""
    plans = [table.plan for table in paper.tables]
    compared = any(plan.comparable and plan.prints for plan in plans)
    departs = words.departures(paper.plan.deviations) if compared else ""
    sentences = (*protocol(paper), _judged_runs(paper), paper.scale_note, departs)
    first = (b.Text(_headline(paper), "strong"), *(f" {sentence}" for sentence in sentences if sentence))
    summary: list[b.Line | b.Points] = []
    if answers := paper.answers:
        summary = [words.named("Proposes:", answers.proposes), *words.headed(answers.first(paper.plan.scale))]
    lines = (*summary, _counts(paper), first) if compared else (first, *summary, _counts(paper))
    beside = _beside(paper)
    legend = [b.Paragraph(LEGEND, soft=True)] if beside and compared else []
    return [b.Banner(lines if plans else (first,), is_good(plans)), *([b.SideBySide(tuple(beside))] if beside else []), *legend]


def is_good(plans: Sequence[Plan]) -> bool:
    """Tells whether all tables that have run may be compared with print: the banner is green then."""
    return bool(plans) and all(plan.comparable for plan in plans)


@section("paper", at=12)
def at_length(paper: PaperPage) -> list[b.Block]:
    """What the evidence says, sentence by sentence, where the page begins with short answers."""
    if paper.answers is None or not paper.answers.in_brief:
        return []
    return [b.Section("The answers at length", (b.Bullets(tuple(words.headed(paper.answers.headed(paper.plan.scale)))),))]


@section("paper", at=15)
def more(paper: PaperPage) -> list[b.Block]:
    """What the re-run lacked, and a link to the details."""
    if not paper.tables and not paper.figures:
        return []
    text = BESIDE if paper.plan.scale == "full" else BESIDE_UNJUDGED
    lacked = paper.answers.missing if paper.answers else ""
    missing = [b.Paragraph(words.named("What we did not have:", lacked))] if lacked else []
    return [*missing, b.Paragraph((b.Text(text, link=paper.details),), soft=True)]


def protocol(paper: PaperPage) -> tuple[str, ...]:
    """Returns what was run, if that is the same for all tables of the page; else nothing."""
    protocols = {words.protocol(table.plan) for table in paper.tables}
    return protocols.pop() if len(protocols) == 1 else ()


def _judged_runs(paper: PaperPage) -> str:
    """Says on what data, with how many clients and rounds, and at which seeds the judged numbers were measured."""
    cells = [
        (table.plan.run(cell.place).config, cell)
        for table in paper.own_tables
        for cell in table.cells
        if cell.status in COMPARED
    ]
    if not cells:
        return ""
    data, clients, rounds = (sorted({config[key] for config, _ in cells}) for key in ("dataset", "clients", "rounds"))
    seeds = Counter(tuple(sorted(cell.per_seed)) for _, cell in cells)
    parts = [f"{', '.join(map(str, values))} {what}" for values, what in ((clients, "clients"), (rounds, "rounds"))]
    for group, number in seeds.most_common():
        share = f" ({number} of {len(cells)} cells)" if len(seeds) > 1 else ""
        parts.append(f"seed{'s' if len(group) > 1 else ''} {', '.join(map(str, group))}{share}")
    return f"Judged runs: {', '.join(data)}; {'; '.join(parts)}."


def _headline(paper: PaperPage) -> str:
    """Says whether the numbers of the page are comparable with the printed ones."""
    plans, scale = [table.plan for table in paper.tables], paper.plan.scale
    if not plans:
        return f"{scale.capitalize()} scale: {'no table' if paper.figures else 'nothing'} has run yet."
    judged_tables = [table for table in paper.tables if table.plan.comparable and table.plan.prints and not table.plan.varied]
    compared = [table.plan for table in judged_tables]
    if not compared:
        return words.headline(plans[0])
    share = f"{some(len(compared), 'table')} with printed numbers"
    unprinted = sum(not plan.prints for plan in plans)
    varied = [plan.varied.source for plan in plans if plan.varied]
    several = some(len(varied), "table") + (" that varies " if len(varied) == 1 else " that vary ")
    further = [several + ", ".join(dict.fromkeys(varied))] if varied else []
    further += [f"{unprinted} of ours without printed numbers"] if unprinted else []
    incomparable = sum(plan.prints and not plan.comparable for plan in plans)
    further += [f"{incomparable} whose printed numbers are of another setting"] if incomparable else []
    elsewhere = {plan.table for plan in plans} - {plan.table for plan in compared}
    also = f" Also on the page: {'; '.join(further)}. {judged_there(paper, elsewhere)}" if further else ""
    protocol_text = "by the paper's protocol, with values of ours where it states none"
    return f"Full scale: {share} {protocol_text}: {', '.join(map(_run_of, judged_tables))}.{also}"


def judged_there(paper: PaperPage, tables: Collection[str]) -> str:
    """Says whether the numbers of tables without statuses decide claims."""
    decided = any(outcome.claim.table in tables and outcome.verdict in DECIDED for outcome in paper.claims)
    return "Numbers there count for claims only." if decided else "No number there is judged."


def _run_of(table: Exhibit) -> str:
    """Names a table, `Table 3 (24 of its 96 cells)`; without the numbers if every cell has run."""
    run_cells = sum(bool(cell.per_seed) for cell in table.cells)
    return table.plan.source + (f" ({run_cells} of its {len(table.cells)} cells)" if run_cells < len(table.cells) else "")


def _counts(paper: PaperPage) -> b.Line:
    """Counts the printed numbers that were measured, their statuses, and the verdicts on claims."""
    judged = {status: number for status, number in paper.counts.items() if status in COMPARED}
    total = sum(judged.values())
    share = f" {paper.printed_measured or 'none'} of {paper.words.printed} "
    unjudged = (
        f"{share}{'has' if paper.printed_measured < 2 else 'have'} runs here in the paper's own tables; none is comparable"
    )
    lost = f", {words.lost(paper.printed_lost)}" if paper.printed_lost else ""
    different = f"{total} different {'one' if total == 1 else 'ones'}"
    measured = f"{share}{'is' if paper.printed_measured == 1 else 'are'} measured{lost}, {different} judged: "
    numbers = (measured, *words.counted(judged)) if total else (unjudged,)
    claims = (". ", b.Text("Claims:", "strong"), " ", *words.counted(paper.verdicts)) if paper.claims else ()
    once = ". A number that several tables print is judged once." if total else "."
    moved = some(paper.verdicts_moved, "verdict") if paper.verdicts_moved else ""
    changed = f" {moved} moved when rules or claims were changed after results had been read." if moved else ""
    return (b.Text("Printed numbers:", "strong"), *numbers, *claims, once, changed)


def _beside(paper: PaperPage) -> list[b.Section]:
    """Makes the first numbered tables, and a picture of all percentages or of the lead of one row."""
    numbered = [table for table in paper.own_tables if table.plan.prints] or paper.own_tables
    sections = []
    for table in numbered[:AT_A_GLANCE]:
        same = words.together(table.plan)
        below = (b.Paragraph(same, soft=True),) if same else ()
        sections.append(b.Section(f"{table.plan.source}: {table.plan.title}", (grid.compact(table), *below)))
    points = [cell for cell in paper.judged if cell.difference is not None and cell.metric.unit == "percent"]
    if points:
        text = f"{AGREEMENT} {words.counts(count_statuses(points))}."
        picture = b.Picture("figures/index/agreement.svg", text, draw=partial(agreement.draw, points))
        sections.append(b.Section("Measured against printed", (b.Pictures((picture,)),)))
    elif paper.gaps:
        first = pictured(paper.gaps, paper.words.summary.pictured if paper.words.summary else "")
        sections.append(b.Section(first.title, (b.Pictures((gap_picture(first),)),)))
    return sections


def gap_picture(gap: Gap) -> b.Picture:
    """Makes the picture of a gap."""
    return b.Picture(f"figures/index/gaps/{gap_pictures.name(gap)}", gap.text, draw=partial(gap_pictures.draw, gap))
