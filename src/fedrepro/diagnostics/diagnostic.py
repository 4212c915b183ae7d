"""What every diagnostic is: a frozen dataclass of arguments that measures the models of one round."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fedrepro.engine.measurements import Value
from fedrepro.errors import UserError
from fedrepro.registry import Registry, parse, require, unknown

if TYPE_CHECKING:
    from fedrepro.engine.kept import RoundModels
    from fedrepro.engine.task import Task
else:  # planning creates diagnostics without importing torch
    RoundModels = Task = Any

Load = Callable[[], Task]  # loads the setting on first use
DIAGNOSTICS = Registry("diagnostic")

# Arguments that mean the same in every diagnostic that has them -> (whether a value is right, the rule in words).
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "outputs": (lambda name: name in ("logits", "probabilities"), "must be logits or probabilities"),
    "reach": (lambda reach: reach > 0, "must be greater than 0"),
    "points": (lambda count: count >= 2, "must be at least 2"),
    "groups": (lambda count: count >= 0, "must be the number of clients in the first group, or 0 for no groups"),
    "apart": (  # see `spaced`
        lambda apart: 0 < apart < 1 or (apart >= 1 and apart == int(apart)),
        "must be a whole number of rounds, or a share of them between 0 and 1",
    ),
    "on": (lambda name: name in ("test", "train"), "must be test or train"),
    "samples": (lambda count: count is None or count >= 1, "must be at least 1, or null for all"),
}


class Passes(NamedTuple):
    """What a diagnostic computes in one round, for the forecast: `models` are evaluated on `samples` images of the test set, or
    of the clients' training images; None: on all of them."""

    models: int
    on: str = "test"
    samples: int | None = None


class Diagnostic:
    """Its docstring gives formula and source. The same models give the same values: random draws have a separate stream."""

    name: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]  # names of what it measures, for a table's `metric`
    x: ClassVar[str] = "x"  # what the x of its curves counts, in words for an axis

    def __post_init__(self) -> None:
        """UserError for an argument of RULES that breaks its rule. A diagnostic with rules of its own calls this too."""
        for name, (is_valid, rule) in RULES.items():
            if name in vars(self):
                require(is_valid(vars(self)[name]), name, vars(self)[name], rule)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """The values of one round. A value without client, x and y is the round's: what tables read.

        `kept`: the global model before and after the round, and the models of its clients; `kept.others`: the same of the
        rounds that `earlier` names, as far as they exist. `task` loads the setting on first use: model, training and test
        images, which client has which of them, the proxy set.
        """
        raise NotImplementedError

    def earlier(self, round: int, of: int) -> tuple[int, ...]:
        """The other rounds whose models it needs to measure `round`, in a run of `of` rounds. Planning keeps them. Rounds
        below 1 do not exist."""
        return ()

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """What one round costs if `clients` clients train in it."""
        return ()


def checked(diagnostic: Diagnostic, kept: RoundModels, values: Iterable[Value] | None) -> Iterator[Value]:
    """Yields what `measure` gives of one round. UserError for values that reports would misread: another metric or round, a
    client that did not train, or two values at one place."""
    prefix, places = f"{diagnostic.name}: round {kept.round}", set[tuple[Any, ...]]()
    if values is None:
        raise UserError(f"{prefix}: `measure` returns nothing; yield Value(kept.round, metric, number)")
    for value in values:
        if not isinstance(value, Value):
            raise UserError(f"{prefix}: yields {value!r:.60}; yield Value(kept.round, metric, number)")
        if value.metric.partition("/")[0] not in diagnostic.metrics:
            raise UserError(f"{prefix}: {unknown('metric', value.metric, sorted(diagnostic.metrics))}; add it to `metrics`")
        require(value.round == kept.round, f"{prefix}: {value.metric}: round", value.round, "must be kept.round")
        is_in_cohort = value.client is None or value.client in kept.clients
        require(is_in_cohort, f"{prefix}: {value.metric}: client", value.client, "must be one of kept.clients")
        place = (value.metric, value.client, value.x, value.y)
        require(place not in places, f"{prefix}: {value.metric}", value.value, f"is a second value at {place[1:]}")
        places.add(place)
        yield value


def spaced(round: int, of: int, apart: float, count: int) -> tuple[int, ...]:
    """The `count` rounds before `round`, oldest first, each `apart` rounds from the next; below 1 it is a share of the run."""
    step = max(1, math.floor(apart * of + 0.5)) if apart < 1 else int(apart)
    return tuple(round - step * number for number in range(count, 0, -1))


def least(values: Iterable[float]) -> float:
    """Returns the least finite value; not a number where there is none."""
    return min(filter(math.isfinite, values), default=math.nan)


def make(text: str) -> Any:
    """The diagnostic that `text` calls for, `client_distance(relative=true)`. UserError if it is not a diagnostic."""
    (call, *extra_calls) = parse(text, positional=True)
    require(not extra_calls, "diagnostic", text, "must be one diagnostic; leave out what follows +")
    return DIAGNOSTICS.make(call)


def canonical(text: str, metric: str | None = None) -> str:
    """The call with every argument. UserError if it is not a diagnostic or does not measure `metric`."""
    diagnostic = make(text)
    if metric is not None and metric not in diagnostic.metrics:
        raise UserError(f"{diagnostic.name}: {unknown('metric', metric, sorted(diagnostic.metrics))}")
    return str(DIAGNOSTICS.canonical(diagnostic))
