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
from fedrepro.exhibits.statistics import interval, mean, paired_differences, printed_gap, slope_over
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
        return round(self.value, 6) if isinstance(self.value, float) else math.nan


@dataclass(frozen=True)
class Facts:
    """What sentences are filled from: tables by name (`own` where a place names none), verdicts of claims, distances."""

    tables: Mapping[str, Exhibit]
    own: str | None = None
    claims: Mapping[str, str] = field(default_factory=dict)
    distances: Mapping[str, float | None] = field(default_factory=dict)


def _places(asked: Field, facts: Facts, where: str) -> list[tuple[Exhibit, str, str]]:
    """(table, row, column) of each place; the row of a gain is still `row-baseline`."""
    parts = asked.place.split("/")
    if len(parts) == 2 and facts.own:
        parts = [facts.own, *parts]
    if len(parts) != 3:
        raise UserError(f"{where}: {asked.place!r} is no place; write {'row/column' if facts.own else 'table/row/column'}")
    table, rows, columns = parts
    require_known(where, "table", table, sorted(facts.tables))
    exhibit = facts.tables[table]
    for column in columns.split(","):
        require_known(where, "column", column, sorted(exhibit.columns))
    return [(exhibit, row, column) for row, column in itertools.product(rows.split(","), columns.split(","))]


def _cell(exhibit: Exhibit, row: str, column: str, where: str) -> Cell:
    known = [one.key for one in exhibit.plan.rows]
    require_known(where, "row", row, known)
    cell = exhibit.cell(row, column)
    if cell is None:
        raise UserError(f"{where}: {row}, {column}: there is no such cell")
    return cell


def _per_seed(asked: Field, exhibit: Exhibit, row: str, column: str, where: str) -> tuple[dict[int, float], str]:
    """seed -> value, and the unit. Waits where a seed has none, and where seeds are of different code."""
    cell, metric, read = _cell(exhibit, row, column, where), asked.option("metric"), asked.option("read")
    found: dict[int, float | None] = cell.per_seed
    unit = cell.metric.unit
    if metric or read:
        receipts = exhibit.evidence.get(cell.run_id or "", {})
        own = cell.place.reading
        call = make(read) if read else own.call
        reading = Reading(metric, call) if metric else own._replace(call=call)
        if metric and any(reading.curve not in one.curves for one in receipts.values()):
            one = next(iter(receipts.values()))
            raise UserError(f"{where}: {unknown('metric', metric, sorted(one.curves))}")
        found = {seed: one.value(reading) if one.has(reading) else None for seed, one in receipts.items()}
        unit = "ratio" if metric and metric != cell.metric.name else unit
    found = _at_seed(found, asked)
    known = {seed: value for seed, value in found.items() if value is not None}
    if not known or len(known) < len(found) or cell.mixed:
        raise Waits(f"{exhibit.plan.source}: {exhibit.name(row, column)}")
    return known, unit


def _at_seed(found: dict[int, T], asked: Field) -> dict[int, T]:
    """What belongs to the seeds that the field names; everything where it names none."""
    named = {int(one) for one in (asked.option("seed") or "").split(";") if one}
    return {seed: one for seed, one in found.items() if not named or seed in named}


def _known(asked: Field, facts: Facts, where: str) -> list[tuple[dict[int, float], str]]:
    """seed -> value at each place, and the unit."""
    return [_per_seed(asked, *place, where) for place in _places(asked, facts, where)]


