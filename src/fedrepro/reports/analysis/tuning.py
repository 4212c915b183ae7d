"""Which candidate of a tuned cell is shown: decided by the evidence of their trials alone. Pure."""

from dataclasses import replace

from fedrepro.config.reading import Reading
from fedrepro.reports.analysis.paired import mean
from fedrepro.reports.model import Candidate, Choice, Evidence, Metric, Place, Plan, ReadAgain, Receipt, Second, Tried


def settle(plan: Plan, evidence: Evidence) -> tuple[Plan, Evidence, tuple[Choice, ...]]:
    """The plan with the chosen runs in its tuned cells, the evidence that it asks for, and how each choice was made.

    A cell stays without a run, and says why, until every trial has evidence, and where every candidate diverged.
    """
    choices = {(cell.row, cell.column): _choice(plan, cell, evidence) for cell in plan.cells if cell.tuned}
    cells = tuple(_settled(plan, cell, choices.get((cell.row, cell.column))) for cell in plan.cells)
    asked = dict(plan.asked)
    for cell in cells:
        if cell.tuned and cell.run_id:
            asked[cell.run_id] = plan.seeds
    kept = {
        run_id: {seed: one for seed, one in receipts.items() if seed in asked[run_id]}
        for run_id, receipts in evidence.items()
        if run_id in asked
    }
    return replace(plan, cells=cells, asked=asked), kept, tuple(choices.values())


def _choice(plan: Plan, cell: Place, evidence: Evidence) -> Choice:
    candidates = plan.candidates_of(cell)
    tried = [_tried(one, evidence) for one in candidates]
    complete = all(len(one.per_seed) == len(one.seeds) for one in tried)
    best = _best([one.mean for one in tried], higher=cell.metric.higher) if complete else None
    tried = [replace(one, chosen=place == best) for place, one in enumerate(tried)]
    found = sorted((one.mean for one in tried if one.mean is not None), reverse=cell.metric.higher)
    also = candidates[0].also
    tried, second = _read_again(tried, also, best) if also else (tried, None)
    return Choice(
        method=cell.row,
        setting=cell.column,
        method_label=plan.row(cell.row).label,
        setting_label=plan.column(cell.column).title,
        metric=cell.metric.name,
        unit=cell.metric.unit,
        digits=cell.metric.digits,
        tried=tuple(tried),
        ahead=_apart(found[0], found[1]) if best is not None and len(found) > 1 else None,
        reason=None if best is not None else _reason(tried, complete=complete),
        second=second,
    )


def _best(means: list[float | None], *, higher: bool) -> int | None:
    """The place of the best of them, of equal ones the first; None where there is none."""
    found = [value for value in means if value is not None]
    return means.index((max if higher else min)(found)) if found else None


def _read_again(tried: list[Tried], also: Metric, best: int | None) -> tuple[list[Tried], Second]:
    """With what the second reading would choose; that is nothing until the first has chosen."""
    other = None if best is None else _best([one.also and one.also.mean for one in tried], higher=also.higher)
    marked = [replace(one, also=one.also and replace(one.also, chosen=place == other)) for place, one in enumerate(tried)]
    worth = None if best is None or other is None else _apart(tried[best].mean, tried[other].mean)
    return marked, Second(metric=also.name, unit=also.unit, digits=also.digits, worth=worth)


def _apart(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else round(abs(one - other), 6)


def _tried(one: Candidate, evidence: Evidence) -> Tried:
    receipts = {seed: got for seed, got in evidence.get(one.trial.run_id, {}).items() if seed in one.trial.seeds}
    per_seed, over_seeds = _values(receipts, one.trial_reading)
    return Tried(
        values=one.values,
        run_id=one.trial.run_id,
        read=one.trial.read,
        seeds=one.trial.seeds,
        per_seed=per_seed,
        mean=over_seeds,
        also=ReadAgain(*_values(receipts, one.also_reading)) if one.also_reading else None,
    )


def _values(receipts: dict[int, Receipt], reading: Reading) -> tuple[dict[int, float | None], float | None]:
    """The value of each seed, and their mean where every one has a value."""
    per_seed = {seed: None if got.diverged else reading.value(got.curves) for seed, got in receipts.items()}
    values = [value for value in per_seed.values() if value is not None]
    return per_seed, mean(values) if values and len(values) == len(per_seed) else None


def _settled(plan: Plan, cell: Place, choice: Choice | None) -> Place:
    if choice is None:
        return cell
    places = [place for place, one in enumerate(choice.tried) if one.chosen]
    if not places:
        return replace(cell, reason=choice.reason)
    return plan.candidates_of(cell)[places[0]].cell


def _reason(tried: list[Tried], *, complete: bool) -> str:
    if complete:
        return f"all {len(tried)} candidates diverged, or never reached the target"
    done, wanted = sum(len(one.per_seed) for one in tried), sum(len(one.seeds) for one in tried)
    return f"nothing is chosen yet: {done} of {wanted} trials of {len(tried)} candidates have run"
