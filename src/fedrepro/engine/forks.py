"""Finds the rounds that runs share. Before its start, an average over rounds or a late phase of a schedule changes nothing.

Before that round, a run with it and a run without it are the same, so these rounds are trained once.
`fedrepro.engine.fork_point` keeps the state.

No torch: plans find the shared rounds of their runs, so that the jobs know them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol, TypeVar

from fedrepro.engine import schedule
from fedrepro.engine.spec import RunSpec
from fedrepro.files import canonical_hash
from fedrepro.methods.compose import Method, compose


@dataclass(frozen=True)
class Fork:
    """A round at which runs part. `models` is the number of global models from the last rounds before it that the runs need."""

    round: int  # from 0: the first round that they do not share
    models: int
    runs: list[str] = field(default_factory=list)  # the runs that share all rounds before it; the first one trains them


class Run(Protocol):
    """What this module reads of a run."""

    @property
    def config(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=Run)


def starts(config: Mapping[str, Any]) -> list[int]:
    """The rounds, from 1 up, at which something of a run begins: a part of its method, or a phase of a schedule."""
    rounds = config["rounds"]
    start_rounds = {part.begins(rounds) for part in _method(config["method"]).averages}
    for setting, default in schedule.DEFAULTS.items():
        start_rounds |= {start for start, _ in schedule.phases(config.get(setting, default), setting, rounds)}
    return sorted(start for start in start_rounds if start and start < rounds)


def trunk(config: Mapping[str, Any], round: int) -> dict[str, Any]:
    """The settings of a run without what begins in `round` or later. They decide all rounds before it."""
    spec = RunSpec(**config)
    early_settings: dict[str, Any] = {key: _early(getattr(spec, key), key, round, spec.rounds) for key in schedule.DEFAULTS}
    return replace(spec, **early_settings, method=str(method_before(_method(spec.method), round, spec.rounds))).as_dict()


def _early(text: str, setting: str, round: int, rounds: int) -> str:
    phases = [phase for start, phase in schedule.phases(text, setting, rounds) if start < max(1, round)]
    return "+".join(str(schedule.SCHEDULES.canonical(phase)) for phase in phases)


def method_before(method: Method, round: int, rounds: int) -> Method:
    """`method` without the averages that begin in `round` or later, in a run of `rounds` rounds."""
    return replace(method, averages=tuple(part for part in method.averages if not begins_later(part.begins(rounds), round)))


def begins_later(begins: int | None, round: int) -> bool:
    """Whether a part that begins in round `begins` changes nothing before `round`."""
    return begins is not None and begins >= round


def find_forks(runs: dict[str, R]) -> dict[str, list[Fork]]:
    """Returns run_id -> where the run parts from others of `runs`, for each run that shares rounds with another.

    In each group the run whose name sorts first trains the shared rounds. If each plan had its own order, runs would wait for
    each other.
    """
    forks_by_run: dict[str, list[Fork]] = {}
    starts_by_run = {run_id: starts(run.config) for run_id, run in runs.items()}
    for round in sorted({start for run_starts in starts_by_run.values() for start in run_starts}):
        groups: dict[str, list[str]] = {}
        for run_id, run in runs.items():
            if round < run.config["rounds"]:
                groups.setdefault(canonical_hash(trunk(run.config, round)), []).append(run_id)
        for group in map(sorted, groups.values()):
            if len(group) > 1 and any(round in starts_by_run[run_id] for run_id in group):
                models = max(_remembers(runs[run_id].config, round) for run_id in group)
                for run_id in group:
                    forks_by_run.setdefault(run_id, []).append(Fork(round, models, group))
    return forks_by_run


def merge_forks(forks: Iterable[Fork]) -> list[Fork]:
    """Merges the forks of several plans: one per round, with the runs of all plans."""
    fork_by_round: dict[int, Fork] = {}
    for plan_fork in sorted(forks, key=lambda fork: fork.round):
        merged_fork = fork_by_round.get(plan_fork.round, plan_fork)
        fork_by_round[plan_fork.round] = Fork(
            plan_fork.round, max(merged_fork.models, plan_fork.models), sorted({*merged_fork.runs, *plan_fork.runs})
        )
    return list(fork_by_round.values())


def _remembers(config: Mapping[str, Any], round: int) -> int:
    """How many global models before `round` are needed by the parts that begin there or later."""
    rounds = config["rounds"]
    averages = _method(config["method"]).averages
    return max((part.remembers(rounds) for part in averages if begins_later(part.begins(rounds), round)), default=0)


@cache
def _method(text: str) -> Method:
    return compose(text)
