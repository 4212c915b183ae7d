"""How gamma and lambda change over the server's epochs in one round. FedLAW, ICML 2023, Figure 14.

The server's step of the round is made again from what is kept of it: the global model before the round, the clients' models and
their data-size weights. The proxy set and the order of its batches follow from the seed. So the last values of `fedlaw` and
`attentive_law` are those of the run, to the bit. `adaptive_gws` learns on the mean of the clients' updates. Their models are
kept instead, so its values may differ in the last digits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Task, Value
from fedrepro.errors import UserError
from fedrepro.lazy import Tensor, torch
from fedrepro.registry import require

if TYPE_CHECKING:
    from fedrepro.methods.compose import Method
    from fedrepro.tree import Tree

# Those that learn by `ProxyLearning.optimise`. Not `early_stopped_law`, whose state says whether it still learns.
PARTS = ("fedlaw", "fedlaw_only", "fedlaw_swa", "attentive_law", "law_swa", "adaptive_gws")


@DIAGNOSTICS.register("server_learning")
@dataclass(frozen=True)
class ServerLearning(Diagnostic):
    """`learning_gamma` and, of each client, `learning_lambda` after x server epochs; 0 is the start. The round's value of
    `learning_gamma` is the last one. `learning_gamma_epochs` and `learning_lambda_epochs`: epochs until gamma, and all lambdas
    together (the sum of their distances), stay within `settled` of the farthest that they were from their end. The paper says
    that they converge, not by what rule; a tenth is our choice.

    The method has one part that learns on the proxy set. It has no part that needs more than the kept models: no transform of
    the updates, no FedNova, nothing that measures held-out samples. Of `fedlaw_swa` the two stages follow each other. In its
    first stage, and in `law_swa`, lambda is that before the average over epochs. `adaptive_gws` has no `learning_lambda`. A
    round in which nothing is learned has no value.
    """

    settled: float = 0.1
    metrics: ClassVar[tuple[str, ...]] = (
        *("learning_gamma", "learning_lambda"),
        *("learning_gamma_epochs", "learning_lambda_epochs"),
    )
    x: ClassVar[str] = "server epoch"

    def __post_init__(self) -> None:
        require(0 < self.settled < 1, "settled", self.settled, "must be greater than 0 and below 1")

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """A hundred epochs on a proxy set of a thousand images, forwards and backwards: the method's own settings are not known
        here."""
        return (Passes(300, "test", 1000),)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields gamma's curve and last value, then each client's curve. UserError for a method that cannot be made again."""
        if not kept.clients:
            return
        logits = learned(kept, task())
        if not logits:
            return
        gammas = [float(x[-1].exp()) for x in logits]
        yield from (Value(kept.round, "learning_gamma", gamma, x=float(epoch)) for epoch, gamma in enumerate(gammas))
        yield Value(kept.round, "learning_gamma", gammas[-1])
        yield Value(kept.round, "learning_gamma_epochs", settles([abs(gamma - gammas[-1]) for gamma in gammas], self.settled))
        if len(logits[0]) != len(kept.clients) + 1:
            return
        lambdas = [x[:-1].softmax(0).tolist() for x in logits]
        for place, client in enumerate(kept.clients):
            for epoch, weights in enumerate(lambdas):
                yield Value(kept.round, "learning_lambda", weights[place], client=client, x=float(epoch))
        distances = [sum(abs(weight - end) for weight, end in zip(weights, lambdas[-1], strict=True)) for weights in lambdas]
        yield Value(kept.round, "learning_lambda_epochs", settles(distances, self.settled))


def settles(distances: Sequence[float], share: float) -> float:
    """The first epoch from which on all `distances` to the end are at most `share` of the largest."""
    far_epochs = [epoch for epoch, distance in enumerate(distances) if distance > share * max(distances)]
    return float(far_epochs[-1] + 1) if far_epochs else 0.0


def learned(kept: RoundModels, task: Task) -> "list[Tensor]":
    """The logits [K + 1] that the server's learning starts from, then those after each epoch; the last is gamma's."""
    from fedrepro.engine.loop import server_context
    from fedrepro.methods.compose import compose

    logits: list[Tensor] = []
    method = compose(task.spec.method)
    part, earlier_parts = learning(method)
    steps = [method.aggregate] if method.aggregate.name == "fednova" else []  # it reads each client's steps
    part_names = [method_part.name for method_part in (*method.transforms, *method.probing, *steps)]
    if part_names:
        raise UserError(f"server_learning: {method.label}: {', '.join(part_names)} reads what is not kept; take another method")
    state = method.init(kept.before.params, kept.before.buffers)
    carried_states = [state.shared, *(earlier_part.init(kept.before.params) for earlier_part in earlier_parts)]
    if any(part_state is not None for part_state in carried_states):
        raise UserError(f"server_learning: {method.label}: keeps a state between rounds that is not kept; take another method")
    method = recording(method, part, logits)
    method.apply(state, server_context(task, state, _cohort(kept, task), kept.round - 1, {}))
    return logits


def learning(method: "Method") -> "tuple[Any, list[Any]]":
    """(the part that learns on the proxy set, the server's parts before it). UserError unless there is one, and one alone."""
    served_parts = [*method.transforms, method.aggregate, *method.rescales, method.server_opt, *method.refines]
    places = [place for place, part in enumerate(served_parts) if part.name in PARTS]
    if len(places) != 1:
        raise UserError(f"server_learning: {method.label}: has {len(places)} parts of {', '.join(PARTS)}; take one with one")
    return served_parts[places[0]], served_parts[: places[0]]


def recording(method: "Method", part: Any, logits: "list[Tensor]") -> "Method":
    """The same method, whose `part` adds the logits that it starts from and those after each epoch to `logits`."""

    class Recording(type(part)):
        """The part, with its logits recorded and nothing else changed."""

        def optimise(self, models: Any, x: Any, *args: Any, **more: Any) -> Iterator[Any]:
            logits.extend([] if logits else [x])
            for new_logits in super().optimise(models, x, *args, **more):
                logits.append(new_logits)
                yield new_logits

    recorder: Any = Recording(**{field.name: getattr(part, field.name) for field in fields(part)})
    aggregate = recorder if part is method.aggregate else method.aggregate
    return replace(
        method, aggregate=aggregate, refines=tuple(recorder if refine is part else refine for refine in method.refines)
    )


def _cohort(kept: RoundModels, task: Task) -> Any:
    """Returns the cohort that the server received. Messages of a client rule beside its model are not kept."""
    from fedrepro.types import Cohort

    class Met(Cohort):
        """Its models are the kept ones: the sum of update and global model may differ from them in the last digit."""

        @property
        def models(self) -> "Tree":
            """The clients' weights, [K, D]."""
            return kept.params

    steps = torch.ones_like(kept.weights)  # step counts are not kept, and not used below
    fraction = len(kept.clients) / task.training_clients
    arguments = kept.clients, kept.updates, kept.weights, steps, steps, fraction, task.spec.clients
    return Met(*arguments, kept.before.params, kept.buffers)
