"""What a sentence may ask for: one function per form of `fedrepro.exhibits.prose.fill`, which describes them. Pure."""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from fedrepro.choices import require_known
from fedrepro.config.prose import Field
from fedrepro.config.reading import Reading, make
from fedrepro.errors import UserError
from fedrepro.exhibits.cells import COMPARED, Cell, judge_as_mean_of
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.judge import DECIDED, VERDICTS
from fedrepro.exhibits.statistics import interval, mean, mean_of_all, paired_differences, printed_gap, slope_over
from fedrepro.exhibits.verdict import STATUSES
from fedrepro.registry import named_arguments, unknown

T = TypeVar("T")
RISE = "rise"  # of gains over columns


class Waits(Exception):
    """A number has no evidence yet; the message says which."""


@dataclass(frozen=True)
class Quantity:
    """A number, or words; how it is written."""

    value: float | str
    unit: str = "percent"
    signed: bool = False

    @property
    def number(self) -> float:
        """Rounded as differences of printed numbers are; nan of words."""
        return math.nan if isinstance(self.value, str) else round(self.value, 6)


@dataclass(frozen=True)
class Facts:
    """What sentences are filled from: tables by name (`own` where a place names none), verdicts of claims, distances.
    `readings`: how many readings have one."""

    tables: Mapping[str, Exhibit]
    own: str | None = None
    claims: Mapping[str, str] = field(default_factory=dict)
    distances: Mapping[str, float | None] = field(default_factory=dict)
    readings: int = 0


def _places(request: Field, facts: Facts, where: str) -> list[tuple[Exhibit, str, str]]:
    """Returns (table, row, column) of each place; the row of a gain is still `row-baseline`."""
    parts = request.place.split("/")
    if len(parts) == 2 and facts.own:
        parts = [facts.own, *parts]
    if len(parts) != 3:
        raise UserError(f"{where}: {request.place!r} is no place; write {'row/column' if facts.own else 'table/row/column'}")
    table, rows, columns = parts
    require_known(where, "table", table, sorted(facts.tables))
    exhibit = facts.tables[table]
    for column in columns.split(","):
        require_known(where, "column", column, sorted(exhibit.columns))
    return [(exhibit, row, column) for row, column in itertools.product(rows.split(","), columns.split(","))]


def _cell(exhibit: Exhibit, row: str, column: str, where: str) -> Cell:
    keys = [entry.key for entry in exhibit.plan.rows]
    require_known(where, "row", row, keys)
    cell = exhibit.cell(row, column)
    if cell is None:
        raise UserError(f"{where}: {row}, {column}: there is no such cell")
    return cell


def _per_seed(request: Field, exhibit: Exhibit, row: str, column: str, where: str) -> tuple[dict[int, float], str]:
    """Returns seed -> value, and the unit. Waits where a seed has none, and where seeds are of different code."""
    cell, metric, read = _cell(exhibit, row, column, where), request.option("metric"), request.option("read")
    values: dict[int, float | None] = cell.per_seed
    unit = cell.metric.unit
    if metric or read:
        receipts = exhibit.evidence.get(cell.run_id or "", {})
        default = cell.place.reading
        call = make(read) if read else default.call
        reading = Reading(metric, call) if metric else default._replace(call=call)
        if metric and any(reading.curve not in receipt.curves for receipt in receipts.values()):
            receipt = next(iter(receipts.values()))
            raise UserError(f"{where}: {unknown('metric', metric, sorted(receipt.curves))}")
        values = {seed: receipt.value(reading) if receipt.has(reading) else None for seed, receipt in receipts.items()}
        unit = "ratio" if metric and metric != cell.metric.name else unit
    values = _at_seed(values, request)
    present = {seed: value for seed, value in values.items() if value is not None}
    if not present or len(present) < len(values) or cell.mixed:
        raise Waits(f"{exhibit.plan.source}: {exhibit.name(row, column)}")
    return present, unit


def _at_seed(by_seed: dict[int, T], request: Field) -> dict[int, T]:
    """Returns what belongs to the seeds that the field names; everything where it names none."""
    seeds = {int(text) for text in (request.option("seed") or "").split(";") if text}
    return {seed: value for seed, value in by_seed.items() if not seeds or seed in seeds}


def _values_by_seed(request: Field, facts: Facts, where: str) -> list[tuple[dict[int, float], str]]:
    """Returns seed -> value at each place, and the unit."""
    return [_per_seed(request, *place, where) for place in _places(request, facts, where)]


def _means(request: Field, facts: Facts, where: str) -> list[Quantity]:
    combinations = itertools.product(_places(request, facts, where), request.each("metric", ";"))
    by_place = [_per_seed(metric_request, *place, where) for place, metric_request in combinations]
    return [Quantity(mean([*values.values()]), unit) for values, unit in by_place]


def _seeds(request: Field, facts: Facts, where: str) -> list[Quantity]:
    return [Quantity(value, unit) for values, unit in _values_by_seed(request, facts, where) for value in values.values()]


