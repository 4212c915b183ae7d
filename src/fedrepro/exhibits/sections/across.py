"""One method against another over all settings of a table, and the mean rank of each."""

from fedrepro.console import some
from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.comparisons import Comparison, Score
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.names import metric_label
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.statistics import mean
from fedrepro.exhibits.write import blocks as b
from fedrepro.units import decimal, rounded

ACROSS = (
    "One method against another over all settings of the table, each setting once (columns that read one run at several rounds "
    "count as one): wins, ties (the same at the decimals shown) and losses, mean difference, and the two-sided p-value of the "
    "exact Wilcoxon signed-rank test over settings; n settings cannot reach a p below 2^(1−n). As printed, and beside it as "
    "measured."
)
ORIENTATION = " The printed side is for orientation only: nothing here is comparable with it."
RANKS = (
    "Mean rank of each method over the {} columns in which every method has a value of one metric, 1 for the best; methods "
    "that tie share the mean of their ranks.{}"
)


@section("table", at=90)
def across(table: Exhibit) -> list[b.Block]:
    """Pairs of methods, then ranks. There is no section if no pair has two settings."""
    comparisons = table.comparisons
    if all(len(comparison.columns) < 2 for comparison in comparisons):
        return []
    names = ["method", "against", "metric"]
    names += [f"{what}, {side}" for side in ("printed", "measured") for what in ("wins–ties–losses", "mean difference", "p")]
    pairs = b.Grid("Methods across settings", b.heads(*names, numbers=range(3, 9)), tuple(map(_row, comparisons)))
    paragraph = b.Paragraph(ACROSS + ("" if table.plan.comparable else ORIENTATION))
    note = some(len(comparisons), "comparison")
    return [b.Section("Across settings", (paragraph, pairs, *_ranks(table)), folded=True, note=note)]


def _row(comparison: Comparison) -> b.Row:
    """Makes a row: `4–1–0`, `+4.85`, `0.125` for either side."""
    sides = [text for side in (comparison.printed, comparison.measured) for text in _score(side, comparison.metric.digits)]
    return (comparison.method.label, comparison.baseline.label, metric_label(comparison.quantity), *sides)


def _score(side: Score, digits: int) -> list[str]:
    if not side.settings:
        return ["–", "–", "–"]
    p = "–" if side.p_value is None else f"{side.p_value:.3g}"
    return [f"{side.wins}–{side.ties}–{side.losses}", decimal(side.mean_difference, digits, "+"), p]


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
    in_print = [cells for cells in settings if all(cell.printed is not None for cell in cells)]
    lines: list[tuple[float, b.Row]] = []
    for place, row in enumerate(rows):
        measured = mean([_rank(cells[place].mean, [cell.mean for cell in cells], cells[place]) for cells in settings])
        printed = [_rank(cells[place].printed, [cell.printed for cell in cells], cells[place]) for cells in in_print]
        lines.append((measured, (row.label, decimal(mean(printed), 1) if printed else "–", decimal(measured, 1))))
    ranked = tuple(line for _, line in sorted(lines, key=lambda entry: entry[0]))
    heads = b.heads("method", "mean rank, printed", "mean rank, measured", numbers=range(1, 3))
    over = "the same columns" if len(in_print) == len(settings) else f"{len(in_print)} of them"
    said = f" As printed over {over}, and beside it as measured." if in_print else ""
    return [b.Paragraph(RANKS.format(len(settings), said)), b.Grid("Mean rank of each method", heads, ranked)]


def _rank(value: float | None, values: list[float | None], cell: Cell) -> float:
    """Returns the rank of a value among all: 1 is the best. Values that read the same share the mean of their ranks."""
    sign = 1 if cell.metric.higher else -1
    shown = [sign * rounded(other or 0.0, cell.digits) for other in values]
    number = sign * rounded(value or 0.0, cell.digits)
    return sum(other > number for other in shown) + (sum(other == number for other in shown) + 1) / 2
