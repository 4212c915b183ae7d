"""The clients' learning rate and number of epochs round by round: calls joined by `+`, each of which takes over at its `start`.

`exponential` is FedLAW's; `cosine(half=false)` is Elastic aggregation's, whose first round has twice client_lr;
`exponential+cyclic(start=300, period=20, lowest=5e-5)` is one of FedIMA's late phases, and for epochs
`constant+fewer(start=300)` another. They are written for a number of rounds; `scaled` makes of them what fewer rounds take. No
torch: settings are read everywhere.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

from fedrepro.errors import UserError
from fedrepro.registry import Registry, parse, require

SCHEDULES = Registry("schedule")
# The setting -> what it is if nothing is said, which is left out of a run's name.
DEFAULTS = {"schedule": "exponential", "epochs": "constant"}


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """`start`: the first round (from 0) that it decides. It goes on from the rate that the one before has reached there.

    `settings`: those that may take it. `lengths`: its arguments that count rounds, with the least that each may be.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ("schedule",)
    lengths: ClassVar[dict[str, int]] = {}

    start: int = 0

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        """The rate (or epochs) `t` rounds after `start`, of the `rounds` left there. `first`: reached before; `decay`:
        client_lr_decay.
        """
        raise NotImplementedError


@SCHEDULES.register("exponential")
@dataclass(frozen=True, kw_only=True)
class Exponential(Schedule):
    """first * factor^t; `factor` > 0, without it the setting client_lr_decay, which no other schedule reads."""

    factor: float | None = None

    def __post_init__(self) -> None:
        require(self.factor is None or self.factor > 0, "exponential: factor", self.factor, "must be greater than 0")

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        return first * (decay if self.factor is None else self.factor) ** t


@SCHEDULES.register("constant")
@dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """`value` > 0; without it the rate that was reached."""

    settings = ("schedule", "epochs")

    value: float | None = None

    def __post_init__(self) -> None:
        require(self.value is None or self.value > 0, "constant: value", self.value, "must be greater than 0")

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        return first if self.value is None else self.value


@SCHEDULES.register("cosine")
@dataclass(frozen=True, kw_only=True)
class Cosine(Schedule):
    """first * (1 + cos(pi t / rounds)), with `half` times 1/2: then it begins at `first`, otherwise at twice that."""

    half: bool = True

    def __call__(self, first: float, t: int, rounds: int, decay: float) -> float:
        return first * (1 + math.cos(math.pi * t / rounds)) * (0.5 if self.half else 1.0)


@SCHEDULES.register("cyclic")
@dataclass(frozen=True, kw_only=True)
class Cyclic(Schedule):
    """A triangle: from the first rate down to `lowest` > 0 and back, straight, every `period` >= 2 rounds."""

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
    """first - by * floor(t / every); `by` >= 1 epochs, `every` >= 1 rounds. There is always one epoch."""

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
    """The schedules that `text` names. UserError for unknown ones, those that are not for this setting, and unless they start
    at 0 and then each after the other."""
    try:
        found = tuple(SCHEDULES.make(call) for call in parse(text))
    except UserError as error:
        raise UserError(f"{setting} = {text!r}: {error}") from error
    for one in found:
        known = ", ".join(name for name in SCHEDULES.names() if setting in SCHEDULES.get(name).settings)
        require(setting in one.settings, setting, text, f"{one.name} is not for this setting; use {known}")
    starts = [one.start for one in found]
    if starts[0] != 0 or any(after <= before for before, after in pairwise(starts)):
        raise UserError(
            f"{setting} = {text!r}: starts at rounds {starts}; the first must start at 0, each other after the one before"
        )
    return found


def canonical(text: str, setting: str = "schedule") -> str:
    """Every schedule with every argument; the default stays as it is, since older runs have none in their names."""
    found, default = schedules(text, setting), DEFAULTS[setting]
    return default if found == schedules(default, setting) else "+".join(str(SCHEDULES.canonical(one)) for one in found)


def scaled(text: str, setting: str, rounds: int, of: int) -> str:
    """`text`, which is written for `of` rounds, for a run of `rounds`: the very text where no round is named in it.

    Starts, periods and steps are the same share of the rounds, rounded up as those of a reading (`config.reading`); what counts
    per round (a factor, client_lr_decay) stays. Phases that would fall together are kept a round apart, and the last one gets a
    round (our choice: a phase that is written down is never left out in silence).
    UserError for a start that the `of` rounds never reach, and for more phases than `rounds`.
    """
    found = schedules(text, setting)
    if min(rounds, of) < 1:  # is refused elsewhere
        return text
    if found[-1].start >= of:
        raise UserError(
            f"{setting} = {text!r}: start = {found[-1].start} is never reached in {of} rounds; make it less than {of}"
        )
    if len(found) > rounds:
        raise UserError(
            f"{setting} = {text!r}: {len(found)} phases do not fit into {rounds} rounds; give it fewer, or more rounds"
        )
    part = lambda count: -(-count * rounds // of)  # noqa: E731
    made: list[Schedule] = []
    for place, one in enumerate(found):
        latest = rounds - (len(found) - place)
        start = min(max(part(one.start), place and made[-1].start + 1), latest)
        lengths = {key: max(least, part(getattr(one, key))) for key, least in one.lengths.items()}
        made.append(replace(one, start=start, **lengths))
    return text if rounds == of or tuple(made) == found else "+".join(str(SCHEDULES.canonical(one)) for one in made)


def epochs(text: str, local_epochs: int, round: int, rounds: int) -> int:
    """The number of epochs of `round` (from 0), of `rounds` in all: what the schedules say, rounded down, at least 1."""
    return max(1, math.floor(_value(schedules(text, "epochs"), local_epochs, 1.0, round, rounds) + 1e-9))


def rate(text: str, client_lr: float, decay: float, round: int, rounds: int) -> float:
    """The learning rate of `round` (from 0), of `rounds` in all."""
    return _value(schedules(text), client_lr, decay, round, rounds)


def _value(chosen: tuple[Schedule, ...], first: float, decay: float, round: int, rounds: int) -> float:
    if len(chosen) == 1:  # asked for every client in every round
        return chosen[0](first, round, rounds, decay)
    for now, after in pairwise(chosen):
        if round < after.start:
            return now(first, round - now.start, rounds - now.start, decay)
        first = now(first, after.start - now.start, rounds - now.start, decay)
    return chosen[-1](first, round - chosen[-1].start, rounds - chosen[-1].start, decay)
