"""Which candidate of a tuned cell is shown: decided by the evidence of their trials alone. Pure."""

from dataclasses import dataclass, field, replace
from typing import Any

from fedrepro.config.plan import Candidate, Place, Plan
from fedrepro.config.reading import Reading
from fedrepro.config.table import Metric
from fedrepro.exhibits.receipt import Evidence
from fedrepro.exhibits.statistics import mean_of_all


@dataclass(frozen=True)
class TriedCandidate:
    """A candidate of a tuned cell, and how its trial went. `mean` is None when a seed has no value, or none was run. `again`:
    the second reading of the trial, and whether that would choose this one."""

    values: dict[str, Any]  # setting or `part.argument` -> what it tries
    run_id: str
    read: str
    seeds: tuple[int, ...]
    per_seed: dict[int, float | None]
    mean: float | None
    chosen: bool = False
    again: "TriedCandidate | None" = None

    @property
    def text(self) -> str:
        """`client_lr = 0.1, mu = 0.5`."""
        return ", ".join(f"{key.rpartition('.')[2]} = {value}" for key, value in self.values.items())


@dataclass(frozen=True)
class Choice:
    """How a tuned cell came to its run: the best mean of all trials, of equal ones the first.

    `ahead`: by how much the chosen one leads the second, in the metric's unit. `reason`: why nothing is chosen. `second`:
    another metric of the same trials, where there is one; `worth`: the lead over the candidate that `second` would choose, by
    the first reading and in its unit: the gain from choosing on the data of the table. `complete`: all trials have run.
    """

    place: Place = field(repr=False)
    row: str  # label
    column: str  # title
    metric: Metric
    quantity: str  # what a value measures, see `Reading`
    tried: tuple[TriedCandidate, ...]
    ahead: float | None = None
    reason: str | None = None
    second: Metric | None = None
    worth: float | None = None
    complete: bool = True

    @property
    def agreed(self) -> bool:
        """Whether both readings choose the same candidate."""
        return any(candidate.chosen and candidate.again is not None and candidate.again.chosen for candidate in self.tried)

    @property
    def chosen(self) -> TriedCandidate | None:
        """The candidate that the cell shows."""
        return next((candidate for candidate in self.tried if candidate.chosen), None)


def choose(plan: Plan, evidence: Evidence) -> tuple[Plan, Evidence, tuple[Choice, ...]]:
    """Returns the plan with the chosen runs in its tuned cells, the evidence that it asks for, and how each choice was made.

    A cell stays without a run, and says why, until every trial has evidence. If every candidate diverged, it shows the trial of
    the first one.
    """
    choices = {(cell.row, cell.column): _choice(plan, cell, evidence) for cell in plan.cells if cell.tuned}
    cells = tuple(_with_choice(plan, cell, choices.get((cell.row, cell.column))) for cell in plan.cells)
    seeds_by_run = plan.seeds_by_run | {cell.run_id: plan.seeds for cell in cells if cell.run_id and cell.chosen}
    needed = {
        run_id: {seed: receipt for seed, receipt in receipts.items() if seed in seeds_by_run[run_id]}
        for run_id, receipts in evidence.items()
        if run_id in seeds_by_run
    }
    return replace(plan, cells=cells, seeds_by_run=seeds_by_run), needed, tuple(choices.values())


def _choice(plan: Plan, cell: Place, evidence: Evidence) -> Choice:
    candidates = plan.candidates_of(cell)
    tried = [_read_trial(candidate, evidence) for candidate in candidates]
    complete = all(len(candidate.per_seed) == len(candidate.seeds) for candidate in tried)
    best = _best([candidate.mean for candidate in tried], higher=cell.metric.higher) if complete else None
    tried = [replace(candidate, chosen=place == best) for place, candidate in enumerate(tried)]
    means = sorted((candidate.mean for candidate in tried if candidate.mean is not None), reverse=cell.metric.higher)
    second, best_by_second = candidates[0].also, None
    if second and best is not None:  # the second reading says nothing until the first has chosen
        best_by_second = _best([candidate.again and candidate.again.mean for candidate in tried], higher=second.higher)
        tried = [
            replace(candidate, again=candidate.again and replace(candidate.again, chosen=i == best_by_second))
            for i, candidate in enumerate(tried)
        ]
    return Choice(
        place=cell,
        row=plan.row(cell.row).label,
        column=plan.column(cell.column).title,
        metric=cell.metric,
        quantity=candidates[0].reading.quantity,
        tried=tuple(tried),
        ahead=_distance(means[0], means[1]) if best is not None and len(means) > 1 else None,
        reason=None if best is not None else _reason(tried, complete=complete),
        second=second,
        worth=None if best is None or best_by_second is None else _distance(tried[best].mean, tried[best_by_second].mean),
        complete=complete,
    )


def _best(means: list[float | None], *, higher: bool) -> int | None:
    """Returns the place of the best mean, of equal ones the first; None where there is no mean.

    Values that differ by rounding alone are equal.
    """
    rounded = [value if value is None else round(value, 9) for value in means]
    numbers = [value for value in rounded if value is not None]
    return rounded.index((max if higher else min)(numbers)) if numbers else None


def _distance(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else round(abs(first - second), 6)


def _read_trial(candidate: Candidate, evidence: Evidence) -> TriedCandidate:
    trial = candidate.trial
    receipts = {seed: receipt for seed, receipt in evidence.get(trial.run_id, {}).items() if seed in trial.seeds}

    def tried(reading: Reading) -> TriedCandidate:
        per_seed = {seed: receipt.value(reading) for seed, receipt in receipts.items()}
        over_seeds = mean_of_all(per_seed.values())
        return TriedCandidate(candidate.values, trial.run_id, trial.read, trial.seeds, per_seed, over_seeds)

    return replace(tried(candidate.trial_reading), again=candidate.also_reading and tried(candidate.also_reading))


def _with_choice(plan: Plan, cell: Place, choice: Choice | None) -> Place:
    if choice is None:
        return cell
    candidates = plan.candidates_of(cell)
    for tried, candidate in zip(choice.tried, candidates, strict=True):
        if tried.chosen:
            return candidate.cell
    trial = candidates[0].trial
    failed = {"run_id": trial.run_id, "read": trial.read} if choice.complete else {}
    return replace(cell, reason=choice.reason, **failed)


def _reason(tried: list[TriedCandidate], *, complete: bool) -> str:
    if complete:
        return f"all {len(tried)} candidates diverged, or never reached the target"
    done, planned = sum(len(candidate.per_seed) for candidate in tried), sum(len(candidate.seeds) for candidate in tried)
    return f"nothing is chosen yet: {done} of {planned} trials of {len(tried)} candidates have run"
