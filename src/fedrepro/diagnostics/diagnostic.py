"""What every diagnostic is: a frozen dataclass of arguments that measures the models of one round."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from fedrepro.engine.diagnosed import Value
from fedrepro.errors import UserError
from fedrepro.registry import Registry, parse, require, unknown

if TYPE_CHECKING:
    from fedrepro.engine.kept import Kept
    from fedrepro.engine.task import Task

DIAGNOSTICS = Registry("diagnostic")


class Diagnostic(Protocol):
    """Its docstring gives formula and source. The same models give the same values: what is drawn has a stream of its own."""

    name: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]  # names of what it measures, for a table's `metric`

    def measure(self, kept: "Kept", task: "Callable[[], Task]") -> Iterator[Value]:
        """The values of one round. A value without client, x and y is the round's: what tables read.

        `kept`: the global model before and after the round, and the models of its clients. `task` loads the setting on first
        use: model, training and test images, which client has which of them, the proxy set.
        """
        ...


def make(text: str) -> Any:
    """The diagnostic that `text` calls for, `client_distance(relative=true)`. UserError for what is none."""
    (call, *more) = parse(text, positional=True)
    require(not more, "diagnostic", text, "must be one diagnostic; leave out what follows +")
    return DIAGNOSTICS.make(call)


def canonical(text: str, metric: str | None = None) -> str:
    """The call with every argument. UserError when it is none, or does not measure `metric`."""
    made = make(text)
    if metric is not None and metric not in made.metrics:
        raise UserError(f"{made.name}: {unknown('metric', metric, sorted(made.metrics))}")
    return str(DIAGNOSTICS.canonical(made))