def _means(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    every = itertools.product(_places(asked, facts, where), asked.each("metric", ";"))
    known = [_per_seed(one, *place, where) for place, one in every]
    return [Quantity(mean([*values.values()]), unit) for values, unit in known]


def _seeds(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    return [Quantity(value, unit) for values, unit in _known(asked, facts, where) for value in values.values()]


def _deviations(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    every = _known(asked, facts, where)
    if any(len(values) < 2 for values, _ in every):
        raise Waits(f"{asked.place}: one seed has no deviation")
    return [Quantity(statistics.stdev(values.values()), unit) for values, unit in every]


def _printed(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    found = []
    for exhibit, row, column in _places(asked, facts, where):
        cell = _cell(exhibit, row, column, where)
        if cell.printed is None:
            raise UserError(f"{where}: {row}, {column}: the paper prints no such number")
        found.append(Quantity(cell.printed, cell.metric.unit))
    return found


def _differences(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    couples = zip(_means(asked, facts, where), _printed(asked, facts, where), strict=True)
    return [Quantity(ours.number - theirs.number, ours.unit, signed=True) for ours, theirs in couples]


def _margins(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    """Waits where a cell has none."""
    found = []
    for exhibit, row, column in _places(asked, facts, where):
        cell = _cell(exhibit, row, column, where)
        if cell.margin is None:
            raise Waits(f"{exhibit.plan.source}: {exhibit.name(row, column)}: no margin")
        found.append(Quantity(cell.margin, cell.metric.unit))
    return found


def _pair(exhibit: Exhibit, rows: str, where: str) -> tuple[str, str]:
    """`fedavg+gh-fedavg` as (row, baseline), whatever hyphens keys have."""
    known = {one.key for one in exhibit.plan.rows}
    parts = rows.split("-")
    for at in range(1, len(parts)):
        row, baseline = "-".join(parts[:at]), "-".join(parts[at:])
        if row in known and baseline in known:
            return row, baseline
    raise UserError(f"{where}: {rows!r} is no pair of rows; write row-baseline with rows among {', '.join(sorted(known))}")


def _paired(asked: Field, facts: Facts, where: str) -> list[tuple[list[float], str]]:
    """The differences of each pair at each seed, and their unit; with `as=rise` how far a line through them rises."""
    found: list[dict[int, float]] = []
    unit = "percent"
    for exhibit, rows, column in _places(asked, facts, where):
        couple = [_per_seed(asked, exhibit, row, column, where) for row in _pair(exhibit, rows, where)]
        unit = couple[0][1]
        found.append({seed: gap for seed, gap in paired_differences(couple[0][0], couple[1][0]).items() if gap is not None})
    if RISE in (asked.option("as") or "").split(";"):
        seeds = [seed for seed in found[0] if all(seed in one for one in found)]
        found = [{seed: slope_over([one[seed] for one in found]) for seed in seeds}]
    if not all(found):
        raise Waits(f"{asked.place}: the rows have no seed in common")
    return [([*gaps.values()], unit) for gaps in found]


def _gain(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    return [Quantity(mean(gaps), unit, signed=True) for gaps, unit in _paired(asked, facts, where)]


def _gains(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    return [Quantity(gap, unit, signed=True) for gaps, unit in _paired(asked, facts, where) for gap in gaps]


def _interval(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    """Its lower end, and its upper one."""
    found = []
    for gaps, unit in _paired(asked, facts, where):
        ends = interval(gaps)
        if ends is None:
            raise Waits(f"{asked.place}: one seed has no interval")
        found += [Quantity(end, unit, signed=True) for end in ends]
    return found


def _rounds(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    """Means over seeds. Waits where a seed has no value."""
    found = []
    for exhibit, rows, column in _places(asked, facts, where):
        needed = [*exhibit.rounds_to_end(*_pair(exhibit, rows, where), column).values()]
        known = [one for one in needed if one is not None]
        if not known or len(known) < len(needed):
            raise Waits(f"{exhibit.plan.table}: {rows}, {column}")
        found.append(Quantity(mean(known), "count"))
    return found


def _printed_gain(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    found = []
    for exhibit, rows, column in _places(asked, facts, where):
        row, baseline = (_cell(exhibit, key, column, where) for key in _pair(exhibit, rows, where))
        gap = printed_gap(row.printed, baseline.printed)
        if gap is None:
            raise UserError(f"{where}: {rows}, {column}: the paper does not print both numbers")
        found.append(Quantity(gap, row.metric.unit, signed=True))
    if RISE in (asked.option("as") or "").split(";"):
        return [Quantity(slope_over([one.number for one in found]), found[0].unit, signed=True)]
    return found


def _settings(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    found: dict[str, None] = {}
    key = asked.option("key") or ""
    for exhibit, row, column in _places(asked, facts, where):
        cell = _cell(exhibit, row, column, where)
        if cell.run_id is None:
            raise Waits(f"{asked.place}: has no run")
        run = exhibit.plan.runs[cell.run_id]
        known = run.config | named_arguments(run.method)
        require_known(where, "setting or argument", key, sorted(known))
        found[f"{known[key]:,}" if isinstance(known[key], int) else str(known[key])] = None
    return [Quantity(text) for text in found]


def _distances(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    require_known(where, "reading", asked.place, sorted(facts.distances))
    distance = facts.distances[asked.place]
    if distance is None:
        raise Waits(f"reading {asked.place!r}")
    return [Quantity(distance, "percent")]


def _count(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    every_table = [one for one in facts.tables.values() if not one.plan.variant_of]
    named = asked.option("table")
    if named and named not in facts.tables:
        raise UserError(f"{where}: {unknown('table', named, sorted(facts.tables))}")
    tables = [facts.tables[named or facts.own or ""]] if named or facts.own else every_table
    behind = asked.option("printed_seeds")  # of each printed number, in the place of what the paper says
    cells = [judge_as_mean_of(int(behind), one.cells, one.plan) if behind else one.cells for one in tables]
    every = {cell.number: cell.status for cell in itertools.chain(*cells)}
    wanted = COMPARED if asked.place == "judged" else (asked.place,)
    if not set(wanted) <= {*STATUSES}:
        raise UserError(f"{where}: {unknown('status', asked.place, [*COMPARED, 'judged'])}")
    return [Quantity(float(sum(status in wanted for status in every.values())), "count")]


def _statuses(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    return [Quantity(_cell(*place, where).status) for place in _places(asked, facts, where)]


def _diverged(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    """The last round, from 1, that each seed recorded. Waits unless all of them diverged."""
    found = []
    for exhibit, row, column in _places(asked, facts, where):
        receipts = _at_seed(exhibit.evidence.get(_cell(exhibit, row, column, where).run_id or "", {}), asked)
        if not receipts or not all(one.diverged for one in receipts.values()):
            raise Waits(f"{exhibit.plan.source}: {exhibit.name(row, column)}: no seed, or one that has not diverged")
        found += [Quantity(float(len(one.curves["round"])), "count") for one in receipts.values()]
    return found


def _verdict(asked: Field, facts: Facts, where: str) -> list[Quantity]:
    require_known(where, "claim", asked.place, sorted(facts.claims))
    return [Quantity(facts.claims[asked.place])]


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
    "rounds": _rounds,
    "printed_gain": _printed_gain,
    "setting": _settings,
    "distance": _distances,
    "count": _count,
    "status": _statuses,
    "diverged": _diverged,
    "verdict": _verdict,
}
