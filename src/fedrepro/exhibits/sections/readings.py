"""Which reading of a paper comes nearest to its printed numbers."""

from fedrepro.console import some
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b
from fedrepro.units import decimal

FITS = (
    "What the paper leaves open, and some of what it states, in the readings that were run; there may be others. The distance "
    "is the mean of |ours − printed| over the numbers of a table that readings were run for, in points; over all tables a "
    "number that several of them print counts once. The first reading is the nearest."
)


@section("details", at=20)
def readings(paper: PaperPage) -> list[b.Block]:
    """One row for each reading, one column for each table."""
    if not paper.fits:
        return []
    sources = {table.plan.table: table.plan.source for table in paper.tables}
    columns = ["reading", *(sources[name] for name in paper.fits[0].tables), "all", "numbers"]
    rows = []
    for fit in paper.fits:
        numbers = f"{fit.numbers}" + (f", {fit.missing} without a mean" if fit.missing else "")
        values = [decimal(value) for value in (*fit.tables.values(), fit.distance)]
        rows.append((fit.variant or "as in the tables themselves", *values, numbers))
    heads = b.heads(*columns, numbers=range(1, len(columns)))
    grid = b.Grid("Mean distance from the printed numbers, by reading", heads, tuple(rows))
    return [b.Section("Which reading fits best", (b.Paragraph(FITS), grid), folded=True, note=some(len(rows), "reading"))]
