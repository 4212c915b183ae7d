"""What a paper claims, with verdicts; the numbers behind them; changes of rules and claims after results were read."""

from functools import partial

from fedrepro.console import some
from fedrepro.exhibits.claims import Number
from fedrepro.exhibits.judge import PAIRED, ClaimVerdict, rule
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b
from fedrepro.grouping import grouped
from fedrepro.units import decimal, unit

CHANGES = (
    "Rules and claims that were changed, and evidence that was withdrawn, when results had already been read, oldest first, "
    "each with the verdicts that it moved. A rule fixed beforehand is worth more than one of these."
)

WAITING = "Claims that cannot be judged by what has run at this scale (each leads to what it says): "
UNJUDGED = (
    "Claims whose runs are here, without a verdict, since they are not the paper's protocol (each leads to what it says): "
)
UNTOUCHED = "Claims that cannot be judged by what has run at this scale. The paper's own words stand in papers/{}/claims.yaml."


@section("paper", at=20)
def claims(paper: PaperPage) -> list[b.Block]:
    """Lists each claim with the paper's words, the verdict and the reason. Claims on what has not been run are only named, and
    so are all where nothing is judged."""
    if not paper.claims:
        return []
    waiting, undecided = _waiting(paper), _unjudged(paper)
    blocks: list[b.Block] = []
    if rows := [outcome for outcome in paper.claims if outcome not in waiting and outcome not in undecided]:
        blocks += [_grid(rows), b.Paragraph(words.CLAIM_RULE, soft=True)]
    for text, outcomes in ((UNJUDGED, undecided), (WAITING, waiting)):
        if outcomes:
            links = (
                b.Text(outcome.claim.id, link=f"{paper.details}#{outcome.claim.id}", anchor=outcome.claim.id)
                for outcome in outcomes
            )
            blocks.append(b.Paragraph((text, *b.joined(links))))
    return [b.Section("What the paper claims", tuple(blocks), folded=True, note=words.counts(paper.verdicts))]


@section("details", at=5)
def unjudged(paper: PaperPage) -> list[b.Block]:
    """The claims without a verdict that the paper's page only names."""
    outcomes = _unjudged(paper)
    if not outcomes:
        return []
    return [b.Section("Claims without a verdict", (_grid(outcomes),), folded=True, note=some(len(outcomes), "claim"))]


def _grid(outcomes: list[ClaimVerdict]) -> b.Grid:
    rows = []
    for outcome in outcomes:
        claim = outcome.claim
        quoted = f"“{claim.says}”" if claim.says else "read off the printed numbers; no sentence says it"
        statement = b.Box((b.Text(f"{claim.id}, {claim.where}", "soft", anchor=claim.id), claim.text, b.Text(quoted, "soft")))
        rows.append((statement, words.verdict(outcome.verdict), outcome.why))
    return b.Grid("Claims and verdicts", b.heads("claim", "verdict", "why"), tuple(rows), "claims")


def _unjudged(paper: PaperPage) -> list[ClaimVerdict]:
    """Lists the claims whose runs are there, where none of them is judged."""
    outcomes = [outcome for outcome in paper.claims if outcome.verdict != "not run"]
    return outcomes if all(outcome.verdict == "not comparable" for outcome in outcomes) else []


@section("details", at=15)
def untouched(paper: PaperPage) -> list[b.Block]:
    """The claims that the paper's page only names."""
    waiting = [outcome.claim for outcome in _waiting(paper)]
    items = tuple((b.Text(claim.id, anchor=claim.id), f", {claim.where}: {claim.text}") for claim in waiting)
    if not items:
        return []
    intro = b.Paragraph(UNTOUCHED.format(paper.plan.paper))
    return [b.Section("Claims that wait for runs", (intro, b.Bullets(items)), folded=True, note=some(len(items), "claim"))]


def _waiting(paper: PaperPage) -> list[ClaimVerdict]:
    """Lists the claims that are not run; at full scale only those of whose table nothing has run."""
    tables_run = {table.plan.table for table in paper.tables} if paper.plan.scale == "full" else set[str]()
    return [outcome for outcome in paper.claims if outcome.verdict == "not run" and outcome.claim.table not in tables_run]


@section("paper", at=40)
def changed(paper: PaperPage) -> list[b.Block]:
    """Counts the changes of rules, claims and evidence after results had been read, and links to their list."""
    if not paper.changes:
        return []
    link = b.Text("The details beside this page", link=f"{paper.details}#changes")
    text = " list where rules or claims were changed, or evidence was withdrawn, when results had already been read, and why."
    note = f"{some(len(paper.changes), 'change')}, {some(paper.verdicts_moved, 'verdict')} moved"
    return [b.Section("Changes after results were read", (b.Paragraph((link, text)),), folded=True, note=note)]


@section("details", at=8)
def changes(paper: PaperPage) -> list[b.Block]:
    """Every change of a rule or a claim, or withdrawn evidence, after results had been read."""
    if not paper.changes:
        return []
    blocks: list[b.Block] = [b.Paragraph((b.Text(CHANGES, anchor="changes"),))]
    for change in paper.changes:
        moves, count = change.moved.get(paper.plan.paper, {}), change.counts.get(paper.plan.paper)
        moved = [f"{move}: {'; '.join(places)}" for move, places in moves.items()] + ([count] if count else [])
        ids = f" ({', '.join(change.claims)})" if change.claims else ""
        blocks.append(b.Paragraph((b.Text(f"{change.date}{ids}:", "strong"), f" {change.what} {change.why}")))
        blocks.append(b.Bullets(tuple(moved or ["no verdict of this paper moved"])))
    return [b.Section("Changes after results were read", tuple(blocks), folded=True, note=some(len(paper.changes), "change"))]


@section("details", at=10)
def numbers(paper: PaperPage) -> list[b.Block]:
    """The numbers that claims rest on, and the rules that decide them."""
    pairs = [(outcome, number) for outcome in paper.claims for number, _ in outcome.numbers]
    measured = tuple(_number(outcome, number) for outcome, number in pairs if number.per_seed)
    if not measured:
        return []
    heads = b.heads("claim", "what", "printed", "ours", "interval", "every seed", numbers=range(2, 5))
    table = b.Grid("Numbers behind the verdicts", heads, measured)
    texts = {outcome.claim.id: rule(outcome.claim) for outcome in paper.claims}
    by_text = grouped((text.replace(PAIRED, "").strip(), id) for id, text in texts.items())
    shared = [("decided", (PAIRED,))] if any(PAIRED in text for text in texts.values()) else []  # by most rules
    rules = b.Pairs((*((", ".join(ids), (text,)) for text, ids in by_text.items()), *shared))
    note = f"{len(measured)} of {len(pairs)} numbers have been measured"
    return [b.Section("The numbers behind the verdicts, and the rules", (table, rules), folded=True, note=note)]


def _number(outcome: ClaimVerdict, number: Number) -> b.Row:
    """Makes a row: printed, ours, interval, every seed. A dash stands for a missing value."""
    ends, kind = number.interval, unit(number.unit)
    written = partial(decimal, digits=kind.digits)
    between = f"{written(ends[0])} to {written(ends[1])}" if ends else "–"
    seeds = ", ".join(f"{seed}: {kind.text(value)}" for seed, value in number.per_seed.items())
    return (outcome.claim.id, number.label, written(number.printed), written(number.mean), between, seeds or "–")
