"""One method against another over all settings of a table, and the mean rank of each."""

from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.comparisons import Comparison, Score
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.names import metric_label
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.statistics import mean
from fedrepro.exhibits.write import blocks as b
from fedrepro.units import decimal, signed

ACROSS = (
    "One method against another over all settings of the table, each setting once (columns that read one run at several rounds "
    "count as one): wins, ties (the same at the decimals shown) and losses, mean difference, and the two-sided p-value of the "
    "exact Wilcoxon signed-rank test over settings; n settings cannot reach a p below 2^(1−n). As printed, and beside it as "
    "measured."
)
ORIENTATION = " The printed side is for orientation only: nothing here is comparable with it."
RANKS = (
    "Mean rank of each method over the {} settings in which every method has a value of one metric, 1 for the best; methods "
    "that tie share the mean of their ranks. As printed over the same settings, and beside it as measured."
)


@section("table", at=90)
def across(table: Exhibit) -> list[b.Block]:
    """Pairs of methods, then ranks. There is no section if no pair has two settings."""
    made = table.comparisons
    if all(len(one.columns) < 2 for one in made):
        return []
    names = ["method", "against", "metric"]
    names += [f"{what}, {side}" for side in ("printed", "measured") for what in ("wins–ties–losses", "mean difference", "p")]
    pairs = b.Grid("Methods across settings", b.heads(*names, numbers=range(3, 9)), tuple(map(_compared, made)))
    said = b.Paragraph(ACROSS + ("" if table.plan.comparable else ORIENTATION))
    note = f"{len(made)} comparisons"
    return [b.Section("Across settings", (said, pairs, *_ranks(table)), folded=True, note=note)]


def _compared(one: Comparison) -> b.Row:
    """`4–1–0`, `+4.85`, `0.125` for either side."""
    sides = [text for side in (one.printed, one.measured) for text in _score(side, one.metric.digits)]
    return (one.method.label, one.baseline.label, metric_label(one.quantity), *sides)


def _score(side: Score, digits: int) -> list[str]:
    if not side.settings:
        return ["–", "–", "–"]
    p = "–" if side.p_value is None else f"{side.p_value:.3g}"
    return [f"{side.wins}–{side.ties}–{side.losses}", signed(side.mean_difference, digits), p]


def _ranks(table: Exhibit) -> list[b.Block]:
    """Makes a grid of mean ranks. It needs three printed rows, and two settings in which all of them have a value."""
    rows = [row for row in table.plan.rows if row.printed]
    settings = []
    for column in table.plan.columns:
        cells = [cell for row in rows if (cell := table.cell(row.key, column.key)) and cell.mean is not None]
        if len(cells) == len(rows) and len({cell.place.reading.quantity for cell in cells}) == 1 and cells[0].metric.ranked:
            settings.append(cells)
    if len(settings) < 2 or len(rows) < 3:
        return []
    lines: list[tuple[float, b.Row]] = []
    for place, row in enumerate(rows):
        ours = mean([_rank(cells[place].mean, [cell.mean for cell in cells], cells[place]) for cells in settings])
        in_print = [cells for cells in settings if all(cell.printed is not None for cell in cells)]
        theirs = [_rank(cells[place].printed, [cell.printed for cell in cells], cells[place]) for cells in in_print]
        lines.append((ours, (row.label, decimal(mean(theirs), 1) if theirs else "–", decimal(ours, 1))))
    ranked = tuple(line for _, line in sorted(lines, key=lambda one: one[0]))
    heads = b.heads("method", "mean rank, printed", "mean rank, measured", numbers=range(1, 3))
    return [b.Paragraph(RANKS.format(len(settings))), b.Grid("Mean rank of each method", heads, ranked)]


def _rank(value: float | None, others: list[float | None], cell: Cell) -> float:
    """Returns the rank of a value among all: 1 is the best. Values that read the same share the mean of their ranks."""
    sign = 1 if cell.metric.higher else -1
    shown = [sign * round(one or 0.0, cell.digits) for one in others]
    own = sign * round(value or 0.0, cell.digits)
    return sum(one > own for one in shown) + (sum(one == own for one in shown) + 1) / 2
