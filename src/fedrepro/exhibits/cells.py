"""What one table says, cell by cell: printed number, measured mean, difference, status. Pure functions of plan and evidence."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fedrepro.config.plan import Column, Place, Plan, Row
from fedrepro.config.reading import Reading
from fedrepro.config.table import Metric
from fedrepro.exhibits.receipt import Evidence, Receipt, why_mixed
from fedrepro.exhibits.statistics import mean, mean_of_all
from fedrepro.exhibits.verdict import RULE, STATUSES, Rule, Status, judged, margin
from fedrepro.grouping import grouped
from fedrepro.units import rounded, unit

COMPARED = ("reproduced", "consistent", "inconclusive", "not reproduced")
# The rule's neighbours: the page counts statuses under each of them, so that a reader need not trust one threshold.
ALTERNATIVES = tuple(Rule(tolerance, widest) for tolerance in (0.5, 1.0, 2.0) for widest in (1.0, 2.5, 5.0, 10.0))
USUAL = 10  # last rounds, which most papers that average take


@dataclass(frozen=True)
class Cell:
    """One number of a table, in its metric's unit.

    `per_seed`: None where a seed has no value, absent where it was not run. `mean` and `std`, the sample standard deviation,
    are over seeds, and there is none where a seed has no value: a mean over the others would be optimistic. `mixed`: how the
    seeds differ in code or data, so that they make no mean either. `reason`: why there is no number, or not from all seeds.
    `difference` is measured minus printed, `margin` half the width of the prediction interval of it; both None unless
    comparable. The best marks are of a column at the decimals shown; ties are all marked.
    """

    place: Place
    row: Row
    column: Column
    receipts: dict[int, Receipt] = field(repr=False)
    per_seed: dict[int, float | None]
    mean: float | None = None
    std: float | None = None
    readings: dict[str, Any] | None = None
    mixed: str = ""
    reason: str | None = None
    difference: float | None = None
    margin: float | None = None
    status: Status = "not run"
    best_measured: bool = False
    best_printed: bool = False

    @property
    def metric(self) -> Metric:
        """The metric of the number."""
        return self.place.metric

    @property
    def digits(self) -> int:
        """How many decimals pages show."""
        return self.metric.digits

    @property
    def printed(self) -> float | None:
        """The number that the paper prints; None without one."""
        return self.place.printed

    @property
    def run_id(self) -> str | None:
        """The run that the number is read from; None when none is planned."""
        return self.place.run_id

    @property
    def runs(self) -> tuple[str, ...]:
        """The keys of the runs behind the number."""
        return tuple(f"{self.run_id}/seed{seed}" for seed in self.per_seed)

    @property
    def none(self) -> str:
        """The word for its seeds without a value: `diverged` or `not reached`; of a diagnostic `no finite value`, or `no value`
        if some of them diverged."""
        lost = [self.receipts[seed].diverges(self.place.reading) for seed, value in self.per_seed.items() if value is None]
        if not self.place.diagnostic or all(lost):
            return unit(self.metric.unit).none
        return "no value" if any(lost) else "no finite value"

    @property
    def number(self) -> tuple[str | None, str, str | None, float | None]:
        """The identity of the pair (printed, measured). Cells with the same identity show the same pair."""
        return self.run_id, self.metric.name, self.place.read, self.printed

    @property
    def point(self) -> float:
        """The size of one point in the unit of the cell."""
        return unit(self.metric.unit).one_point(self.printed)

    @property
    def distance(self) -> float | None:
        """|measured - printed|, even where the two are not comparable; None where either is missing."""
        return None if self.mean is None or self.printed is None else abs(self.mean - self.printed)

    @property
    def arithmetic(self) -> Literal["portable", "native", "mixed"] | None:
        """The arithmetic of its runs. Evidence that does not record it is native."""
        kinds = {receipt.environment.arithmetic or "native" for receipt in self.receipts.values()}
        if len(kinds) == 1:
            return "portable" if "portable" in kinds else "native"
        return "mixed" if kinds else None


def tabulate(plan: Plan, evidence: Evidence, rule: Rule = RULE) -> list[Cell]:
    """Returns one `Cell` for each cell of the plan, in the plan's order."""
    cells = [_judge(_measure(plan, place, evidence), plan, rule) for place in plan.cells]
    return _mark_best(_mark_best(cells, "mean", "best_measured"), "printed", "best_printed")


