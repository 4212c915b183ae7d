"""The slots of a round and the base class of each.

client -> transform* -> absorb -> aggregate -> rescale* -> correct -> server_opt -> refine* -> average*   (* may repeat)

`absorb` and `correct` are hooks of the client rule. The `buffers` part decides what happens to running statistics. A part is a
frozen dataclass in its own file, registered for one slot. The base classes are FedAvg. State is a value: a Tree, a tensor, a
number, or a tuple or dict of those.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from fedrepro import tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.proxy_sampling import balanced_positions
from fedrepro.registry import Registry, require
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Cohort, Network, ServerContext, Solver, Start

SLOTS = ("client", "transform", "aggregate", "rescale", "server_opt", "refine", "average", "buffers")
REPEATABLE = frozenset({"transform", "rescale", "refine", "average"})
PARTS = Registry("method part")
Named = dict[str, Tree]


def register(slot: str, name: str):
    """Class decorator that registers the dataclass as the part `name` of `slot`."""
    if slot not in SLOTS:
        raise ValueError(f"{slot!r} is not a slot; slots: {', '.join(SLOTS)}")
    return PARTS.register(name, slot=slot)


def require_weighting(where: str, weighting: str, *choices: str) -> None:
    """UserError unless `weighting` is one of `choices`. It says how clients count (`Cohort.shares`). Without `choices` they are
    size, by their data, and uniform, each the same."""
    choices = choices or ("size", "uniform")
    require(weighting in choices, f"{where}: weighting", weighting, f"must be {', '.join(choices[:-1])} or {choices[-1]}")


class Part:
    """The base class of all parts. `needs` names what a run must provide ("proxy")."""

    name: ClassVar[str]
    slot: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    reads_buffers: ClassVar[bool] = False  # reads clients' running statistics, which then have to travel

    sends: ClassVar[int] = 0  # vectors [D] that a client sends for it, besides its model
    receives: ClassVar[int] = 0  # vectors [D] that a client receives for it, besides the model

    counts_rounds: ClassVar[frozenset[str]] = frozenset()  # arguments that are a round if they are whole numbers

    def begins(self, rounds: int) -> int | None:
        """The first round (from 0) that it changes, in a run of `rounds` rounds. None if it changes all of them.

        Before that round a run is the same with and without the part. The part may remember earlier rounds, but only what it
        can `inherit`.
        """
        return None

    def remembers(self, rounds: int) -> int:
        """The number of last rounds whose global weights it needs when it begins."""
        return 0

    def numbers(self, network: Network) -> tuple[int, int]:
        """The numbers that a client sends and receives for it, besides vectors [D]."""
        return 0, 0

    def probe(self, batches: Iterable[Batch], ctx: ClientContext) -> Tree:
        """What a client measures at `ctx.anchor` on its held-out samples before it trains. The network is in evaluation mode.

        A part that overrides it finds the cohort's results in `Cohort.probes`, under its own name. There may be no batch at
        all.
        """
        raise NotImplementedError

    @property
    def wants(self) -> dict[str, str]:
        """{slot: part}: the part that another slot takes beside this one if a method leaves that slot open."""
        return {}


class LocalRule(Part):
    """Client slot. Written for one client; every hook is pure, and every default is FedAvg."""

    def loss(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tensor:
        """Scalar objective on one batch: the model's objective, for classifiers mean cross-entropy."""
        return ctx.network.loss(ctx.network(params, batch.x), batch.y)

    def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        """The direction of the local solver's descent, [D]: the gradient of `loss`, in closed form for the plain loss."""
        if type(self).loss is LocalRule.loss and (closed_form := ctx.network.gradient(params, batch)) is not None:
            return closed_form
        return tree.gradient(lambda p: self.loss(p, batch, ctx), params)

    def solver(self, setting: Solver) -> Solver:
        """The local solver of the setting, unless the method replaces it."""
        return setting

    @property
    def batches_per_step(self) -> int:
        """How many batches each step gets. `batch.others` holds the second and later ones.

        They have the size of the first and come from the same client's samples, each in its own order. They are independent of
        the first and of each other, so a sample may be in several. The first batches are those of FedAvg.
        """
        return 1

    @property
    def pull(self) -> float:
        """Strength mu of a term mu/2 ||w - w_t||^2 in the loss. It shortens what later steps add to earlier ones."""
        return 0.0

    def effective_steps(self, setting: Solver, client_lr: float, num_steps: list[int]) -> list[float]:
        """a_k for each T_k: how far T_k steps lead, in units of client_lr, if every gradient of the loss is one.

        Momentum makes later steps longer, and a proximal term holds them back (FedNova, section 4.2; both at once follow the
        same recurrence). Weight decay and the schedule over rounds do not count, as in that paper. Plain SGD: a_k = T_k.
        """
        momentum, path, velocity, path_lengths = self.solver(setting).momentum, 0.0, 0.0, [0.0]
        for _ in range(max(num_steps, default=0)):
            velocity = momentum * velocity + 1 - client_lr * self.pull * path
            path += velocity
            path_lengths.append(path)
        return [path_lengths[steps] for steps in num_steps]

    @property
    def steps_alone(self) -> bool:
        """Whether `step` does more than the solver's step along `direction`. If not, engines take that step in place."""
        return type(self).step is not LocalRule.step

    def begin(self, ctx: ClientContext) -> Named:
        """The state of this round alone. Every step receives it and returns the next."""
        return {}

    def step(self, params: Tree, batch: Batch, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
        """(weights, local state) after one local step along `direction`, as the local solver does it."""
        return ctx.solver.descend(params, self.direction(params, batch, ctx), local, ctx.client_lr)

    def finish(self, params: Tree, local: Named, ctx: ClientContext) -> tuple[Tree | None, Named]:
        """(message to the server, the client's state for its next round) after the last step."""
        return None, ctx.client_state

    def notes(self, params: Tree, local: Named, ctx: ClientContext) -> dict[str, Tensor]:
        """Numbers of this client's round, each []. The record holds their mean, minimum and maximum over the cohort."""
        return {}

    def personalise(self, batches: Iterable[Batch], ctx: ClientContext) -> Tree:
        """The client's own model, from the global one (`ctx.anchor`) and batches of its training samples.

        If a rule overrides it, these models are evaluated on every client's held-out samples.
        """
        return ctx.anchor

    def init_shared(self, params: Tree) -> Tree | None:
        """State that the server keeps for this rule."""
        return None

    def draw_shared(self, params: Tree, start: Start) -> Tree | None:
        """The same for rules whose state depends on the model or on the seed's random numbers: they override this one."""
        return self.init_shared(params)

    def init_client_state(self, params: Tree) -> Named:
        """State that each client keeps between its rounds, by name. `finish` returns the same names."""
        return {}

    def absorb(self, shared: Any, cohort: Cohort) -> Any:
        """The shared state after the cohort's messages."""
        return shared

    def correct(self, update: Tree, shared: Any) -> Tree:
        """The aggregated update after this rule's correction."""
        return update


class ServerPart(Part):
    """The base class of the server's slots: takes x, and returns the new x and the part's state for the next round.

    The slot defines what x is. Parts that need more find it in `ctx`, for example the cohort in `ctx.cohort`. If a part's work
    does not fit what a later slot remembers, it adds that slot to `ctx.starting_over` for this round.
    """

    def init(self, params: Tree) -> Any:
        """State before the first round."""
        return None

    def __call__(self, x: Any, state: Any, ctx: ServerContext) -> tuple[Any, Any]:
        raise NotImplementedError


class Transform(ServerPart):
    """Cohort -> cohort: changes the clients' updates. Later parts see w + the new updates as the clients' models."""


class Aggregate(ServerPart):
    """Cohort -> update: one update [D] from those of the cohort [K, D]."""


class Rescale(ServerPart):
    """Update -> update [D]: scales the aggregated update, element by element."""


class ServerOpt(ServerPart):
    """Update -> step [D], which is added to the global weights."""


class Refine(ServerPart):
    """Weights -> weights [D]: changes the new global weights, with or without proxy data."""


class Average(ServerPart):
    """Weights -> weights [D]: an average over rounds. Its result is evaluated and sent to the clients."""

    def inherit(self, history: Sequence[Tree]) -> Any:
        """The part's state before a round up to `begins`, for a run that did without the part so far.

        `history`: the weights [D] that the part would have received, oldest first. They are the global weights after each of
        the last `remembers` rounds in which clients trained, or of all such rounds if there were fewer, as long as no later
        average has begun.
        """
        raise NotImplementedError


class Buffers(Part):
    """Decides what happens to running statistics (of BatchNorm), before and after the server's work."""

    def start(self, before: Tree, cohort: Cohort) -> Tree:
        """The statistics [D'] that the server's network starts from. `before` are those that the clients received."""
        raise NotImplementedError

    def finish(self, params: Tree, buffers: Tree, ctx: ServerContext) -> Tree:
        """The statistics of the new global model. `buffers` are those of the server's network after its work."""
        return buffers


def proxy_batches(ctx: ServerContext, purpose: str, epochs: int) -> Iterator[tuple[int, Tensor]]:
    """Mini-batches of the proxy set as (epoch, positions [B]), shuffled or class-balanced (`ServerContext.proxy_sampling`).
    (seed, round, purpose) fix the order."""
    assert ctx.proxy is not None
    generator, y = ctx.rng(purpose), ctx.proxy.y
    draw = partial(generator.permutation, len(ctx.proxy))
    if ctx.proxy_sampling == "balanced":
        # The label of a window of text is its last character.
        draw = partial(balanced_positions, (y if y.dim() == 1 else y[:, -1]).cpu().numpy(), generator)
    for epoch in range(epochs):
        order = torch.from_numpy(draw()).to(y.device)
        yield from ((epoch, index_B) for index_B in order.split(ctx.proxy_batch_size) if len(index_B) >= ctx.smallest_batch)


def count_samples(batch: Batch, params: Tree) -> Tensor:
    """How many samples of the batch are real: [] or, for weights [K, D] of several clients, [K]. It has the weights' type."""
    if params.flat.dim() == 1:
        return params.flat.new_tensor(len(batch))
    is_real = batch.y != -100  # in padding every target is -100
    return (is_real.flatten(2).any(-1) if is_real.dim() > 2 else is_real).sum(-1).to(params.flat.dtype)
