"""How a claim's numbers come from its table: one function per kind of claim, whose docstring the page prints as the rule.

Each returns (the numbers that are judged, numbers that are only shown beside them).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from fedrepro import units
from fedrepro.config.claims import Across, Difference, Equal, Level, Small, Speed, Steady, Trend, claims_path
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.statistics import interval, mean, paired_differences, printed_gap, slope_over


@dataclass(frozen=True)
class Number:
    """A number with its value at each seed. `side` of `reference` is claimed: 1 above, -1 below, 0 neither."""

    label: str
    column: str  # key; of several, joined by commas
    per_seed: dict[int, float | None]  # None: the seed diverged before it was read
    runs: tuple[str, ...]
    printed: float | None = None
    missing: str = ""  # what has not run; empty: nothing
    reference: float = 0.0
    side: int = 0
    unit: str = "percent"
    signed: bool = True  # a difference, whose sign is written
    against: float | None = None  # the printed value that a difference is taken from: a loss's point is a share of it
    none: str = "diverged"  # what a seed without a value did

    @property
    def values(self) -> list[float]:
        """The values of the seeds that finished."""
        return [value for value in self.per_seed.values() if value is not None]

    @property
    def whole(self) -> bool:
        """Whether every seed has a value, and there is one at least."""
        return bool(self.per_seed) and None not in self.per_seed.values()

    @property
    def mean(self) -> float | None:
        """The mean over seeds; None where a seed is missing or diverged."""
        return round(mean(self.values), 6) if self.whole else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % t-interval of the mean over paired seeds; None with one seed, or where a seed has no value."""
        ends = interval(self.values) if self.whole else None
        return ends and (round(ends[0], 6), round(ends[1], 6))

    @property
    def point(self) -> float:
        """One point in its unit."""
        return units.unit(self.unit).one_point(self.against)

    def show(self, value: float) -> str:
        """Writes a value in its unit, `+3.21` or `1.043`, with a true minus."""
        return units.unit(self.unit).text(value, "+" if self.signed else "")


Numbers = tuple[list[Number], list[Number]]


def difference(claim: Difference, table: Exhibit) -> Numbers:
    """The difference between two rows in a column, on the side on which the printed difference lies; or ahead, where the claim
    is one of the paper's text. Ahead is more where more is better, else less."""
    return _gaps(claim, table, claim.side == "ahead"), []


def trend(claim: Trend, table: Exhibit) -> Numbers:
    """The difference between two rows, column by column in the order listed. A straight line is fitted to it; the number is how
    far the line rises (falls: below zero) from the first column to the last, for ours and for the printed differences."""
    return _rises(claim, table, 1 if claim.direction == "rises" else -1)


def _rises(claim: Trend | Steady, table: Exhibit, side: int) -> Numbers:
    judged, shown = [], []
    for row, baseline in claim.compared:
        gaps = [_gap(table, (row, column), (baseline, column)) for column in claim.columns]
        label = f"{table.name(row)} − {table.name(baseline)}: rise over {len(gaps)} columns"
        judged.append(_over(gaps, slope_over, label, side))
        shown += gaps
    return judged, shown


def equal(claim: Equal, table: Exhibit) -> Numbers:
    """The two rows are claimed to be identical. Reproduced: the difference is exactly 0 in every seed. Direction only: it is
    not, but nowhere more than 1 point. Contradicted: the 95 % t-interval of the mean difference over the paired seeds leaves 0
    out and that mean is more than 1 point. Otherwise, and where a seed diverged or did not reach its target: inconclusive."""
    return _gaps(claim, table), []


def small(claim: Small, table: Exhibit) -> Numbers:
    """The difference between two rows is claimed to be at most so much, either way; how much is our choice where the paper does
    not say. Reproduced: the whole 95 % t-interval of the mean difference over the paired seeds lies within the bound. Direction
    only: every seed does. Contradicted: the whole interval lies beyond. Otherwise, and where a seed diverged or did not reach
    its target: inconclusive."""
    return _gaps(claim, table), []


def steady(claim: Steady, table: Exhibit) -> Numbers:
    """The difference between two rows is claimed to change over the columns by no more than a bound, either way. A line is
    fitted to it; the number is how far the line rises from the first column to the last. Reproduced: the whole 95 %
    t-interval of its mean over seeds lies within the bound. Direction only: every seed does. Contradicted: the whole interval
    lies beyond. Otherwise, and where a seed diverged or did not reach its target: inconclusive."""
    return _rises(claim, table, 0)


def across(claim: Across, table: Exhibit) -> Numbers:
    """A row in one column minus the same row in another, on the side on which the printed difference lies; or ahead, where the
    claim is one of the paper's text. Ahead is more where more is better, else less. Where the claim is that nothing is lost,
    the side begins at a bound of ours behind zero."""
    first, second = claim.columns
    gaps = [_gap(table, (row, first), (row, second), claim.side == "ahead") for row in claim.rows]
    bound = f" (at most {claim.behind:g} behind)" if claim.behind else ""
    return [replace(gap, label=gap.label + bound, reference=-gap.side * claim.behind) for gap in gaps], []


def level(claim: Level, table: Exhibit) -> Numbers:
    """A metric that every round of a run records, as its mean over the rounds or as the last round has it; or what a cell
    shows. It is claimed to lie on one side of the value named, which is a bound of ours where the paper has none."""
    return [_level(claim, table, row, column) for row, column in product(claim.rows, claim.columns)], []


