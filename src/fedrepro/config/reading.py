"""What a table takes of a run: which metric, over which rounds. Needs neither torch nor a schema library.

A table writes a reading as a call, `read: at(200)`; here it becomes a `Reading`, which knows a seed's value and its words.
Rounds in it are the protocol's; in a run of fewer rounds they are the same share of them, rounded up.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from fedrepro.engine.measurements import curve_name
from fedrepro.models.names import primary_metric
from fedrepro.registry import Registry, parse, require
from fedrepro.units import unit

EDITED = "params.yaml"  # the source of every value that a person put there in the place of the paper's
READINGS = Registry("reading")
Curve = list[float | None]  # a metric by round; None where it was not measured


class Call:
    """What every reading has; a subclass says what differs from the mean of the measured values of its rounds."""

    def scaled(self, share: float) -> "Call":
        """The same reading of a run that has this share of the protocol's rounds."""
        return self

    def window(self, rounds: int) -> range:
        """The rounds, counted from 0, at which a run of `rounds` rounds is read."""
        return range(rounds)

    def value(self, curve: Curve, better: str) -> float | None:
        """Reads one number off a seed's curve; None where it has nothing to read."""
        return _mean(_within(curve, self.window(len(curve))))


@READINGS.register("last")
@dataclass(frozen=True)
class Last(Call):
    """The mean over the last `rounds` rounds; over all of a run that has fewer."""

    rounds: int = 1

    def __post_init__(self) -> None:
        require(self.rounds >= 1, "rounds", self.rounds, "must be at least 1")

    def scaled(self, share: float) -> "Last":
        return replace(self, rounds=max(1, round(self.rounds * share)))

    def window(self, rounds: int) -> range:
        return range(max(0, rounds - self.rounds), rounds)


@READINGS.register("share")
@dataclass(frozen=True)
class Share(Call):
    """The mean over the last part of the rounds: 0.1 is the last tenth, one round at least."""

    part: float

    def __post_init__(self) -> None:
        require(0 < self.part <= 1, "part", self.part, "must be above 0 and at most 1")

    def window(self, rounds: int) -> range:
        return range(rounds - max(1, round(self.part * rounds)), rounds)


@READINGS.register("at")
@dataclass(frozen=True)
class At(Call):
    """After `round` rounds; the mean over the last `mean` of them."""

    round: int
    mean: int = 1

    def __post_init__(self) -> None:
        require(self.round >= 1, "round", self.round, "must be at least 1")
        require(self.mean >= 1, "mean", self.mean, "must be at least 1")

    def scaled(self, share: float) -> "At":
        return At(_part(self.round, share), max(1, round(self.mean * share)))

    def window(self, rounds: int) -> range:
        until = min(self.round, rounds)
        return range(max(0, until - self.mean), until)


@READINGS.register("mean")
@dataclass(frozen=True)
class Mean(Call):
    """The mean over the rounds `first` to `last`, both counted from 1 and both included."""

    first: int
    last: int

    def __post_init__(self) -> None:
        require(self.first >= 1, "first", self.first, "must be at least 1")
        require(self.last >= self.first, "last", self.last, "must not lie before first")

    def scaled(self, share: float) -> "Mean":
        return Mean(_part(self.first, share), _part(self.last, share))

    def window(self, rounds: int) -> range:
        return range(min(self.first, rounds) - 1, min(self.last, rounds))


@READINGS.register("best")
@dataclass(frozen=True)
class Best(Call):
    """The best round. It is picked on the data that it is measured on, which is optimistic."""

    def value(self, curve: Curve, better: str) -> float | None:
        choose = max if better == "higher" else min
        return choose((value for value in curve if value is not None), default=None)


@READINGS.register("jumps")
@dataclass(frozen=True)
class Jumps(Share):
    """How far the metric jumps from one measured round to the next: mean |difference| over the last part of the rounds."""

    def window(self, rounds: int) -> range:
        return range(rounds - max(2, round(self.part * rounds)), rounds) if rounds > 1 else range(rounds)

    def value(self, curve: Curve, better: str) -> float | None:
        within = self.window(len(curve))
        values = [value for value in curve[within.start : within.stop] if value is not None]
        return _mean([abs(after - before) for before, after in pairwise(values)])


@READINGS.register("first_reaching")
@dataclass(frozen=True)
class FirstReaching(Call):
    """How many rounds it takes until the metric is at least `target`; with `falling`, at most. None: it never is."""

    target: float
    falling: bool = False

    def value(self, curve: Curve, better: str) -> float | None:
        side = -1 if self.falling else 1
        reached = (i for i, value in enumerate(curve, 1) if value is not None and side * value >= side * self.target)
        return next(reached, None)


def make(text: str) -> Call:
    """The reading that `text` calls for, `last(10)`. UserError for what is none."""
    (call, *more) = parse(text, positional=True)
    require(not more, "read", text, "must be one reading; leave out what follows +")
    return READINGS.make(call)


