"""Sentences that several sections share: verdicts with their signs, what a table is, what was run, the rule."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fedrepro.config.plan import Plan
from fedrepro.config.schema import Deviation
from fedrepro.config.variation import PARTS
from fedrepro.console import some
from fedrepro.exhibits.cells import COMPARED, Cell
from fedrepro.exhibits.judge import Verdict
from fedrepro.exhibits.names import metric_label
from fedrepro.exhibits.settings import run_here, show
from fedrepro.exhibits.verdict import RULE, Status
from fedrepro.exhibits.write.blocks import Line, Look, Points, Text, joined
from fedrepro.grouping import grouped
from fedrepro.units import decimal

CURVES = (
    "Lines: mean over seeds; bands: from the lowest to the highest seed. After the last round of a seed that diverges, a thin "
    "line has the mean over the others. Values of the first fifth of the rounds may lie below the picture."
)
CLAIM_RULE = (
    "A claim is reproduced if its whole interval lies on the claimed side and the printed difference fits (within "
    f"{RULE.tolerance:g} point of our mean, or in an interval of at most {RULE.widest:g} points to either side), direction "
    "only if every seed or the whole interval lies on that side, contradicted if the whole interval lies on the other (a claim "
    "of several numbers needs more, by Holm's adjustment), and otherwise inconclusive. Claims that numbers are equal, or "
    "differences small or steady, have their own rules."
)
Counts = Mapping[Status, int] | Mapping[Verdict, int] | Mapping[str, int]
# Status or verdict -> sign and colour. Signs serve readers who see no colours.
SIGNS: dict[str, tuple[str, Look]] = {
    "reproduced": ("✓", "good"),
    "consistent": ("≈", "near"),
    "not reproduced": ("✗", "bad"),
    "direction only": ("↗", "fair"),
    "inconclusive": ("?", "fair"),
    "contradicted": ("✗", "bad"),
    "not run": ("–", ""),
    "not comparable": ("–", ""),
    "not printed": ("–", ""),
    "not judged": ("", ""),
}
BORROWED = ", and more of the cells with one seed, whose deviation comes from other cells."
LEGEND = "✓ reproduced, ≈ consistent, ? inconclusive, ✗ not reproduced"
MEANT = (
    f"✓ reproduced: our mean is within 1 point of print, and the 95 % margin is at most {RULE.widest:g} points; "
    "≈ consistent: further off, but within such a margin; "
    "✗ not reproduced: off by more than the margin and more than 1 point, or a seed has no value; "
    f"? inconclusive: none of these; the margin is wider than {RULE.widest:g} points, or nothing is known of how seeds differ."
)


def verdict(name: str, more: str = "") -> Text:
    """Returns a status or verdict with its sign, and `more` after it."""
    sign, look = SIGNS[name]
    return Text(f"{sign} {name}{more}", look)


def counts(numbers: Counts) -> str:
    """Writes `9 reproduced, 2 not reproduced`; what does not occur is left out."""
    return ", ".join(f"{number} {name}" for name, number in numbers.items() if number) or "none"


def counted(numbers: Counts) -> tuple[str | Text, ...]:
    """Returns the text of `counts` in pieces, each in the colour of its status or verdict."""
    return joined(Text(f"{number} {name}", SIGNS[name][1] or "soft") for name, number in numbers.items() if number) or ("none",)


def lost(number: int) -> str:
    """Counts the printed numbers that have runs and no mean: `1 more has a seed without a value`."""
    return f"{number} more {'has' if number == 1 else 'have'} a seed without a value"


def named(name: str, text: str) -> Line:
    """Makes a line that begins with a word in bold."""
    return (Text(name, "strong"), f" {text}")


def points(name: str, texts: Sequence[str]) -> Line | Points:
    """Puts texts under a name in bold: one stands behind it, several below it."""
    return named(name, texts[0]) if len(texts) == 1 else Points(Text(name, "strong"), tuple(texts))


def headed(answers: Iterable[tuple[str, Sequence[str]]]) -> list[Line | Points]:
    """Puts sentences under their headings: `Holds:`, or a question."""
    return [points(heading if heading.endswith("?") else f"{heading}:", texts) for heading, texts in answers]


def headline(plan: Plan) -> str:
    """Says whether the numbers are comparable with the printed ones. It is the first sentence of a page."""
    if plan.comparable:
        if not plan.prints:
            return "Full scale: settings of the paper, in a table of ours without printed numbers."
        protocol_text = "the paper's protocol, with values of ours where it states none"
        if plan.varied:
            protocol_text = f"a variation of {plan.varied.source}, which is not judged"
        return f"Full scale: {protocol_text}. Measured numbers may be compared with the printed ones."
    scale = plan.scale.capitalize() + (" scale, on a budget" if plan.on_budget else " scale")
    if not plan.prints:
        return f"{scale}: a table of ours. Nothing in it is printed, and nothing is judged."
    return f"{scale}: these numbers are not comparable with the printed ones, and nothing is judged."


def departures(deviations: Sequence[Deviation]) -> str:
    """Lists in one line where our settings depart from the paper's words; empty if nowhere."""
    short = [f"{deviation.short} ({deviation.id})" for deviation in deviations if deviation.short]
    return f"Our settings depart from the paper's words or add to them: {'; '.join(short)}." if short else ""


