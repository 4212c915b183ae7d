"""The clients' learning rate and number of epochs per round: calls joined by `+`, each of which takes over at its `start`.

`exponential` is FedLAW's schedule. `cosine(half=false)` is that of Elastic aggregation, whose first round has twice client_lr.
`exponential+cyclic(start=300, period=20, lowest=5e-5)` is one of FedIMA's late phases. `constant+fewer(start=300)`, for epochs,
is another. A schedule is written for a number of rounds; `scaled` converts it to fewer rounds. A start may also be a share of
the rounds, `start=0.75`, which stays the same, or `start=method`: the `start` of the run's method, which `of_method` puts in.
No torch, since settings are read everywhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

from fedrepro.errors import UserError
from fedrepro.registry import Registry, parse, require
from fedrepro.rounds import first_round, require_start

SCHEDULES = Registry("schedule")
# The setting -> its default, which is left out of a run's name.
DEFAULTS = {"schedule": "exponential", "epochs": "constant"}
METHOD = "method"  # as a start: that of the run's method


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """`start` is the first round (from 0) that it decides. It continues from the rate that the previous schedule has reached
    there.

    A share of the rounds means the same round as in a method (`fedrepro.rounds.first_round`).

    `settings` are the settings that allow it. `lengths` are its arguments that count rounds, with the smallest value of each.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ("schedule",)
    lengths: ClassVar[dict[str, int]] = {}

    start: int | float | str = 0

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        """The rate (or epochs) `t` rounds after `start`. `rounds` are the rounds left at `start`, `first` is the rate reached
        before, `decay` is client_lr_decay."""
        raise NotImplementedError


@SCHEDULES.register("exponential")
@dataclass(frozen=True, kw_only=True)
class Exponential(Schedule):
    """first * factor^t with `factor` > 0. The default is the setting client_lr_decay. No other schedule reads it."""

    factor: float | None = None

    def __post_init__(self) -> None:
        require(self.factor is None or self.factor > 0, "exponential: factor", self.factor, "must be greater than 0")

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        return first * (decay if self.factor is None else self.factor) ** t


@SCHEDULES.register("constant")
@dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """`value` > 0. The default is the rate reached before."""

    settings = ("schedule", "epochs")

    value: float | None = None

    def __post_init__(self) -> None:
        require(self.value is None or self.value > 0, "constant: value", self.value, "must be greater than 0")

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        return first if self.value is None else self.value


@SCHEDULES.register("cosine")
@dataclass(frozen=True, kw_only=True)
class Cosine(Schedule):
    """first * (1 + cos(pi t / rounds)), times 1/2 if `half`. With `half` it begins at `first`, otherwise at twice that."""

    half: bool = True

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        return first * (1 + math.cos(math.pi * t / rounds)) * (0.5 if self.half else 1.0)


@SCHEDULES.register("cyclic")
@dataclass(frozen=True, kw_only=True)
class Cyclic(Schedule):
    """A triangle: linear from the first rate down to `lowest` > 0 and back, every `period` >= 2 rounds."""

    lengths = {"period": 2}  # noqa: RUF012

    period: int = 20
    lowest: float = 5e-5

    def __post_init__(self) -> None:
        require(self.period >= 2, "cyclic: period", self.period, "must be at least 2")
        require(self.lowest > 0, "cyclic: lowest", self.lowest, "must be greater than 0")

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        height = abs(1 - 2 * (t % self.period) / self.period)
        return self.lowest + (first - self.lowest) * height