def count_statuses(cells: Sequence[Cell]) -> dict[Status, int]:
    """Counts the cells of each status. Every status is a key."""
    counts = Counter(cell.status for cell in cells)
    return {status: counts[status] for status in STATUSES}


def well_within(cells: Sequence[Cell]) -> int:
    """Counts the reproduced cells with |difference| + margin within the tolerance: a test of equivalence would pass them
    too."""
    reaches = [(abs(cell.difference or 0.0) + (cell.margin or 0.0), cell) for cell in cells if cell.status == "reproduced"]
    return sum(round(reach, 6) <= RULE.tolerance * cell.point for reach, cell in reaches)


def exchanged(cells: Sequence[Cell]) -> tuple[int, int]:
    """How many pairs of a judged mean and the number printed for another row of its column there are, and how many of them the
    rule would call reproduced: how little or much a status tells methods apart. `cells` are of one table."""
    statuses = [
        judged(rounded(cell.mean - other.printed, 6), cell.margin, RULE, cell.point)
        for cell in cells
        for other in cells
        if cell.status in COMPARED and cell.mean is not None and other.printed is not None
        if other.column.key == cell.column.key and other.row.key != cell.row.key
    ]
    return len(statuses), statuses.count("reproduced")


def judge_as_mean_of(seeds: int, cells: Sequence[Cell], plan: Plan) -> list[Cell]:
    """Judges the judged cells as if each printed number were the mean of this many seeds."""
    assumed_plan = replace(plan, printed_seeds=plan.printed_seeds.model_copy(update={"value": seeds}))
    return [_judge(cell, assumed_plan, RULE) for cell in cells if cell.status in COMPARED]


def alternatives(cells: list[Cell], plan: Plan) -> list[tuple[Rule, dict[Status, int]]]:
    """Counts the statuses under the neighbours of the rule; empty when nothing is judged."""
    rules = ALTERNATIVES if plan.comparable and not plan.variant_of else ()
    return [(rule, count_statuses([_judge(cell, plan, rule) for cell in cells])) for rule in rules]


def _measure(plan: Plan, place: Place, evidence: Evidence) -> Cell:
    reading = place.reading
    receipts = {seed: receipt for seed, receipt in evidence.get(place.run_id or "", {}).items() if receipt.has(reading)}
    per_seed = {seed: receipt.value(reading) for seed, receipt in receipts.items()}
    values = [value for value in per_seed.values() if value is not None]
    diverged = [seed for seed, receipt in receipts.items() if receipt.diverges(reading)]
    mixed = why_mixed(receipts.values())
    over_seeds = None if mixed else mean_of_all(per_seed.values())
    return Cell(
        place,
        plan.row(place.row),
        plan.column(place.column),
        receipts,
        per_seed,
        mean=over_seeds,
        std=statistics.stdev(values) if over_seeds is not None and len(values) > 1 else None,
        readings=other_readings(reading, receipts) if place.run_id and not mixed else None,
        mixed=mixed,
        reason=_reason(place, plan.seeds, per_seed, diverged, mixed),
    )


def other_readings(reading: Reading, receipts: dict[int, Receipt]) -> dict[str, Any] | None:
    """Reads one cell in other ways: papers differ in whether they print the `last` round, the `best` one, or a mean of several,
    `mean_of_last` k, by k. All are means over seeds.

    k is the table's own and 10 where every seed has as many rounds, all measured, up to the round at which the table's own
    `reading` ends. None where there is no run, a seed diverged before that round, or the table reads something else than the
    metric's values: rounds to a target, or jumps. The best round is picked on the test set, which is optimistic.
    """
    if not receipts or reading.derived or any(receipt.diverges(reading) for receipt in receipts.values()):
        return None
    curves = [receipt.curves[reading.curve][: reading.until] for receipt in receipts.values()]
    found = [[value for value in curve if value is not None] for curve in curves]
    if not all(found):  # a diagnostic found no finite value
        return None
    best = max if reading.better == "higher" else min
    ks = sorted({reading.averaged or USUAL, USUAL})
    fitting = [k for k in ks if all(len(curve) >= k and None not in curve[-k:] for curve in curves)]
    return {
        "last": mean([values[-1] for values in found]),
        "best": mean([best(values) for values in found]),
        "mean_of_last": {k: mean([mean(values[-k:]) for values in found]) for k in fitting},
    }


