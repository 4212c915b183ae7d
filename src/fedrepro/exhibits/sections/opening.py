"""What a table is, and whether its numbers may be compared with the printed ones: the first thing that its page says."""

from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b


@section("table", at=10)
def opening(table: Exhibit) -> list[b.Block]:
    """A banner, and one for warnings where numbers may be compared."""
    plan = table.plan
    departs = words.departures(plan.deviations) if plan.comparable and plan.prints else ""
    if departs and plan.varied:
        source = plan.varied.source
        departs = (
            f"Its settings depart from the paper's words where those of {source} do, but for what its rows and columns name."
        )
    sentences = (*words.protocol(plan), plan.scale_note, departs)
    first = (b.Text(words.headline(plan), "strong"), *(f" {sentence}" for sentence in sentences if sentence))
    if not plan.comparable:
        return [b.Banner((first, *table.warnings), good=False)]
    return [b.Banner((first,), good=True), *([b.Banner(table.warnings, good=False)] if table.warnings else [])]