def protocol(plan: Plan) -> tuple[str, ...]:
    """Says what was run if that is not the paper's protocol, and how a variant differs from its table."""
    sentences = []
    if not plan.comparable:
        planned = len(plan.planned)
        share = [f"{planned} of {len(plan.cells)} cells"] if planned < len(plan.cells) else []
        seeds = f"seed{'' if len(plan.seeds) == 1 else 's'} {', '.join(map(str, plan.seeds))}"
        sentences.append(f"Run here: {'; '.join([*run_here(plan), seeds, *share])}.")
    if plan.varied:
        values = [f"in {key}: {', '.join(map(show, new))}" for key, new in plan.varied.values.items() if key != PARTS]
        source, labels = plan.varied.source, _rows_with(plan, plan.varied.values.get(PARTS, []))
        sentences += [f"It has rows that {source} does not have: {'; '.join(labels)}."] if labels else []
        sentences += [f"It differs from {source} {'; '.join(values)}."] if values else []
        sentences += [] if labels or values else [f"Its methods and settings are those of {source}."]
    return tuple(sentences)


def _rows_with(plan: Plan, parts: Sequence[str]) -> list[str]:
    """Returns the labels of rows whose runs have one of these parts."""
    keys = {cell.row for cell in plan.planned if any(call.name in parts for call in plan.run(cell).calls)}
    return [row.label for row in plan.rows if row.key in keys]


def rule(plan: Plan) -> str:
    """Says how statuses are decided."""
    if plan.stand_in:
        return "This is not the printed table: a measured cell is not comparable with its printed number, whatever the two are."
    if not plan.comparable:
        return f"At {plan.scale} scale a measured cell is not comparable with its printed number, whatever the two are."
    points = some(1, "point") if RULE.tolerance == 1 else f"{RULE.tolerance:g} points"
    return (
        f"The margin is half the width of the {100 * RULE.level:.0f} % prediction interval of the difference between our mean "
        "and the printed number. The standard deviation over seeds behind it is that of the cell, drawn towards what all "
        "measurements of this metric in this paper and at this scale have (Smyth, 2004). So a run has the same margin in every "
        "table. "
        f"{_repetitions(plan)} Not reproduced: the difference is larger than the margin and than {points}, or a seed "
        "has no value: it diverged before the rounds that are read, or did not reach the target. "
        f"Otherwise inconclusive: the margin is wider than {RULE.widest:g} points, or nothing is known of how seeds differ, so "
        "that these runs cannot tell. "
        f"Otherwise reproduced: the difference is at most {points}. Otherwise consistent."
    )


def _repetitions(plan: Plan) -> str:
    """Says how many seeds a printed number is the mean of, or what the margin assumes."""
    seeds = plan.printed_seeds
    if seeds.value is None:
        return f"The number of seeds behind a printed number is unknown ({seeds.source}). The margin assumes {seeds.assumed}."
    return f"A printed number is the mean of {some(seeds.value, 'seed')} ({seeds.source})."


def outside(cells: Iterable[Cell]) -> str:
    """Counts the cells outside their margin, and how many chance would put there; empty if nothing is judged."""
    compared = [cell for cell in cells if cell.margin is not None and cell.difference is not None and cell.status in COMPARED]
    judged = {cell.number: cell for cell in compared}
    if not judged:
        return ""
    outer = [cell for cell in judged.values() if abs(cell.difference or 0.0) > (cell.margin or 0.0)]
    out, passed = len(outer), sum(cell.status == "reproduced" for cell in outer)
    subject = "It" if out == 1 else f"{passed} of them"
    counts = f" {subject} still count{'s' if passed == 1 else ''} as reproduced"
    one_point = f"{counts}, since a difference of up to one point is tolerated." if passed else ""
    chance = (1 - RULE.level) * len(judged)
    lie = "lies outside its" if out == 1 else "lie outside their"
    borrowed = BORROWED if any(len(cell.per_seed) == 1 for cell in judged.values()) else "."
    return (
        f"{out} of {len(judged)} judged numbers {lie} margin.{one_point} If every printed number came from the same "
        f"distribution as ours, about {chance:.1f} would lie outside by chance{borrowed}"
    )


