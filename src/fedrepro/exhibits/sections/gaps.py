"""Gaps between methods: pictures, and the numbers that they show."""

from fedrepro.console import some
from fedrepro.exhibits.comparisons import Gap
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.sections.answer import gap_picture
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b

GAPS = (
    "Difference of two methods in each setting. Ours is the mean over seeds of the paired differences (both methods share "
    "partition, cohorts and initial model), with its 95 % t-interval where there are at least two seeds. Three seeds make a "
    "wide interval. A mark shows pairs of which a CPU trained one and a GPU the other: they end differently at the same seed."
)


@section("details", at=30)
def gaps(paper: PaperPage) -> list[b.Block]:
    """A folded section for each table."""
    if not paper.gaps:
        return []
    sections: list[b.Block] = [b.Paragraph(GAPS, soft=True)]
    for table in paper.own_tables:
        if table.gaps:
            source, pictures = table.plan.source, b.Pictures(tuple(map(gap_picture, table.gaps)))
            blocks = (pictures, _numbers(source, table.gaps))
            heading, note = f"{source}: {table.plan.title}", some(len(table.gaps), "pair")
            sections.append(b.Section(heading, blocks, folded=True, note=note))
    return [b.Section("Gaps between methods", tuple(sections), folded=True, note=some(len(paper.gaps), "pair"))]


def _numbers(source: str, gaps: list[Gap]) -> b.Grid:
    rows: list[b.Row] = []
    for gap in gaps:
        rows.append(b.Subheading(f"{gap.title}, in {gap.counted_in}"))
        for setting in gap.settings:
            ours = setting.reason or "" if setting.ours is None else setting.written(setting.ours)
            rows.append((setting.column.title, setting.written(setting.printed), ours, setting.interval, setting.seeds))
    heads = b.heads("setting", "printed", "measured", "95 % interval", "every seed", numbers=range(1, 4))
    return b.Grid(f"{source}: gaps between methods", heads, tuple(rows))