def _deviations(request: Field, facts: Facts, where: str) -> list[Quantity]:
    by_place = _values_by_seed(request, facts, where)
    if any(len(values) < 2 for values, _ in by_place):
        raise Waits(f"{request.place}: one seed has no deviation")
    return [Quantity(statistics.stdev(values.values()), unit) for values, unit in by_place]


def _printed(request: Field, facts: Facts, where: str) -> list[Quantity]:
    numbers = []
    for exhibit, row, column in _places(request, facts, where):
        cell = _cell(exhibit, row, column, where)
        if cell.printed is None:
            raise UserError(f"{where}: {row}, {column}: the paper prints no such number")
        numbers.append(Quantity(cell.printed, cell.metric.unit))
    return numbers


def _differences(request: Field, facts: Facts, where: str) -> list[Quantity]:
    printed_numbers = _printed(request, facts, where)
    means = _means(request, facts, where)
    if len(means) != len(printed_numbers):
        raise UserError(f"{where}: one metric has a printed number; name one")
    couples = zip(means, printed_numbers, strict=True)
    return [Quantity(measured.number - printed.number, measured.unit, signed=True) for measured, printed in couples]


def _margins(request: Field, facts: Facts, where: str) -> list[Quantity]:
    """Returns the margin of each cell. Waits where a cell has none."""
    margins = []
    for exhibit, row, column in _places(request, facts, where):
        cell = _cell(exhibit, row, column, where)
        if cell.margin is None:
            raise Waits(f"{exhibit.plan.source}: {exhibit.name(row, column)}: no margin")
        margins.append(Quantity(cell.margin, cell.metric.unit))
    return margins


def _pair(exhibit: Exhibit, rows: str, where: str) -> tuple[str, str]:
    """Splits `fedavg+gh-fedavg` into (row, baseline), whatever hyphens keys have."""
    keys = {entry.key for entry in exhibit.plan.rows}
    parts = rows.split("-")
    for at in range(1, len(parts)):
        row, baseline = "-".join(parts[:at]), "-".join(parts[at:])
        if row in keys and baseline in keys:
            return row, baseline
    raise UserError(f"{where}: {rows!r} is no pair of rows; write row-baseline with rows among {', '.join(sorted(keys))}")


def _paired(request: Field, facts: Facts, where: str) -> list[tuple[list[float], str]]:
    """Returns the differences of each pair at each seed, and their unit; with `as=rise` how far a line through them rises, in
    the unit of the first."""
    differences: list[dict[int, float]] = []
    units: list[str] = []
    for exhibit, rows, column in _places(request, facts, where):
        couple = [_per_seed(request, exhibit, row, column, where) for row in _pair(exhibit, rows, where)]
        units.append(couple[0][1])
        differences.append(
            {seed: gap for seed, gap in paired_differences(couple[0][0], couple[1][0]).items() if gap is not None}
        )
    if RISE in (request.option("as") or "").split(";"):
        seeds = [seed for seed in differences[0] if all(seed in by_seed for by_seed in differences)]
        differences = [{seed: slope_over([by_seed[seed] for by_seed in differences]) for seed in seeds}]
    if not all(differences):
        raise Waits(f"{request.place}: the rows have no seed in common")
    return [([*gaps.values()], unit) for gaps, unit in zip(differences, units, strict=False)]


def _gain(request: Field, facts: Facts, where: str) -> list[Quantity]:
    return [Quantity(mean(gaps), unit, signed=True) for gaps, unit in _paired(request, facts, where)]


def _gains(request: Field, facts: Facts, where: str) -> list[Quantity]:
    return [Quantity(gap, unit, signed=True) for gaps, unit in _paired(request, facts, where) for gap in gaps]


def _interval(request: Field, facts: Facts, where: str) -> list[Quantity]:
    """Returns the lower end of each interval, then the upper one."""
    bounds = []
    for gaps, unit in _paired(request, facts, where):
        ends = interval(gaps)
        if ends is None:
            raise Waits(f"{request.place}: one seed has no interval")
        bounds += [Quantity(end, unit, signed=True) for end in ends]
    return bounds


def _sides(request: Field, facts: Facts, where: str) -> list[Quantity]:
    ends = [quantity.number for quantity in _interval(request, facts, where)]
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return [Quantity("above" if low > 0 else "below" if high < 0 else "open") for low, high in pairs]


def _rounds(request: Field, facts: Facts, where: str) -> list[Quantity]:
    """Returns means over seeds. Waits where a seed has no value."""
    means = []
    for exhibit, rows, column in _places(request, facts, where):
        needed = mean_of_all(exhibit.rounds_to_end(*_pair(exhibit, rows, where), column).values())
        if needed is None:
            raise Waits(f"{exhibit.plan.table}: {rows}, {column}")
        means.append(Quantity(needed, "count"))
    return means


