"""What one table says, cell by cell: printed number, measured mean, difference, status. Pure functions of plan and evidence."""

import dataclasses
import math
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from fedrepro.config.reading import reading
from fedrepro.reports.evidence import Evidence, Plan
from fedrepro.reports.readings import other_readings

STATUSES = ("reproduced", "within noise", "not reproduced", "not run", "not printed", "not comparable")


@dataclass(frozen=True)
class Rule:
    """When a measured mean counts as the printed number. Fixed here, before any run at full scale.

    `tolerance`: points of difference that still count as `reproduced` (>= 0). One point is 0.01 for a metric that is not in
    percent. 1.0 is our choice: two sets of three seeds with a standard deviation of 0.5 differ by up to 1.13 points by chance
    (Welch, 95 %).
    `noise_factor`: multiples of the seed standard deviation, pooled over the rows of the same column, that count as
    `within noise` (>= 0). 2.48 = t(0.975, 2 degrees of freedom) / sqrt(3), the half-width of the 95 % interval of the mean of
    three seeds. Columns are pooled and not the whole table, since the spread grows with the heterogeneity of a setting.
    """

    tolerance: float = 1.0
    noise_factor: float = 2.48


RULE = Rule()
# The rule's neighbours: the page counts statuses under each of them, so that nobody has to trust one threshold.
ALTERNATIVES = tuple(Rule(tolerance, factor) for tolerance in (0.5, 1.0, 2.0) for factor in (0.0, 1.24, 2.48))


@dataclass(frozen=True)
class Cell:
    """One number of the table. `mean`, `std` and `per_seed` are in the metric's unit; `difference` is mean minus printed."""

    method: str  # key of the row
    setting: str  # key of the column
    method_label: str
    setting_label: str
    metric: str
    digits: int  # decimals at which its values are shown
    printed: float | None
    note: str  # what the printed table, or its transcription, says about the number
    run_id: str | None
    method_spec: str | None  # the method with every argument spelt out
    average_last: int | None = None  # the value of a seed is the mean over so many last rounds
    until_round: int | None = None  # up to this one, counted from 1; None: the last
    per_seed: dict[int, float | None] = field(default_factory=dict)  # None: the seed diverged; absent: it was not run
    runs: tuple[str, ...] = ()  # run keys, `<run_id>/seed<k>`
    mean: float | None = None
    std: float | None = None  # sample standard deviation over seeds
    arithmetic: str | None = None  # of its runs: portable, native, or mixed; None: no run
    readings: dict[str, Any] | None = None  # the same runs at the last round, at the best, as the mean of several
    difference: float | None = None
    status: str = "not run"
    reason: str | None = None
    best_measured: bool = False
    best_printed: bool = False


def tabulate(plan: Plan, evidence: Evidence, rule: Rule = RULE) -> list[Cell]:
    """One `Cell` per cell of the plan, in the plan's order."""
    cells = [_measure(plan, cell, evidence) for cell in plan["cells"]]
    cells = judge(cells, plan, rule)
    for attribute, mark in (("mean", "best_measured"), ("printed", "best_printed")):
        cells = _mark_best(cells, attribute, mark, {c["key"] for c in plan["columns"] if c["metric"]["better"] == "higher"})
    return cells


def judge(cells: list[Cell], plan: Plan, rule: Rule) -> list[Cell]:
    """The cells with `difference` and `status` by `rule`. Below full scale no difference is ever computed."""
    noise = pooled_std(cells)
    point = {column["key"]: 1.0 if column["metric"]["unit"] == "percent" else 0.01 for column in plan["columns"]}
    return [
        _judge(cell, plan["comparable"], rule.tolerance * point[cell.setting], rule.noise_factor * noise[cell.setting])
        for cell in cells
    ]


def pooled_std(cells: list[Cell]) -> dict[str, float]:
    """Per column: the root of the variance over seeds pooled over the rows, weighted by degrees of freedom; 0 without any."""
    squares: defaultdict[str, float] = defaultdict(float)
    freedom: Counter[str] = Counter()
    for cell in cells:
        if cell.std is not None:
            squares[cell.setting] += cell.std**2 * (len(cell.per_seed) - 1)
            freedom[cell.setting] += len(cell.per_seed) - 1
    return {c.setting: math.sqrt(squares[c.setting] / freedom[c.setting]) if freedom[c.setting] else 0.0 for c in cells}


def count_statuses(cells: list[Cell]) -> dict[str, int]:
    """How many cells have each status; every status is listed."""
    counts = Counter(cell.status for cell in cells)
    return {status: counts[status] for status in STATUSES}