class Reading(NamedTuple):
    """`call` of `metric`: one number of a seed's curve."""

    metric: str
    call: Call
    better: str = "higher"
    diagnostic: str | None = None  # what measures the metric on kept models; None: the run records it
    unit: str = ""  # of a value, where it is to be written

    @property
    def curve(self) -> str:
        """Its name among a receipt's curves."""
        return curve_name(self.diagnostic, self.metric)

    @property
    def quantity(self) -> str:
        """What a value measures: the metric, the rounds to a target, or how much the curve jumps. Each has a spread over seeds
        and a ranking of its own."""
        kind = {FirstReaching: ", rounds to a target", Jumps: ", jumps"}.get(type(self.call), "")
        return self.metric + kind

    @property
    def derived(self) -> bool:
        """Whether a value is no value of the metric: a number of rounds, a jump."""
        return self.quantity != self.metric

    def of(self, receipt: dict[str, Any]) -> float | None:
        """The value of one seed. None: it diverged before it was read, or never reached the target."""
        return self.value(receipt["curves"]) if self.precedes(receipt["status"], receipt["curves"]) else None

    def value(self, curves: dict[str, Curve]) -> float | None:
        """The value of one seed that has the rounds that are read, from its curves. None: it never reached the target."""
        return self.call.value(curves[self.curve], self.better)

    def number(self, value: float | None, sign: str = "") -> str:
        """`85.20`, at the decimals of the unit; `diverged` or the like for None."""
        return self.none if value is None else unit(self.unit).text(value, sign)

    @property
    def none(self) -> str:
        """The word for a seed without a value. Of a diagnostic it may have diverged, or have found none that is finite."""
        return "no value" if self.diagnostic else unit(self.unit).none

    def precedes(self, status: str, curves: dict[str, Curve]) -> bool:
        """Whether a run has a number: it did not diverge, or only after the last round that is read. A diverged run records the
        round of divergence last. Our choice: a reading that names no last round (`last`, `best`) has no number then."""
        return status != "diverged" or (self.until is not None and self.until < len(curves["round"]))

    def window(self, rounds: int) -> range:
        """The rounds, counted from 0, at which a run of `rounds` rounds is read."""
        return self.call.window(rounds)

    def __str__(self) -> str:
        return f"{READINGS.canonical(self.call)} of {self.curve}, {self.better} is better"

    @property
    def until(self) -> int | None:
        """The round that it names as its last one, counted from 1; None where it reads to the end of a run."""
        return self.call.round if isinstance(self.call, At) else self.call.last if isinstance(self.call, Mean) else None

    @property
    def averaged(self) -> int | None:
        """The number of last rounds that it averages over, where it names one."""
        return self.call.rounds if isinstance(self.call, Last) else self.call.mean if isinstance(self.call, At) else None

    @property
    def short(self) -> str:
        """Its name behind a metric's: `last10`, `round200`, `rounds90_to_110`, `best`, `rounds_to_64`."""
        match self.call:
            case Last(rounds=rounds):
                return f"last{rounds}"
            case At(round=round, mean=mean):
                return f"round{round}" + (f"_last{mean}" if mean > 1 else "")
            case Mean(first=first, last=last):
                return f"rounds{first}_to_{last}"
            case Jumps(part=part):
                return f"jumps{part:g}"
            case Share(part=part):
                return f"last{part:g}"
            case FirstReaching(target=target):
                return f"rounds_to_{target:g}"
        return "best"

    def over(self, config: dict[str, Any]) -> str:
        """`mean of the last 10 of 200 rounds`, `after 100 of 500 rounds` of a run with this configuration; which of them were
        measured, where not every round was. Diagnostics measure the rounds that are kept, whatever is evaluated."""
        rounds, every = config["rounds"], 1 if self.diagnostic else config.get("evaluate_every", 1)
        measured = [t + 1 for t in range(rounds) if (t + 1) % every == 0 or t + 1 == rounds]
        if isinstance(self.call, Best):
            return (
                f"the best of {rounds} rounds" if every == 1 else f"the best of the {len(measured)} measured of {rounds} rounds"
            )
        if isinstance(self.call, FirstReaching):
            side = "at most" if self.call.falling else "at least"
            return f"rounds until it is {side} {self.call.target:g}, of {rounds}"
        read = self.window(rounds)
        if isinstance(self.call, Jumps):
            return f"mean jump from one measured round to the next, over the last {len(read)} of {rounds} rounds"
        within = [number for number in measured if number - 1 in read]
        if len(within) < len(read):
            return _partly_measured(within, len(read), measured, read.stop, rounds)
        if isinstance(self.call, Mean):
            return f"mean of rounds {read.start + 1} to {read.stop} of {rounds}"
        if read.stop < rounds:
            return f"after {read.stop} of {rounds} rounds" + (f", mean of {len(read)}" if len(read) > 1 else "")
        if len(read) == 1:
            return f"the last of {rounds} rounds" if rounds > 1 else "the only round"
        if len(read) < rounds:
            return f"mean of the last {len(read)} of {rounds} rounds"
        return "mean of both rounds" if rounds == 2 else f"mean of all {rounds} rounds"


def _partly_measured(within: list[int], read: int, measured: list[int], until: int, rounds: int) -> str:
    """Words for a reading where not every round of the `read` ones up to `until` was measured."""
    if len(within) > 1:
        return f"mean of the {len(within)} measured of the {read} rounds up to round {until} of {rounds}"
    if within:
        return f"round {within[0]} of {rounds}" + (
            f", the only one of the last {read} that was measured" if within[0] == until else ""
        )
    before = max((number for number in measured if number <= until), default=0)
    return f"round {before} of {rounds}, the last one measured before round {until}"


def _part(count: int, share: float) -> int:
    return max(1, math.ceil(round(count * share, 9)))  # 70 x 0.1 is 7, not 7.000000000000001


def _within(curve: Curve, rounds: range) -> list[float]:
    """The measured values of these rounds; the last one before them where there is none."""
    values = [value for value in curve[rounds.start : rounds.stop] if value is not None]
    return values or [value for value in curve[: rounds.stop] if value is not None][-1:]


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def last_round(model: str) -> Reading:
    """The reading that is shown of a run of no table, or of tables that read it by diagnostics alone."""
    metric = primary_metric(model)
    return Reading(metric, Last(), unit="percent" if metric.endswith("accuracy") else "fraction")
