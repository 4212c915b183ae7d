"""One method against another: over all settings of a table by an exact test, and setting by setting with intervals over seeds.

Pure functions of a plan and its cells. No stars per cell.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fedrepro import units
from fedrepro.config.plan import Column, Plan, Row
from fedrepro.config.table import Metric
from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.statistics import interval, mean, mean_of_all, paired_differences, printed_gap, signed_rank

Cells = dict[tuple[str, str], Cell]  # by row and column


@dataclass(frozen=True)
class Score:
    """Wins, ties and losses of one method against another. `settings`: how many settings have a difference. A tie: the
    difference is 0 at the decimals shown. `p_value`: two-sided, of the exact Wilcoxon signed-rank test over settings."""

    settings: int
    wins: int
    ties: int
    losses: int
    mean_difference: float | None
    p_value: float | None


@dataclass(frozen=True)
class Comparison:
    """A pair of rows in one quantity. `columns`: the columns that count; each run counts once."""

    quantity: str
    metric: Metric
    method: Row
    baseline: Row
    columns: tuple[str, ...]
    printed: Score
    measured: Score


def comparisons(plan: Plan, cells: Sequence[Cell]) -> list[Comparison]:
    """Compares rows in pairs, for each quantity: wins, ties, losses, mean difference and Wilcoxon's exact p over settings.

    Every row is compared with the first printed one, and a row `x+y` against `x` too where there is one. A setting is a run: if
    several columns read one run, the column with the latest round counts. The measured difference of a setting is the mean over
    the seeds that both rows have. A setting without a mean, for example of a diverged row, is left out.
    """
    by_place = {(cell.row.key, cell.column.key): cell for cell in cells}
    metrics = {place.reading.quantity: place.metric for place in plan.planned if place.metric.ranked}
    results = []
    for quantity, metric in metrics.items():
        for baseline, method in pairs(plan.rows):
            columns = _settings(plan, by_place, baseline.key, method.key, quantity)
            if columns:
                couples = [(by_place[method.key, key], by_place[baseline.key, key]) for key in columns]
                printed = _score([printed_gap(a.printed, b.printed) for a, b in couples], metric)
                whole = [(a.per_seed, b.per_seed) if None not in (a.mean, b.mean) else ({}, {}) for a, b in couples]
                measured = _score([mean_of_all(paired_differences(*pair).values()) for pair in whole], metric)
                results.append(Comparison(quantity, metric, method, baseline, tuple(columns), printed, measured))
    return results


def pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Lists (baseline, method): each row with the first printed row of its reading, and `x+y` with `x`."""
    rows = sorted(rows, key=lambda row: not row.printed)
    by_keys: dict[tuple[str, str], tuple[Row, Row]] = {}
    for row in rows:
        same_variant = [other for other in rows if other.variant == row.variant]
        plain = [other for other in same_variant if _extends(row, other)]
        by_keys |= {(base.key, row.key): (base, row) for base in [same_variant[0], *plain] if base.key != row.key}
    return list(by_keys.values())


def _settings(plan: Plan, cells: Cells, baseline: str, method: str, quantity: str) -> list[str]:
    """Lists one column for each setting with the quantity in both rows: the column that reads the runs at the latest round."""
    last: dict[Any, str] = {}
    for column in plan.columns:
        both = [cell for row in (baseline, method) if (cell := cells.get((row, column.key)))]
        if [cell.place.reading.quantity for cell in both] != [quantity] * 2:
            continue
        runs = tuple(cell.run_id or column.key for cell in both)
        before = cells.get((method, last.get(runs, "")))
        if before is None or _until(before) <= _until(cells[method, column.key]):
            last[runs] = column.key
    return [column.key for column in plan.columns if column.key in last.values()]


def _until(cell: Cell) -> float:
    until = cell.place.reading.until
    return math.inf if until is None else until


def _score(differences: Sequence[float | None], metric: Metric) -> Score:
    """Counts and tests the differences that exist; a win is a difference for the better."""
    rounded = [round(value, 6) for value in differences if value is not None]
    # A difference of 0 at the decimals shown is a tie.
    better = [units.rounded(value, metric.digits) * (1 if metric.higher else -1) for value in rounded]
    p = signed_rank([round(value, 6) for value in better])
    return Score(
        settings=len(rounded),
        wins=sum(value > 0 for value in better),
        ties=sum(value == 0 for value in better),
        losses=sum(value < 0 for value in better),
        mean_difference=round(mean(rounded), 6) if rounded else None,
        p_value=None if p is None else round(p, 6),
    )


@dataclass(frozen=True)
class GapSetting:
    """The difference of two methods in one setting, with its 95 % t-interval over paired seeds where there are several.
    `reason`: why nothing is measured. `devices`: those that trained them, where there are several."""

    column: Column
    metric: Metric
    printed: float | None
    ours: float | None
    low: float | None
    high: float | None
    per_seed: dict[int, float]
    runs: tuple[str, ...]
    reason: str | None
    devices: tuple[str, ...] = ()

    @property
    def interval(self) -> str:
        """The interval as text, `−1.10 to +0.50`."""
        return "–" if self.low is None else f"{self.written(self.low)} to {self.written(self.high)}"

    @property
    def seeds(self) -> str:
        """The difference at each seed as text, `8: +1.20, 9: +0.90`."""
        text = ", ".join(f"{seed}: {self.written(value)}" for seed, value in self.per_seed.items()) or "–"
        return f"{text} ({' and '.join(self.devices)})" if self.devices else text

    def written(self, difference: float | None) -> str:
        """Writes a difference with its sign; a dash for None."""
        return units.decimal(difference, self.metric.digits, "+")


