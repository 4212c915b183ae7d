"""Paper text against authors' code, our deviations, known gaps; how to make a page again."""

from fedrepro.config.plan import Plan
from fedrepro.config.schema import Disagreement
from fedrepro.console import some
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b


@section("table", at=120)
def of_a_table(table: Exhibit) -> list[b.Block]:
    """The disagreements of paper and authors' code, our deviations, and the known gaps."""
    return [*_disagreements(table.plan), *_deviations(table.plan), *_gaps(table.plan)]


@section("paper", at=100)
def of_a_paper(paper: PaperPage) -> list[b.Block]:
    """Our deviations, at scale full, where numbers are judged."""
    return _deviations(paper.plan) if paper.plan.scale == "full" else []


@section("details", at=80)
def in_detail(paper: PaperPage) -> list[b.Block]:
    """What the paper's page does not have."""
    deviations = [] if paper.plan.scale == "full" else _deviations(paper.plan)
    return [*_disagreements(paper.plan), *deviations, *_gaps(paper.plan)]


@section("table", at=130)
def make_a_table_again(table: Exhibit) -> list[b.Block]:
    """The command that makes the report."""
    return [b.Section("Make it again", (b.Commands((table.plan.command,)),))]


@section("paper", at=110)
def make_a_paper_again(paper: PaperPage) -> list[b.Block]:
    """A command for each table, and one for the page."""
    commands = (*(table.plan.command for table in paper.tables), paper.command)
    return [b.Section("Make it again", (b.Commands(commands),), folded=True, note=paper.command)]


def _disagreements(plan: Plan) -> list[b.Block]:
    if not plan.disagreements:
        return []
    rows = tuple((d.what, d.paper, d.authors_code, d.followed, _other(d)) for d in plan.disagreements)
    names = b.heads("what", "paper", "authors' code", "followed", "the other one, in params.yaml")
    table = b.Grid("Paper text against authors' code", names, rows)
    return [b.Section("Where the paper contradicts itself or its authors' code", (table,), True, some(len(rows), "place"))]


def _deviations(plan: Plan) -> list[b.Block]:
    pairs = tuple((deviation.id, (deviation.text,)) for deviation in plan.deviations)
    return [b.Section("Where we deviate from the paper", (b.Pairs(pairs),), True, some(len(pairs), "place"))] if pairs else []


def _gaps(plan: Plan) -> list[b.Block]:
    gaps = plan.known_gaps
    return [b.Section("Known gaps", (b.Bullets(gaps),), True, f"{len(gaps)}")] if gaps else []


def _other(disagreement: Disagreement) -> b.Line:
    """Returns the lines of params.yaml that run the other variant, `methods.fedlaw.feddyn.norm: plain`; empty if none can."""
    paths = _paths("", disagreement.other) if disagreement.other else []
    return b.joined((b.Text(path, "code") for path in paths), " ") or ""


def _paths(above: str, value: object) -> list[str]:
    if isinstance(value, dict):
        return [path for key, below in value.items() for path in _paths(f"{above}.{key}" if above else str(key), below)]
    return [f"{above}: {str(value).lower() if isinstance(value, bool) else value}"]