def _printed_gain(request: Field, facts: Facts, where: str) -> list[Quantity]:
    quantities = []
    for exhibit, rows, column in _places(request, facts, where):
        row, baseline = (_cell(exhibit, key, column, where) for key in _pair(exhibit, rows, where))
        gap = printed_gap(row.printed, baseline.printed)
        if gap is None:
            raise UserError(f"{where}: {rows}, {column}: the paper does not print both numbers")
        quantities.append(Quantity(gap, row.metric.unit, signed=True))
    if RISE in (request.option("as") or "").split(";"):
        return [Quantity(slope_over([quantity.number for quantity in quantities]), quantities[0].unit, signed=True)]
    return quantities


def _settings(request: Field, facts: Facts, where: str) -> list[Quantity]:
    texts: dict[str, None] = {}
    key = request.option("key") or ""
    for exhibit, row, column in _places(request, facts, where):
        cell = _cell(exhibit, row, column, where)
        if cell.run_id is None:
            raise Waits(f"{request.place}: has no run")
        run = exhibit.plan.runs[cell.run_id]
        settings = run.config | named_arguments(run.method)
        require_known(where, "setting or argument", key, sorted(settings))
        texts[f"{settings[key]:,}" if isinstance(settings[key], int) else str(settings[key])] = None
    return [Quantity(text) for text in texts]


def _distances(request: Field, facts: Facts, where: str) -> list[Quantity]:
    require_known(where, "reading", request.place, sorted(facts.distances))
    distance = facts.distances[request.place]
    if distance is None:
        raise Waits(f"reading {request.place!r}")
    return [Quantity(distance, "percent")]


def _readings(request: Field, facts: Facts, where: str) -> list[Quantity]:
    require_known(where, "what is counted of readings", request.place, ["complete"])
    return [Quantity(float(facts.readings), "count")]


def _count(request: Field, facts: Facts, where: str) -> list[Quantity]:
    every_table = [table for table in facts.tables.values() if not table.plan.variant_of]
    name = request.option("table")
    if name:
        require_known(where, "table", name, sorted(facts.tables))
    tables = [facts.tables[name or facts.own or ""]] if name or facts.own else every_table
    printed_seeds = request.option("printed_seeds")  # of each printed number, in the place of what the paper says
    cells = [
        judge_as_mean_of(int(printed_seeds), table.cells, table.plan) if printed_seeds else table.cells for table in tables
    ]
    seeds = request.option("seeds")
    counted = (cell for cell in itertools.chain(*cells) if seeds is None or len(cell.per_seed) == int(seeds))
    statuses = {cell.number: cell.status for cell in counted}
    selected = COMPARED if request.place == "judged" else (request.place,)
    if not set(selected) <= {*STATUSES}:
        raise UserError(f"{where}: {unknown('status', request.place, [*COMPARED, 'judged'])}")
    return [Quantity(float(sum(status in selected for status in statuses.values())), "count")]


def _seed_counts(request: Field, facts: Facts, where: str) -> list[Quantity]:
    return [Quantity(float(len(_cell(*place, where).per_seed)), "count") for place in _places(request, facts, where)]


def _statuses(request: Field, facts: Facts, where: str) -> list[Quantity]:
    return [Quantity(_cell(*place, where).status) for place in _places(request, facts, where)]


def _diverged(request: Field, facts: Facts, where: str) -> list[Quantity]:
    """Returns the last round, from 1, that each seed recorded. Waits unless all of them diverged."""
    rounds = []
    for exhibit, row, column in _places(request, facts, where):
        receipts = _at_seed(exhibit.evidence.get(_cell(exhibit, row, column, where).run_id or "", {}), request)
        if not receipts or not all(receipt.diverged for receipt in receipts.values()):
            raise Waits(f"{exhibit.plan.source}: {exhibit.name(row, column)}: no seed, or one that has not diverged")
        rounds += [Quantity(float(len(receipt.curves["round"])), "count") for receipt in receipts.values()]
    return rounds


def _verdict(request: Field, facts: Facts, where: str) -> list[Quantity]:
    require_known(where, "claim", request.place, sorted(facts.claims))
    return [Quantity(facts.claims[request.place])]


def _claims(request: Field, facts: Facts, where: str) -> list[Quantity]:
    selected = DECIDED if request.place == "judged" else (request.place,)
    if not set(selected) <= {*VERDICTS}:
        raise UserError(f"{where}: {unknown('verdict', request.place, [*VERDICTS, 'judged'])}")
    return [Quantity(float(sum(verdict in selected for verdict in facts.claims.values())), "count")]


FORMS: dict[str, Callable[[Field, Facts, str], list[Quantity]]] = {
    "mean": _means,
    "seeds": _seeds,
    "deviation": _deviations,
    "printed": _printed,
    "difference": _differences,
    "margin": _margins,
    "gain": _gain,
    "gains": _gains,
    "interval": _interval,
    "side": _sides,
    "rounds": _rounds,
    "printed_gain": _printed_gain,
    "setting": _settings,
    "distance": _distances,
    "readings": _readings,
    "count": _count,
    "seed_count": _seed_counts,
    "status": _statuses,
    "diverged": _diverged,
    "verdict": _verdict,
    "claims": _claims,
}