@dataclass(frozen=True)
class Gap:
    """How far two methods are apart: `x+y` and `x`, or a row and the first one."""

    plan: Plan
    method: Row
    base: Row
    unit: str
    settings: tuple[GapSetting, ...]

    @property
    def title(self) -> str:
        """The names of the two methods, `FedAvg + GH minus FedAvg`."""
        return f"{self.method.label} minus {self.base.label}"

    @property
    def counted_in(self) -> str:
        """The unit of a difference, in words."""
        return "percentage points" if self.unit == "percent" else units.unit(self.unit).difference or self.unit

    @property
    def shows_printed(self) -> bool:
        """Whether printed differences are shown. At scale demo they are not: the data are not the paper's."""
        return self.plan.scale != "demo"

    @property
    def text(self) -> str:
        """The picture in words, with all of its numbers."""
        clauses = []
        for setting in self.settings:
            parts = [
                f"measured {setting.written(setting.ours)}" if setting.ours is not None else f"not measured ({setting.reason})"
            ]
            if setting.low is not None:
                parts.append(f"95 % interval {setting.interval}, {len(setting.per_seed)} seeds")
            if self.shows_printed and setting.printed is not None:
                parts.append(f"printed {setting.written(setting.printed)}")
            clauses.append(f"{setting.column.title}: {', '.join(parts)}")
        return f"{self.plan.source}, {self.title}, in {self.counted_in}. {'; '.join(clauses)}."


def gaps(plan: Plan, cells: Sequence[Cell]) -> list[Gap]:
    """Lists one gap for each pair of rows and unit of the metric.

    A pair is `x+part` against `x`, where the table has both, and otherwise a row against the first one. `settings` has an entry
    per column in which both show one ranked metric and a difference is measured or printed; a pair without any measured one is
    left out. If a table stands in for a printed one, and compares `x+part` with `x`, other pairs have no printed difference:
    the paper may have run each method in another setting.
    """
    by_place = {(cell.row.key, cell.column.key): cell for cell in cells}
    results = []
    compared = {method.key: (method, base) for base, method in pairs(plan.rows)}.values()
    extensions_only = plan.stand_in and any(_extends(row, base) for row, base in compared)
    for row, base in compared:
        for unit in dict.fromkeys(column.metric.unit for column in plan.columns):
            columns = [column.key for column in plan.columns if column.metric.unit == unit]
            couples = [(by_place[row.key, key], by_place[base.key, key]) for key in columns]
            # Values can only be better or worse within one ranked quantity.
            settings = [
                _gap(cell, base_cell, printed=not extensions_only or _extends(row, base))
                for cell, base_cell in couples
                if cell.metric.ranked and cell.place.reading.quantity == base_cell.place.reading.quantity
            ]
            if any(setting.ours is not None for setting in settings):
                with_number = tuple(setting for setting in settings if setting.ours is not None or setting.printed is not None)
                results.append(Gap(plan, row, base, unit, with_number))
    return results


def pictured(gaps: Sequence[Gap], row: str = "") -> Gap:
    """Returns the gap of `row` in the first table; without such a gap, that of the last row with printed numbers."""
    first = [gap for gap in gaps if gap.plan.table == gaps[0].plan.table]
    with_printed = [gap for gap in first if any(setting.printed is not None for setting in gap.settings)]
    return next((gap for gap in first if gap.method.key == row), [*first, *with_printed][-1])


def _extends(row: Row, base: Row) -> bool:
    return row.key.startswith(f"{base.key}+")


def _gap(cell: Cell, base: Cell, printed: bool) -> GapSetting:
    """Makes one setting. As in the table, a seed without a value, or seeds of different code, leave no measured difference.
    `printed`: whether it has the printed one."""
    differences = paired_differences(cell.per_seed, base.per_seed)
    lost, mixed = None in differences.values(), cell.mixed or base.mixed
    per_seed = {} if lost or mixed else {seed: gap for seed, gap in differences.items() if gap is not None}
    low, high = interval(list(per_seed.values())) or (None, None)
    none = (cell if None in cell.per_seed.values() else base).none
    why = f"{none} at a seed" if lost else f"the seeds are of {mixed}" if mixed else "no seed of both"
    return GapSetting(
        column=cell.column,
        metric=cell.metric,
        printed=printed_gap(cell.printed, base.printed) if printed else None,
        ours=mean(list(per_seed.values())) if per_seed else None,
        low=low,
        high=high,
        per_seed=per_seed,
        runs=tuple(f"{side.run_id}/seed{seed}" for side in (cell, base) for seed in per_seed),
        reason=None if per_seed else why,
        devices=_devices(cell, base, per_seed),
    )


def _devices(cell: Cell, base: Cell, seeds: Iterable[int]) -> tuple[str, ...]:
    """Names the devices if there are two. They round differently, which adds to the difference."""
    devices = [side.receipts[seed].environment.device for side in (cell, base) for seed in seeds]
    used = {"a GPU" if device == "cuda" else "a CPU": None for device in devices}
    return tuple(used) if len(used) > 1 else ()
