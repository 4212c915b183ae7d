"""Learning curves of a table: a picture for each column."""

from functools import partial

from fedrepro.console import some
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.pictures import learning
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b


@section("table", at=95)
def of_a_table(table: Exhibit) -> list[b.Block]:
    """The learning curves on the page of a table."""
    return curves(table, "figures")


def curves(table: Exhibit, folder: str) -> list[b.Block]:
    """Makes a folded section; none for a table without a curve. `folder`: of the pictures, seen from the page."""
    plan, pictures = table.plan, []
    for column, title in learning.columns(plan):
        lines = learning.curves(plan, table.evidence, column)
        if any(len(line.x) > 1 for line in lines):
            draw = partial(learning.draw, plan, column, title, lines)
            path = f"{folder}/{plan.table}/{style.file_name(column.key)}"
            pictures.append(b.Picture(path, f"Learning curves: {title}", draw=draw))
    if not pictures:
        return []
    blocks = (b.Paragraph(words.CURVES, soft=True), b.Pictures(tuple(pictures)))
    return [b.Section("Learning curves", blocks, folded=True, note=some(len(pictures), "picture"))]
