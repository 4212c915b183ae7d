"""A table in the paper's own grid, and what its numbers show."""

from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.prose.answers import remarks
from fedrepro.exhibits.sections import grid, words
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b

FILES = {"CSV": "csv", "LaTeX": "tex", "JSON": "json"}  # name -> ending of a file beside the page


@section("table", at=20)
def numbers(table: Exhibit) -> list[b.Block]:
    """The table, and links to its files."""
    same = words.together(table.plan)
    paragraphs = [b.Paragraph(grid.caption(table.plan), soft=True), *([b.Paragraph(same)] if same else [])]
    links = b.joined(b.Text(name, link=f"./{table.plan.table}.{ending}") for name, ending in FILES.items())
    files = b.Paragraph(("The numbers as ", *links, "."), soft=True)
    return [b.Section("The table", (*paragraphs, grid.printed_grid(table), files))]


@section("table", at=30)
def what_they_show(table: Exhibit) -> list[b.Block]:
    """Sentences filled from the evidence."""
    blocks = remark_blocks(table)
    return [b.Section("What these numbers show", tuple(blocks))] if blocks else []


def remark_blocks(table: Exhibit) -> list[b.Block]:
    """Makes the remarks, and names the cells that further remarks need."""
    sentences, waiting = remarks(table)
    blocks: list[b.Block] = [b.Bullets(tuple(sentences))] if sentences else []
    if waiting:
        blocks.append(b.Paragraph(f"Further remarks wait for runs: {'; '.join(waiting)}."))
    return blocks