def _level(claim: Level, table: Exhibit, row: str, column: str) -> Number:
    missing, name, none = table.missing((row, column)), table.name(row, column), "diverged"
    if claim.metric is None:
        cell = table.cell(row, column)
        none = cell.none if cell else none
        per_seed, unit, label = dict(cell.per_seed) if cell else {}, cell.metric.unit if cell else "percent", f"{name} ("
    else:
        last = claim.read == "last"
        curves = table.curves(row, column, claim.metric)
        if not missing and any(curve == {} for curve in curves.values()):
            missing = f"{table.plan.table}: {row}, {column}: the runs record no {claim.metric}"
        # None, of a seed that diverged, stays; an empty curve has no such metric.
        recorded = {seed: None if curve is None else [*curve.values()] for seed, curve in curves.items() if curve != {}}
        per_seed = {seed: None if values is None else values[-1] if last else mean(values) for seed, values in recorded.items()}
        unit, label = claim.unit, f"{claim.metric} of {name} ({'in the last round, ' if last else ''}"
    return Number(
        f"{label}{claim.side} {claim.value:g})",
        column,
        per_seed,
        _runs(table, (row, column)),
        missing=missing,
        reference=claim.value,
        side=1 if claim.side == "above" else -1,
        unit=unit,
        signed=False,
        none=none,
    )


def speed(claim: Speed, table: Exhibit) -> Numbers:
    """The rounds that a row needs to reach, for the first time, the value that the other row ends with, as a share of the
    rounds that the other itself needs for it; below 1 is claimed. A row that never gets there counts as needing one round more
    than it was given. The paper prints no such number."""
    judged, shown = [], []
    for (row, baseline), column in product(claim.compared, claim.columns):
        missing, end = table.missing((row, column), (baseline, column)), table.cell(baseline, column)
        if end and end.place.reading.derived:
            where = f"{claims_path(Path(), table.plan.paper)}: {claim.id}: {column}"
            raise UserError(f"{where} shows {end.place.reading.quantity}; kind speed needs a column with values of the metric")
        needed = [table.rounds_to_end(key, baseline, column) for key in (row, baseline)]
        target = f"rounds to the end of {table.name(baseline, column)}"
        shares = {seed: _ratio(needed[0][seed], needed[1][seed]) for seed in needed[0] if seed in needed[1]}
        about: dict[str, Any] = {"missing": missing, "unit": "ratio", "signed": False}
        runs = _runs(table, (row, column), (baseline, column))
        judged.append(
            Number(f"{table.name(row)}: share of the {target}", column, shares, runs, reference=1.0, side=-1, **about)
        )
        about["unit"] = "rounds"
        for key, rounds in zip((row, baseline), needed, strict=True):
            shown.append(Number(f"{table.name(key)}: {target}", column, rounds, _runs(table, (key, column)), **about))
    return judged, shown


KINDS: dict[str, Callable[..., Numbers]] = {
    kind.__name__: kind for kind in (difference, trend, equal, small, steady, across, level, speed)
}


def mean_of(numbers: Sequence[Number]) -> Number:
    """Makes one number of several: their mean at each seed."""
    sides = {number.side for number in numbers}
    combined = _over(numbers, mean, f"mean of the {len(numbers)} numbers below", side=sides.pop() if len(sides) == 1 else 0)
    if combined.side or combined.printed is None:
        return combined
    return replace(combined, side=_sign(combined.printed - combined.reference))


def _over(numbers: Sequence[Number], make: Callable[[list[float]], float], label: str, side: int) -> Number:
    """Makes one number of several, seed by seed; a seed that diverged in one of them has diverged."""
    first = numbers[0]
    seeds = [seed for seed in first.per_seed if all(seed in number.per_seed for number in numbers)]
    taken_from = [number.against for number in numbers if number.against is not None]

    def whole(values: list) -> float | None:
        return None if None in values else make(values)

    return Number(
        label=label,
        column=", ".join(dict.fromkeys(number.column for number in numbers)),
        per_seed={seed: whole([number.per_seed[seed] for number in numbers]) for seed in seeds},
        runs=tuple(dict.fromkeys(run for number in numbers for run in number.runs)),
        printed=whole([number.printed for number in numbers]),
        against=mean(taken_from) if taken_from else None,
        missing="; ".join(dict.fromkeys(number.missing for number in numbers if number.missing)),
        reference=first.reference,
        side=side,
        unit=first.unit,
        signed=first.signed,
        none=next((number.none for number in numbers if None in number.per_seed.values()), first.none),
    )


def _gaps(claim: Difference | Equal | Small, table: Exhibit, ahead: bool = False) -> list[Number]:
    """Subtracts the baseline from the row, for each pair in each column."""
    pairs = product(claim.compared, claim.columns)
    return [_gap(table, (row, column), (baseline, column), ahead) for (row, baseline), column in pairs]


def _gap(table: Exhibit, first: tuple[str, str], second: tuple[str, str], ahead: bool = False) -> Number:
    """Subtracts one cell from another, each at (row, column), seed by seed and as printed. `ahead`: the first is claimed to be
    better; otherwise the side is that of the printed difference."""
    cell, base = table.cell(*first), table.cell(*second)
    printed = printed_gap(cell.printed, base.printed) if cell and base else None
    columns = dict.fromkeys((first[1], second[1]))
    return Number(
        label=f"{table.name(first[0], first[1] if len(columns) > 1 else '')} − {table.name(*second)}",
        column=", ".join(columns),
        per_seed=paired_differences(cell.per_seed, base.per_seed) if cell and base else {},
        runs=_runs(table, first, second),
        printed=printed,
        missing=table.missing(first, second),
        side=(1 if cell is None or cell.metric.higher else -1) if ahead else _sign(printed or 0.0),
        unit=cell.metric.unit if cell else "percent",
        against=base.printed if base else None,
        none=next((side.none for side in (cell, base) if side and None in side.per_seed.values()), "diverged"),
    )


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a / b


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _runs(table: Exhibit, *places: tuple[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run for place in places if (cell := table.cell(*place)) for run in cell.runs))
