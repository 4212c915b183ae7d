"""The tables of a paper, one after another; those that vary another; those that have not run."""

from fedrepro.config.places import is_figure
from fedrepro.console import some
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.sections import grid, tuned, words
from fedrepro.exhibits.sections.answer import judged_there, protocol
from fedrepro.exhibits.sections.curves import curves
from fedrepro.exhibits.sections.numbers import remark_blocks
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b

VARIED = (
    "Each of these tables varies one of the paper's: another reading of what the paper leaves open, a control, or other seeds. "
    "We made them after the paper's numbers were known."
)
LISTED = 20  # on the paper's page; of more the details have the titles
NOT_RUN = "No run of these has evidence at this scale. Each line ends with the file to ask for, as in "


@section("paper", at=50)
def tables(paper: PaperPage) -> list[b.Block]:
    """A folded section for each table but variants."""
    return [_table(paper, table) for table in paper.own_tables]


def _table(paper: PaperPage, table: Exhibit) -> b.Section:
    plan = table.plan
    notes = [] if protocol(paper) else list(words.protocol(plan))
    notes += [] if plan.scale_note == paper.scale_note else [plan.scale_note]
    notes += [*table.warnings, words.not_run(table.cells), words.together(plan)]
    blocks: list[b.Block] = [b.Paragraph(note) for note in notes if note]
    own_page = plan.table in paper.rendered
    if own_page:
        blocks.append(b.Paragraph((b.Text(f"Every seed and every setting of {plan.source}", link=words.page_of(plan)),)))
    folder = "figures" if own_page else "figures/index"
    blocks += remark_blocks(table)
    blocks += tuned.summary(table, folder)
    if not own_page:
        blocks.append(grid.listed(table))
    blocks += curves(table, folder)
    note = words.counts({name: number for name, number in table.counts.items() if name != "not run"})
    return b.Section(f"{plan.source}: {plan.title}", tuple(blocks), folded=True, note=note)


@section("paper", at=60)
def other_readings(paper: PaperPage) -> list[b.Block]:
    """The variants of tables: links to their pages, or the commands that make them."""
    lines: list[b.Line] = []
    plans = [table.plan for table in paper.tables if table.plan.variant_of]
    for plan in plans:
        name = f"{plan.source}: {plan.title}"
        own_page = plan.table in paper.rendered
        lines.append(b.Text(name, link=words.page_of(plan)) if own_page else (f"{name}. ", b.Text(plan.command, "code")))
    if not lines:
        return []
    varied = f"{VARIED} {judged_there(paper, {plan.table for plan in plans})}"
    blocks = (b.Paragraph(varied), b.Bullets(tuple(lines)))
    return [b.Section("Tables that vary another", blocks, folded=True, note=some(len(lines), "table"))]


@section("paper", at=70)
def not_run(paper: PaperPage) -> list[b.Block]:
    """The tables and figures without evidence: a list, or only the names if there are many."""
    if len(paper.not_run) <= LISTED:
        return _not_run_list(paper)
    names = dict.fromkeys(plan.source for plan in paper.not_run)
    named = b.Paragraph((f"{'; '.join(names)}. ", b.Text("Titles and commands", link=paper.details)))
    return [b.Section("Not run", (named,), folded=True, note=_number(paper, len(names)))]


@section("details", at=70)
def not_run_listed(paper: PaperPage) -> list[b.Block]:
    """The list of the tables and figures that the paper's page only names."""
    return _not_run_list(paper) if len(paper.not_run) > LISTED else []


def _not_run_list(paper: PaperPage) -> list[b.Block]:
    lines = tuple((f"{plan.source}: {plan.title}. ", b.Text(plan.command.rpartition("/")[2], "code")) for plan in paper.not_run)
    if not lines:
        return []
    intro = b.Paragraph((NOT_RUN, b.Text(paper.not_run[0].command, "code"), "."))
    return [b.Section("Not run", (intro, b.Bullets(lines)), folded=True, note=_number(paper, len(lines)))]


def _number(paper: PaperPage, number: int) -> str:
    figures = any(is_figure(plan.table) for plan in paper.not_run)
    return f"{number} tables and figures" if figures else some(number, "table")