def _reason(
    place: Place, seeds: tuple[int, ...], per_seed: dict[int, float | None], diverged: list[int], mixed: str
) -> str | None:
    """Says why a cell has no number, or not all of its seeds; None when there is nothing to say."""
    if place.run_id is None or place.reason:
        return place.reason or "no run is planned"
    if not per_seed:
        return "not run yet"
    lost = [seed for seed, value in per_seed.items() if value is None and seed not in diverged]
    missing = [seed for seed in seeds if seed not in per_seed]
    groups = (
        (diverged, per_seed, "diverged"),
        (lost, per_seed, "have no finite value" if place.diagnostic else "did not reach the target"),
        (missing, seeds, "not run yet"),
    )
    reasons = [f"the seeds are of {mixed}"] if mixed else []
    reasons += [
        f"{len(group)} of {len(among)} seeds {what}: {', '.join(map(str, group))}" for group, among, what in groups if group
    ]
    return "; ".join(reasons) or None


def _judge(cell: Cell, plan: Plan, rule: Rule) -> Cell:
    """Adds `difference`, `margin` and `status` by `rule`. Below full scale there is no difference.

    A table that varies another has differences and margins and is not judged: readings are tried with the printed number known.
    """
    if not cell.per_seed or cell.mixed:
        return replace(cell, status="not run")
    if cell.printed is None:
        return replace(cell, status="not printed")
    if not plan.comparable:
        return replace(cell, status="not comparable")
    if cell.mean is None:  # a seed diverged, did not reach its target, or a diagnostic found no finite value
        finite = not cell.place.diagnostic or any(receipt.diverges(cell.place.reading) for receipt in cell.receipts.values())
        return replace(cell, status="not judged" if plan.variant_of else "not reproduced" if finite else "inconclusive")
    values = [value for value in cell.per_seed.values() if value is not None]
    reach = margin(values, plan.spreads.get(cell.place.reading.quantity), plan.printed_seeds.assumed, rule.level)
    difference = round(cell.mean - cell.printed, 6)
    status = "not judged" if plan.variant_of else judged(difference, reach, rule, cell.point)
    return replace(cell, difference=difference, margin=reach, status=status)


def _mark_best(cells: list[Cell], attribute: str, mark: str) -> list[Cell]:
    """Marks the best value of each quantity in each column. A quantity that only one of several rows shows is not marked.

    A best mean is marked only if every row with a printed number (in a column without any, every row) has run and all means are
    over the same seeds: what is missing may be the better one.
    """
    in_column = Counter(cell.column.key for cell in cells)
    groups = grouped(((cell.column.key, cell.place.reading.quantity), cell) for cell in cells)
    best: set[tuple[str, str]] = set()
    for (column, _), group in groups.items():
        valued = [cell for cell in group if getattr(cell, attribute) is not None and cell.metric.ranked]
        awaited = [cell for cell in group if cell.printed is not None] or [c for c in group if c.run_id or c.place.tuned]
        waits = any(cell.status == "not run" for cell in awaited)
        even = attribute == "printed" or (len({frozenset(cell.per_seed) for cell in valued}) == 1 and not waits)
        if valued and even and not len(group) == 1 < in_column[column]:
            values = [rounded(getattr(cell, attribute), cell.digits) for cell in valued]
            top = max(values) if valued[0].metric.higher else min(values)
            best |= {(cell.row.key, column) for cell, value in zip(valued, values, strict=True) if value == top}
    return [replace(cell, **{mark: (cell.row.key, cell.column.key) in best}) for cell in cells]
