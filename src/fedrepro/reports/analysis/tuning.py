"""Which candidate of a tuned cell is shown: decided by the evidence of their trials alone. Pure."""

from dataclasses import fields, replace

from fedrepro.reports.analysis.paired import mean
from fedrepro.reports.model import Candidate, Choice, Evidence, Place, Plan, Tried


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
    tried = [_tried(one, evidence) for one in plan.candidates_of(cell)]
    found = [one.mean for one in tried if one.mean is not None]
    complete = all(len(one.per_seed) == len(one.seeds) for one in tried)
    order = sorted(set(found), reverse=cell.metric.higher)
    best = next((place for place, one in enumerate(tried) if complete and order and one.mean == order[0]), None)
    tried = [replace(one, chosen=place == best) for place, one in enumerate(tried)]
    found.sort(reverse=cell.metric.higher)
    return Choice(
        method=cell.row,
        setting=cell.column,
        method_label=plan.row(cell.row).label,
        setting_label=plan.column(cell.column).title,
        metric=cell.metric.name,
        digits=cell.metric.digits,
        tried=tuple(tried),
        ahead=round(abs(found[0] - found[1]), 6) if best is not None and len(found) > 1 else None,
        reason=None if best is not None else _reason(tried, complete=complete),
    )


def _tried(one: Candidate, evidence: Evidence) -> Tried:
    receipts = {seed: got for seed, got in evidence.get(one.trial.run_id, {}).items() if seed in one.trial.seeds}
    per_seed = {seed: None if got.diverged else one.trial_reading.value(got.curves) for seed, got in receipts.items()}
    values = [value for value in per_seed.values() if value is not None]
    return Tried(
        values=one.values,
        run_id=one.trial.run_id,
        read=one.trial.read,
        seeds=one.trial.seeds,
        per_seed=per_seed,
        mean=mean(values) if values and len(values) == len(per_seed) else None,
    )


def _settled(plan: Plan, cell: Place, choice: Choice | None) -> Place:
    if choice is None:
        return cell
    places = [place for place, one in enumerate(choice.tried) if one.chosen]
    if not places:
        return replace(cell, reason=choice.reason)
    chosen = plan.candidates_of(cell)[places[0]]
    return replace(Place(**{one.name: getattr(chosen, one.name) for one in fields(Place)}), tuned=True)


def _reason(tried: list[Tried], *, complete: bool) -> str:
    if complete:
        return f"all {len(tried)} candidates diverged, or never reached the target"
    done, wanted = sum(len(one.per_seed) for one in tried), sum(len(one.seeds) for one in tried)
    return f"nothing is chosen yet: {done} of {wanted} trials of {len(tried)} candidates have run"