def told_apart(pairs: int, passed: int) -> str:
    """Says how often the number printed for another row would count as reproduced; empty without such pairs."""
    if not pairs:
        return ""
    return f"Compared with the number printed for another row, {passed} of {some(pairs, 'mean')} would count as reproduced."


def near(reproduced: int, well_within: int) -> str:
    """Says how many reproduced numbers have their whole margin near print; empty without any."""
    if not reproduced:
        return ""
    if not well_within:
        return (
            f"None of {some(reproduced, 'reproduced number')} has its whole margin within 1 point of print. "
            "Only our mean is known to be that near."
        )
    others = " For the others only our mean is known to be that near." if well_within < reproduced else ""
    has = "has its" if well_within == 1 else "have their"
    return f"{well_within} of {some(reproduced, 'reproduced number')} {has} whole margin within 1 point of print.{others}"


def spreads(plan: Plan, cells: Iterable[Cell]) -> str:
    """Says how far seeds usually lie apart, for each quantity; empty if nothing is compared."""
    quantities = {cell.place.reading.quantity for cell in cells} if plan.comparable else set()
    texts = []
    for quantity, spread in plan.spreads.items():
        if quantity in quantities:
            texts.append(
                f"{metric_label(quantity)}: {spread.deviation:.3f}, worth {spread.freedom:.2f} degrees of freedom, "
                f"from {spread.measurements} measurements"
            )
    return f"What each deviation is drawn towards. {'; '.join(texts)}." if texts else ""


def measured(cell: Cell) -> str:
    """Returns the mean, or the reason why there is none."""
    if cell.mean is not None:
        return decimal(cell.mean, cell.digits)
    if cell.mixed:
        return "seeds of different code or data"
    lost, present = cell.none, [value for value in cell.per_seed.values() if value is not None]
    if present and len(present) < len(cell.per_seed):
        return f"{lost} at {len(cell.per_seed) - len(present)} of {len(cell.per_seed)} seeds"
    return lost if cell.per_seed else "not run"


def spread(cell: Cell) -> str:
    """Writes `± 0.21 (3)`; with one seed there is no spread to show."""
    std = "" if cell.std is None else f"± {decimal(cell.std, cell.digits)} "
    return f"{std}({len(cell.per_seed)})"


def remark(cell: Cell) -> str:
    """Says why seeds are missing and which ones diverged after they were read, and repeats the note on the printed number."""
    ends = [
        f"seed {seed} diverged later, in round {len(receipt.curves['round'])}"
        for seed, receipt in cell.receipts.items()
        if receipt.diverged and not receipt.diverges(cell.place.reading)
    ]
    return "; ".join(text for text in (cell.reason, *ends, cell.place.note) if text)


def not_run(cells: Sequence[Cell]) -> str:
    """Writes `Not run: 80 of 96 cells (76: not run yet; 4: this pair does not exist).`; empty when all have values."""
    reasons = Counter(cell.reason or "not run yet" for cell in cells if cell.status == "not run")
    if not reasons:
        return ""
    listing = "; ".join(f"{number}: {reason}" for reason, number in reasons.items())
    return f"Not run: {reasons.total()} of {len(cells)} cells ({listing})."


def together(plan: Plan) -> str:
    """Names rows, and columns, that read the same runs in the same way in all cells; empty if there are none."""
    rows = {row.key: row.label for row in plan.rows}
    columns = {column.key: column.title for column in plan.columns}
    cells = {(place.row, place.column): place.run_id and (place.run_id, place.metric, place.read) for place in plan.cells}
    turned = {(column, row): cell for (row, column), cell in cells.items()}
    what = "the settings of this scale" if not plan.comparable else "these settings"
    same = _same(rows, columns, cells) + _same(columns, rows, turned)
    return " ".join(f"{labels} are one run here: {what} make them the same." for labels in same)


def _same(names: dict[str, str], across: dict[str, str], cells: Mapping[tuple[str, str], object]) -> list[str]:
    """Joins the names whose cells are equal all across; names without any run are left out."""
    by_cells = grouped((tuple(cells.get((key, other)) for other in across), name) for key, name in names.items())
    return [" and ".join(labels) for runs, labels in by_cells.items() if any(runs) and len(labels) > 1]


def page_of(plan: Plan) -> str:
    """Returns the link from a paper's page to that of a table, beside it."""
    return f"./{plan.table}.page"
