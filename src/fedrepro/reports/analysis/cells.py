"""What one table says, cell by cell: printed number, measured mean, difference, status. Pure functions of plan and evidence."""

import statistics
from collections import Counter
from dataclasses import replace
from typing import Literal

from fedrepro.engine import fingerprints
from fedrepro.reports.analysis.paired import mean
from fedrepro.reports.analysis.readings import other_readings
from fedrepro.reports.analysis.verdict import RULE, judged, margin
from fedrepro.reports.model import STATUSES, Alternative, Cell, Evidence, Metric, Place, Plan, Receipt, Rule, Spread, Status

# The rule's neighbours: the page counts statuses under each of them, so that a reader need not trust one threshold.
COMPARED = ("reproduced", "consistent", "inconclusive", "not reproduced")
ALTERNATIVES = tuple(Rule(tolerance, widest) for tolerance in (0.5, 1.0, 2.0) for widest in (2.5, 5.0, 10.0))


def tabulate(plan: Plan, evidence: Evidence, rule: Rule = RULE) -> list[Cell]:
    """One `Cell` per cell of the plan, in the plan's order."""
    cells = [_measure(plan, cell, evidence) for cell in plan.cells]
    cells = judge(cells, plan, rule)
    for attribute, mark in (("mean", "best_measured"), ("printed", "best_printed")):
        cells = _mark_best(cells, attribute, mark, {cell.metric.name: cell.metric for cell in plan.cells})
    return cells


def judge(cells: list[Cell], plan: Plan, rule: Rule) -> list[Cell]:
    """The cells with `difference`, `margin` and `status` by `rule`. Below full scale no difference is ever computed.

    A table that varies another has differences and margins and is not judged: readings are tried with the printed number known.
    """
    return [_judge(cell, plan, plan.spreads.get(cell.metric), rule) for cell in cells]


def count_statuses(cells: list[Cell]) -> dict[Status, int]:
    """How many cells have each status; every status is listed."""
    counts = Counter(cell.status for cell in cells)
    return {status: counts[status] for status in STATUSES}


def alternatives(cells: list[Cell], plan: Plan) -> tuple[Alternative, ...]:
    """How many cells have each status under the neighbours of the rule; empty when nothing is judged."""
    rules = ALTERNATIVES if plan.comparable and not plan.variant_of else ()
    counted = [(rule, count_statuses(judge(cells, plan, rule))) for rule in rules]
    return tuple(Alternative(rule.tolerance, rule.widest, counts) for rule, counts in counted)


def _measure(plan: Plan, cell: Place, evidence: Evidence) -> Cell:
    column, row, shown = plan.column(cell.column), plan.row(cell.row), cell.reading
    receipts = {seed: one for seed, one in evidence.get(cell.run_id or "", {}).items() if one.has(shown)}
    per_seed = {seed: None if one.diverged else shown.value(one.curves) for seed, one in receipts.items()}
    values = [value for value in per_seed.values() if value is not None]
    # A mean over the others would be optimistic, so a seed without a value leaves the cell without a mean.
    mixed = fingerprints.apart(one.code for one in receipts.values())
    whole = bool(values) and len(values) == len(per_seed) and not mixed
    return Cell(
        method=cell.row,
        setting=cell.column,
        method_label=row.label,
        setting_label=column.title,
        metric=cell.metric.name,
        unit=cell.metric.unit,
        digits=cell.metric.digits,
        printed=cell.printed,
        note=cell.note or "",
        line=cell.line,
        run_id=cell.run_id,
        method_spec=plan.run(cell).method if cell.run_id else None,
        read=cell.read,
        until_round=shown.until,
        per_seed=per_seed,
        runs=tuple(f"{cell.run_id}/seed{seed}" for seed in per_seed),
        arithmetic=_arithmetic(receipts),
        mean=mean(values) if whole else None,
        std=statistics.stdev(values) if whole and len(values) > 1 else None,
        readings=other_readings(shown, receipts) if cell.run_id else None,
        mixed=mixed,
        reason=_reason(cell, plan.seeds, per_seed, [seed for seed, one in receipts.items() if one.diverged], mixed),
    )


def _arithmetic(receipts: dict[int, Receipt]) -> Literal["portable", "native", "mixed"] | None:
    """Evidence from before there was a choice is native."""
    found = {receipt.environment.arithmetic or "native" for receipt in receipts.values()}
    if len(found) == 1:
        return "portable" if "portable" in found else "native"
    return "mixed" if found else None


def _reason(
    cell: Place, seeds: tuple[int, ...], per_seed: dict[int, float | None], diverged: list[int], mixed: tuple[str, ...]
) -> str | None:
    """Why a cell has no number, or not all of its seeds; None when there is nothing to say."""
    if cell.run_id is None:
        return cell.reason or "no run is planned"
    if not per_seed:
        return "not run yet"
    never = [seed for seed, value in per_seed.items() if value is None and seed not in diverged]
    missing = [seed for seed in seeds if seed not in per_seed]
    reasons = []
    if mixed:
        reasons.append(f"the seeds are of different code of {fingerprints.listed(mixed)}")
    if diverged:
        reasons.append(f"{len(diverged)} of {len(per_seed)} seeds diverged: {_listed(diverged)}")
    if never:
        reasons.append(f"{len(never)} of {len(per_seed)} seeds did not reach the target: {_listed(never)}")
    if missing:
        reasons.append(f"{len(missing)} of {len(seeds)} seeds not run yet: {_listed(missing)}")
    return "; ".join(reasons) or None


def _listed(seeds: list[int]) -> str:
    return ", ".join(map(str, seeds))


def _judge(cell: Cell, plan: Plan, spread: Spread | None, rule: Rule) -> Cell:
    if not cell.per_seed or cell.mixed:
        return replace(cell, status="not run")
    if cell.printed is None:
        return replace(cell, status="not printed")
    if not plan.comparable:
        return replace(cell, status="not comparable")
    if cell.mean is None:  # a seed diverged
        return replace(cell, status="not judged" if plan.variant_of else "not reproduced")
    values = [value for value in cell.per_seed.values() if value is not None]
    reach = margin(values, spread, plan.printed_seeds.assumed, rule.level)
    difference = round(cell.mean - cell.printed, 6)
    status = "not judged" if plan.variant_of else judged(difference, reach, rule, cell.point)
    return replace(cell, difference=difference, margin=reach, status=status)


def _mark_best(cells: list[Cell], attribute: str, mark: str, metrics: dict[str, Metric]) -> list[Cell]:
    """Marks the best value of each metric in each column; none where no value is better than another.

    Values that read the same at the decimals shown are tied, and all of them are marked. What one row alone shows, while others
    show something else, is not marked.
    """
    rows = Counter((cell.setting, cell.metric) for cell in cells)
    whole = Counter(cell.setting for cell in cells)
    best: dict[tuple[str, str], float] = {}
    for cell in cells:
        value = getattr(cell, attribute)
        if value is not None:
            value = round(value, cell.digits)
            choose = max if metrics[cell.metric].higher else min
            place = cell.setting, cell.metric
            best[place] = choose(best.get(place, value), value)
    return [
        replace(
            cell, **{mark: not (value is None or unmarked) and round(value, cell.digits) == best[cell.setting, cell.metric]}
        )
        for cell in cells
        for value in [getattr(cell, attribute)]
        for unmarked in [rows[cell.setting, cell.metric] == 1 < whole[cell.setting] or not metrics[cell.metric].ranked]
    ]