@SCHEDULES.register("stage")
@dataclass(frozen=True, kw_only=True)
class Stage(Schedule):
    """first * factor^floor(t / every); `factor` > 0, `every` >= 1 rounds."""

    settings = ("schedule", "epochs")
    lengths = {"every": 1}  # noqa: RUF012

    every: int = 20
    factor: float = 0.5

    def __post_init__(self) -> None:
        require(self.every >= 1, "stage: every", self.every, "must be at least 1")
        require(self.factor > 0, "stage: factor", self.factor, "must be greater than 0")

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        return first * self.factor ** (t // self.every)


@SCHEDULES.register("fewer")
@dataclass(frozen=True, kw_only=True)
class Fewer(Schedule):
    """first - by * floor(t / every), at least 1; `by` >= 1 epochs, `every` >= 1 rounds."""

    settings = ("epochs",)
    lengths = {"every": 1}  # noqa: RUF012

    every: int = 20
    by: int = 1

    def __post_init__(self) -> None:
        require(self.every >= 1, "fewer: every", self.every, "must be at least 1")
        require(self.by >= 1, "fewer: by", self.by, "must be at least 1")

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        return max(1.0, first - self.by * (t // self.every))


@lru_cache
def schedules(text: str, setting: str = "schedule") -> tuple[Schedule, ...]:
    """The schedules that `text` names. UserError for an unknown schedule, for one that this setting does not allow, and unless
    the first starts at 0 and each other after the one before. Only `phases` compares a share with a round."""
    try:
        phase_schedules = tuple(SCHEDULES.make(call) for call in parse(text))
    except UserError as error:
        raise UserError(f"{setting} = {text!r}: {error}") from error
    for schedule in phase_schedules:
        allowed_names = ", ".join(name for name in SCHEDULES.names() if setting in SCHEDULES.get(name).settings)
        require(setting in schedule.settings, setting, text, f"{schedule.name} is not for this setting; use {allowed_names}")
        label = f"{setting} = {text!r}: {schedule.name}: start"
        if isinstance(schedule.start, str):
            require(schedule.start == METHOD, label, schedule.start, f"must be a round, a share of the rounds or {METHOD}")
        elif isinstance(schedule.start, float):
            require_start(label, schedule.start)
    starts = [schedule.start for schedule in phase_schedules]
    for kind in (int, float, str):
        _require_order(text, setting, starts, [start for start in starts if type(start) is kind])
    return phase_schedules


def _require_order(text: str, setting: str, starts: Sequence[int | float | str], among: Sequence[Any]) -> None:
    if starts[0] != 0 or any(next_start <= previous_start for previous_start, next_start in pairwise(among)):
        raise UserError(
            f"{setting} = {text!r}: starts at rounds {starts}; the first must start at 0, each other after the one before"
        )


@lru_cache
def phases(text: str, setting: str, rounds: int) -> tuple[tuple[int, Schedule], ...]:
    """(first round, schedule) of each phase in a run of `rounds` rounds. UserError for `start=method`, and unless each starts
    after the one before."""
    phase_schedules = schedules(text, setting)
    for schedule in phase_schedules:
        if isinstance(schedule.start, str):
            raise UserError(
                f"{setting} = {text!r}: start = {schedule.start}: there is no method here to start with; give a round"
            )
    starts = [first_round(schedule.start, rounds) for schedule in phase_schedules if not isinstance(schedule.start, str)]
    _require_order(text, setting, starts, starts)
    return tuple(zip(starts, phase_schedules, strict=True))


def of_method(text: str, setting: str, method: str) -> str:
    """`text` for a run of this method (its canonical name): replaces `start=method` by the `start` of the part that has one.

    If no part has one, the phase is left out and the previous schedule continues. UserError if two parts have different starts.
    """
    phase_schedules = schedules(text, setting)
    if all(schedule.start != METHOD for schedule in phase_schedules):
        return text
    starts = {
        f"{call.name}(start={call.arguments['start']})": call.arguments["start"]
        for call in parse(method)
        if isinstance(call.arguments.get("start"), int | float)  # pFedMe's start is a word
    }
    if len(set(starts.values())) > 1:
        raise UserError(
            f"{setting} = {text!r}: the method has {' and '.join(starts)}; give them one start, or the phase a round"
        )
    method_start = next(iter(starts.values()), None)
    new_schedules = [
        replace(schedule, start=method_start) if schedule.start == METHOD and method_start is not None else schedule
        for schedule in phase_schedules
    ]
    return "+".join(str(SCHEDULES.canonical(schedule)) for schedule in new_schedules if schedule.start != METHOD)


def canonical(text: str, setting: str = "schedule") -> str:
    """Every schedule with every argument. The default stays unchanged, since older runs do not have it in their names."""
    phase_schedules, default = schedules(text, setting), DEFAULTS[setting]
    return (
        default
        if phase_schedules == schedules(default, setting)
        else "+".join(str(SCHEDULES.canonical(schedule)) for schedule in phase_schedules)
    )


def scaled(text: str, setting: str, rounds: int, original_rounds: int) -> str:
    """Converts `text`, written for `of` rounds, to a run of `rounds`. It stays the same text if no round is named in it.

    Starts, periods and steps keep their share of the rounds, rounded up as in a reading (`config.reading`). A start that is a
    share stays. The method's start stays too and follows the method (`methods.compose.for_rounds`). What counts per round (a
    factor, client_lr_decay) also stays. Phases that would fall together are kept a round apart, and the last one gets a round
    (our choice: a phase that is written down is never left out silently). UserError for a start that the `of` rounds never
    reach, and for more phases than `rounds`.
    """
    phase_schedules = schedules(text, setting)
    if min(rounds, original_rounds) < 1:  # another check refuses it
        return text
    starts = [schedule.start for schedule in phase_schedules if isinstance(schedule.start, int)]
    if starts[-1] >= original_rounds:
        raise UserError(
            f"{setting} = {text!r}: start = {starts[-1]} is never reached in {original_rounds} rounds; "
            f"make it less than {original_rounds}"
        )
    if len(starts) > rounds:
        raise UserError(
            f"{setting} = {text!r}: {len(starts)} phases do not fit into {rounds} rounds; give it fewer, or more rounds"
        )

    def scaled_count(count: int) -> int:
        return -(-count * rounds // original_rounds)

    for position, start in enumerate(starts):
        latest_start = rounds - (len(starts) - position)
        starts[position] = min(max(scaled_count(start), position and starts[position - 1] + 1), latest_start)
    new_starts, scaled_schedules = iter(starts), []
    for schedule in phase_schedules:
        lengths = {key: max(minimum, scaled_count(getattr(schedule, key))) for key, minimum in schedule.lengths.items()}
        scaled_schedules.append(
            replace(schedule, start=next(new_starts) if isinstance(schedule.start, int) else schedule.start, **lengths)
        )
    return (
        text
        if rounds == original_rounds or tuple(scaled_schedules) == phase_schedules
        else "+".join(str(SCHEDULES.canonical(schedule)) for schedule in scaled_schedules)
    )


def epochs(text: str, local_epochs: int, round: int, rounds: int) -> int:
    """The number of epochs of `round` (from 0), of `rounds` in all: the schedules' value, rounded down, at least 1."""
    return max(1, math.floor(_value(phases(text, "epochs", rounds), local_epochs, 1.0, round, rounds) + 1e-9))


def rate(text: str, client_lr: float, decay: float, round: int, rounds: int) -> float:
    """The learning rate of `round` (from 0), of `rounds` in all."""
    return _value(phases(text, "schedule", rounds), client_lr, decay, round, rounds)


def _value(chosen: tuple[tuple[int, Schedule], ...], first: float, decay: float, round: int, rounds: int) -> float:
    for (start, schedule), (end, _) in pairwise(chosen):
        if round < end:
            return schedule(first, round - start, rounds - start, decay)
        first = schedule(first, end - start, rounds - start, decay)
    start, schedule = chosen[-1]
    return schedule(first, round - start, rounds - start, decay)