def _measure(plan: Plan, cell: dict, evidence: Evidence) -> Cell:
    rows, columns = ({entry["key"]: entry for entry in plan[axis]} for axis in ("rows", "columns"))
    column, run_id = columns[cell["column"]], cell["run_id"]
    shown = reading(cell) if run_id else None
    receipts = evidence.get(run_id, {}) if run_id else {}
    diverged = [seed for seed, receipt in receipts.items() if receipt["status"] == "diverged"]
    per_seed = {seed: shown.of(receipt) for seed, receipt in receipts.items()} if shown else {}
    values = [value for value in per_seed.values() if value is not None]
    # A mean over the others would be optimistic, so a seed without a value leaves the cell without a mean.
    whole = bool(values) and len(values) == len(per_seed)
    return Cell(
        method=cell["row"],
        setting=cell["column"],
        method_label=rows[cell["row"]]["label"],
        setting_label=" · ".join(part for part in (column.get("group"), column["label"]) if part),
        metric=cell["metric"]["name"],
        digits=2 if column["metric"]["unit"] == "percent" else 3,
        printed=cell["printed"],
        note=cell.get("note") or "",
        run_id=run_id,
        method_spec=plan["runs"][run_id]["method"] if run_id else None,
        average_last=cell["average_last"],
        until_round=shown.until if shown else None,
        per_seed=per_seed,
        runs=tuple(f"{run_id}/seed{seed}" for seed in per_seed),
        arithmetic=_arithmetic(receipts),
        mean=math.fsum(values) / len(values) if whole else None,
        std=statistics.stdev(values) if whole and len(values) > 1 else None,
        readings=other_readings(shown, receipts) if shown else None,
        reason=_reason(cell, plan["seeds"], per_seed, diverged),
    )


def _arithmetic(receipts: dict[int, dict[str, Any]]) -> str | None:
    """Evidence from before there was a choice is native."""
    found = {receipt["environment"].get("arithmetic", "native") for receipt in receipts.values()}
    return next(iter(found)) if len(found) == 1 else "mixed" if found else None


def _reason(cell: dict, seeds: list[int], per_seed: dict[int, float | None], diverged: list[int]) -> str | None:
    """Why a cell has no number, or not all of its seeds; None when there is nothing to say."""
    if cell["run_id"] is None:
        return cell["reason"] or "no run is planned"
    if not per_seed:
        return "not run yet"
    missing = [seed for seed in seeds if seed not in per_seed]
    reasons = []
    if diverged:
        reasons.append(f"{len(diverged)} of {len(per_seed)} seeds diverged: {_listed(diverged)}")
    never = [seed for seed, value in per_seed.items() if value is None and seed not in diverged]
    if never:
        reasons.append(f"{len(never)} of {len(per_seed)} seeds did not reach the target: {_listed(never)}")
    if missing:
        reasons.append(f"{len(missing)} of {len(seeds)} seeds not run yet: {_listed(missing)}")
    return "; ".join(reasons) or None


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))


def _judge(cell: Cell, comparable: bool, tolerance: float, noise: float) -> Cell:
    if not cell.per_seed:
        return dataclasses.replace(cell, status="not run")
    if cell.printed is None:
        return dataclasses.replace(cell, status="not printed")
    if not comparable:
        return dataclasses.replace(cell, status="not comparable")
    if cell.mean is None:  # diverged, which the paper's run did not
        return dataclasses.replace(cell, status="not reproduced")
    difference = round(cell.mean - cell.printed, 6)  # 90.29 - 89.29 is one point, not a hair more
    if abs(difference) <= tolerance:
        status = "reproduced"
    else:
        status = "within noise" if abs(difference) <= round(noise, 6) else "not reproduced"
    return dataclasses.replace(cell, difference=difference, status=status)


def _mark_best(cells: list[Cell], attribute: str, mark: str, higher: set[str]) -> list[Cell]:
    """Marks the best value of each column, the highest in those of `higher`.

    Values that read the same at the decimals shown are tied, and all of them are marked.
    """
    best: dict[str, float] = {}
    for cell in cells:
        value = getattr(cell, attribute)
        if value is not None:
            value = round(value, cell.digits)
            choose = max if cell.setting in higher else min
            best[cell.setting] = choose(best.get(cell.setting, value), value)
    return [
        dataclasses.replace(cell, **{mark: value is not None and round(value, cell.digits) == best[cell.setting]})
        for cell in cells
        for value in [getattr(cell, attribute)]
    ]
