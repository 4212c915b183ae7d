"""How cells are judged: the rule, the counts, and how they move under other thresholds."""

from fedrepro.config.plan import Plan
from fedrepro.exhibits.cells import COMPARED, alternatives, count_statuses, exchanged, judge_as_mean_of, well_within
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.verdict import RULE
from fedrepro.exhibits.write import blocks as b


@section("table", at=80)
def statuses(table: Exhibit) -> list[b.Block]:
    """The rule and the counts of one table; no section where nothing is printed."""
    if not table.plan.prints:
        return []
    pairs = b.Pairs(tuple((name, (str(number),)) for name, number in table.counts.items() if number))
    sentences = [words.rule(table.plan), words.spreads(table.plan, table.cells), words.outside(table.cells)]
    blocks: list[b.Block] = [*(b.Paragraph(text) for text in sentences if text), pairs]
    rows = []
    for rule, counts in alternatives(table.cells, table.plan):
        first = f"{rule.tolerance:g}" + (" (ours)" if rule == RULE else "")
        rows.append((first, f"{rule.widest:g}", *(str(counts[status]) for status in COMPARED)))
    if rows:
        heads = b.heads("tolerance (points)", "widest margin (points)", *COMPARED, numbers=range(6))
        blocks += [b.Paragraph("How the counts move with the rule:")]
        blocks += [b.Grid("Statuses under other thresholds", heads, tuple(rows))]
    return [b.Section("Status of the cells", tuple(blocks), folded=True, note=words.counts(table.counts))]


def _if_means(paper: PaperPage, plan: Plan) -> str:
    """Counts the statuses if print had three seeds; empty where the paper says how many it has."""
    if plan.printed_seeds.value is not None:
        return ""
    counts = count_statuses(judge_as_mean_of(3, paper.judged, plan))
    return f"If each printed number were the mean of three seeds: {words.counts(counts)}."


@section("paper", at=30)
def chance(paper: PaperPage) -> list[b.Block]:
    """What chance would do, how near reproduced numbers are, and where the rule stands; no section if nothing is judged."""
    table = _judged(paper)
    if table is None:
        return []
    cells = [cell for own_table in paper.own_tables for cell in own_table.cells]
    near = words.near(paper.counts["reproduced"], well_within(paper.judged))
    link = b.Text("the rule", link=f"{paper.details}#rule")
    by_table = [exchanged(own_table.cells) for own_table in paper.own_tables]
    pairs, passed = map(sum, zip(*by_table, strict=True))
    lines = (
        words.outside(cells),
        near,
        words.told_apart(pairs, passed),
        _if_means(paper, table.plan),
        ("The details have ", link, "."),
    )
    blocks = tuple(b.Paragraph(line) for line in lines if line)
    return [b.Section("How cells are judged", blocks, folded=True, note="what chance would do, and the rule")]


@section("details", at=12)
def rule(paper: PaperPage) -> list[b.Block]:
    """The rule for all tables of a paper; no section if none is judged."""
    table = _judged(paper)
    if table is None:
        return []
    spreads = words.spreads(table.plan, table.cells)
    blocks = (b.Paragraph((b.Text(words.rule(table.plan), anchor="rule"),)), *([b.Paragraph(spreads)] if spreads else []))
    return [b.Section("The rule for cells", blocks, folded=True, note="margin and statuses")]


def _judged(paper: PaperPage) -> Exhibit | None:
    """Returns the first table whose numbers may be compared with printed ones."""
    return next((table for table in paper.tables if table.plan.comparable and table.plan.prints), None)
