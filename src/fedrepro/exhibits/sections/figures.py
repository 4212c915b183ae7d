"""The figures of a paper: each with its caption, what is missing, and links to the data that it draws."""

from functools import partial

from fedrepro.console import some
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.kinds import make_kind
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b


@section("paper", at=80)
def figures(paper: PaperPage) -> list[b.Block]:
    """Every figure that has anything to draw. The others are listed with what has not run."""
    blocks = tuple(_figure(paper, figure) for figure in paper.figures)
    return [b.Section("Figures", blocks, folded=True, note=some(len(blocks), "figure"))] if blocks else []


def _figure(paper: PaperPage, figure: Exhibit) -> b.Section:
    plan = figure.plan
    stem = stem_of(paper, figure)
    where = (paper.folder / stem).as_posix()
    links = (b.Text("CSV", link=f"{where}.csv"), " and ", b.Text("JSON", link=f"{where}.json"))
    paragraphs = [b.Paragraph(text) for text in (plan.caption, *figure.warnings) if text]
    draw = partial(make_kind(plan.kind or "").draw, figure.figure)
    picture = b.Pictures((b.Picture(f"{stem}.svg", f"{plan.source}: {plan.title}", draw=draw),))
    data = b.Paragraph(("The data drawn, as ", *links, ". ", b.Text(plan.command, "code")))
    return b.Section(f"{plan.source}: {plan.title}", (*paragraphs, picture, data))


def stem_of(paper: PaperPage, figure: Exhibit) -> str:
    """Returns the path of a figure without its ending, seen from the page: its own file if that is up to date, else a copy."""
    name = figure.plan.table
    return name if name in paper.rendered else f"figures/index/{name}"
