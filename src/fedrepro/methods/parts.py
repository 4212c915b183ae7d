"""The slots of a round and the base class of each.

client -> transform* -> absorb -> aggregate -> rescale* -> correct -> server_opt -> refine* -> average*   (* may repeat)

`absorb` and `correct` are hooks of the client rule; the `buffers` part says what becomes of running statistics meanwhile. A
part is a frozen dataclass in its own file, registered for one slot; the base classes spell FedAvg. State is a value: a
Tree, a tensor, a number, or a tuple or dict of those.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from fedrepro import tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.proxy_sampling import balanced
from fedrepro.registry import Registry, require
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Cohort, Network, ServerContext, Solver, Start

SLOTS = ("client", "transform", "aggregate", "rescale", "server_opt", "refine", "average", "buffers")
REPEATABLE = frozenset({"transform", "rescale", "refine", "average"})
PARTS = Registry("method part")
Named = dict[str, Tree]


def register(slot: str, name: str):
    """Class decorator: the dataclass becomes the part `name` of `slot`."""
    if slot not in SLOTS:
        raise ValueError(f"{slot!r} is not a slot; slots: {', '.join(SLOTS)}")
    return PARTS.register(name, slot=slot)


def require_weighting(where: str, weighting: str, *known: str) -> None:
    """`weighting` says how clients count (`Cohort.shares`): by their data (size) or each the same (uniform), or as `known`."""
    known = known or ("size", "uniform")
    require(weighting in known, f"{where}: weighting", weighting, f"must be {', '.join(known[:-1])} or {known[-1]}")


class Part:
    """What every part has; `needs` names what a run must provide ("proxy")."""

    name: ClassVar[str]
    slot: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    reads_buffers: ClassVar[bool] = False  # looks at clients' running statistics, which then have to travel

    sends: ClassVar[int] = 0  # vectors [D] that a client sends for it, besides its model
    receives: ClassVar[int] = 0  # vectors [D] that a client is sent for it, besides the model

    counts_rounds: ClassVar[frozenset[str]] = frozenset()  # arguments that are a round where they are whole numbers

    def begins(self, rounds: int) -> int | None:
        """The first round (from 0) that it changes, in a run of `rounds` rounds. None: it changes all of them.

        Up to there a run is the same without the part, which remembers at most, and only what it can `inherit`.
        """
        return None

    def remembers(self, rounds: int) -> int:
        """Of how many of the last rounds it takes the global weights when it begins."""
        return 0

    def numbers(self, network: Network) -> tuple[int, int]:
        """Numbers that a client sends and is sent for it, besides vectors [D]."""
        return 0, 0

    def probe(self, batches: Iterable[Batch], ctx: ClientContext) -> Tree:
        """What a client measures at `ctx.anchor` on its held-out samples before it trains; the network is in evaluation mode.

        A part that overrides it finds the cohort's in `Cohort.probes`, under its own name. There may be no batch at all.
        """
        raise NotImplementedError

    @property
    def wants(self) -> dict[str, str]:
        """{slot: part}: what another slot takes beside this part when a method leaves that slot open."""
        return {}


class LocalRule(Part):
    """Client slot. Written for one client; every hook is pure, and every default is FedAvg."""

    def loss(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tensor:
        """Scalar objective on one batch: the model's, for classifiers mean cross-entropy."""
        return ctx.network.loss(ctx.network(params, batch.x), batch.y)

    def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        """What the local solver descends along, [D]: the gradient of `loss`, in closed form if the loss is the plain one."""
        if type(self).loss is LocalRule.loss and (closed := ctx.network.gradient(params, batch)) is not None:
            return closed
        return tree.gradient(lambda p: self.loss(p, batch, ctx), params)

    def solver(self, setting: Solver) -> Solver:
        """The local solver; the setting's, unless the method brings its own."""
        return setting

    @property
    def batches_per_step(self) -> int:
        """How many batches a step is handed. `batch.others` holds the second and later ones.

        They are of the size of the first, from the same client's samples in orders of their own: independent of it and of each
        other, so that a sample may be in several. The first are those that FedAvg takes.
        """
        return 1

    @property
    def pull(self) -> float:
        """Strength mu of a term mu/2 ||w - w_t||^2 in the loss: it shortens what later steps add to earlier ones."""
        return 0.0

    def effective_steps(self, setting: Solver, client_lr: float, num_steps: list[int]) -> list[float]:
        """a_k for each T_k: how far T_k steps lead, in units of client_lr, where every gradient of the loss is one.

        Momentum makes later steps longer, a proximal term holds them back (FedNova, section 4.2, and both at once as their
        recurrence has it). Weight decay and the schedule over rounds do not count, as there. Plain SGD: a_k = T_k.
        """
        momentum, path, velocity, reached = self.solver(setting).momentum, 0.0, 0.0, [0.0]
        for _ in range(max(num_steps, default=0)):
            velocity = momentum * velocity + 1 - client_lr * self.pull * path
            path += velocity
            reached.append(path)
        return [reached[steps] for steps in num_steps]

    @property
    def steps_alone(self) -> bool:
        """Whether `step` does more than the solver's step along `direction`, which engines take in place."""
        return type(self).step is not LocalRule.step

    def begin(self, ctx: ClientContext) -> Named:
        """State of this round alone, which every step is handed and hands on."""
        return {}

    def step(self, params: Tree, batch: Batch, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
        """(weights, local state) after one local step: down `direction`, as the local solver does it."""
        return ctx.solver.descend(params, self.direction(params, batch, ctx), local, ctx.client_lr)

    def finish(self, params: Tree, local: Named, ctx: ClientContext) -> tuple[Tree | None, Named]:
        """(message to the server, own state for this client's next round) after the last step."""
        return None, ctx.own

    def notes(self, params: Tree, local: Named, ctx: ClientContext) -> dict[str, Tensor]:
        """Numbers of this client's round, each [], for the record: mean, least and largest over the cohort."""
        return {}

    def personalise(self, batches: Iterable[Batch], ctx: ClientContext) -> Tree:
        """The client's own model, from the global one (`ctx.anchor`) and batches of its training samples.

        A rule that overrides it is also evaluated on every client's held-out samples.
        """
        return ctx.anchor

    def init_shared(self, params: Tree) -> Tree | None:
        """State that the server keeps for this rule."""
        return None

    def draw_shared(self, params: Tree, start: Start) -> Tree | None:
        """The same, for a rule that needs the model or the seed's random numbers for it: it overrides this one instead."""
        return self.init_shared(params)

    def init_own(self, params: Tree) -> Named:
        """State that each client keeps between its rounds, by name; `finish` hands on the same names."""
        return {}

    def absorb(self, shared: Any, cohort: Cohort) -> Any:
        """The shared state after the cohort's messages."""
        return shared

    def correct(self, update: Tree, shared: Any) -> Tree:
        """The aggregated update after this rule's correction."""
        return update


class ServerPart(Part):
    """What the server's slots share: x goes in, the new x comes out, and with it the part's state for the next round.

    What x is, the slot says. Parts that need more find it in `ctx`: the cohort, say, in `ctx.cohort`. One whose work does not
    fit what a later slot remembers adds that slot to `ctx.starting_over`, for this round.
    """

    def init(self, params: Tree) -> Any:
        """State before the first round."""
        return None

    def __call__(self, x: Any, state: Any, ctx: ServerContext) -> tuple[Any, Any]:
        raise NotImplementedError


class Transform(ServerPart):
    """Cohort -> cohort: changes the clients' updates. To what follows, clients' models are w + the new updates."""


class Aggregate(ServerPart):
    """Cohort -> update: one update [D] from those of the cohort [K, D]."""


class Rescale(ServerPart):
    """Update -> update [D]: scales the aggregated update, element by element."""


class ServerOpt(ServerPart):
    """Update -> step [D], which is added to the global weights."""


class Refine(ServerPart):
    """Weights -> weights [D]: changes the new global weights, with or without proxy data."""


class Average(ServerPart):
    """Weights -> weights [D]: an average over rounds; what it returns is evaluated and sent to the clients."""

    def inherit(self, history: Sequence[Tree]) -> Any:
        """Its state before a round up to `begins`, of a run that did without it so far.

        `history`: the weights [D] that it would have been handed, oldest first. They are the global weights after each of the
        last `remembers` rounds in which clients trained, or after all of those if there were fewer, as long as no average
        behind it has begun.
        """
        raise NotImplementedError


class Buffers(Part):
    """What becomes of running statistics (of BatchNorm), before and after the server's work."""

    def start(self, before: Tree, cohort: Cohort) -> Tree:
        """The statistics [D'] that the server's network starts from; `before`: those that the clients received."""
        raise NotImplementedError

    def finish(self, params: Tree, buffers: Tree, ctx: ServerContext) -> Tree:
        """The statistics of the new global model; `buffers`: those of the server's network after its work."""
        return buffers


def proxy_batches(ctx: ServerContext, purpose: str, epochs: int) -> Iterator[tuple[int, Tensor]]:
    """Mini-batches of the proxy set as (epoch, positions [B]), shuffled or class-balanced (`ServerContext.proxy_sampling`); the
    order is fixed by (seed, round, purpose)."""
    assert ctx.proxy is not None
    generator, y = ctx.rng(purpose), ctx.proxy.y
    draw = partial(generator.permutation, len(ctx.proxy))
    if ctx.proxy_sampling == "balanced":
        draw = partial(balanced, (y if y.dim() == 1 else y[:, -1]).cpu().numpy(), generator)  # of text: what follows a window
    for epoch in range(epochs):
        order = torch.from_numpy(draw()).to(y.device)
        yield from ((epoch, index_B) for index_B in order.split(ctx.proxy_batch_size) if len(index_B) >= ctx.smallest_batch)


def samples_in(batch: Batch, params: Tree) -> Tensor:
    """How many samples of the batch are real, [] or, for weights [K, D] of several clients, [K]; of the weights' type."""
    if params.flat.dim() == 1:
        return params.flat.new_tensor(len(batch))
    real = batch.y != -100  # of padding every target is that
    return (real.flatten(2).any(-1) if real.dim() > 2 else real).sum(-1).to(params.flat.dtype)
