"""The values that the parts of a method receive. Axis legend, used as suffixes of tensor names:

K clients of the cohort · N all clients · D parameters · B samples of a batch · T local steps · C classes · S seeds
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from fedrepro import tree
from fedrepro.lazy import Tensor, torch
from fedrepro.tree import Layout, Tree


@dataclass(frozen=True)
class Batch:
    """Images x [..., B, C, H, W] (float, normalised), or windows of characters [..., B, T] (int64), and targets y.

    For classifiers y are labels [..., B]; for text the character that follows each, [..., B, T] (int64; -100 is padding, which
    never counts). For detectors y are boxes [B, M, 5]: class, centre x, centre y, width and height, float, as shares of the
    image (a class of -1 is padding).
    """

    x: Tensor
    y: Tensor
    others: tuple["Batch", ...] = ()  # more batches of the same step and size, see `LocalRule.batches_per_step`

    def __len__(self) -> int:
        """B, for a batch without leading axes."""
        return len(self.x)

    def take(self, index_B: Tensor) -> "Batch":
        """The samples at the given positions."""
        return Batch(self.x.index_select(0, index_B), self.y.index_select(0, index_B))


@dataclass(frozen=True)
class LastLayer:
    """The input and output of `Network.head`. Its parameters may lie anywhere among the model's."""

    parameters: Layout  # of the layer alone, in the model's order
    features: tuple[int, ...]  # shape of one sample's features: (F,), or (T, F) for text
    classes: int  # C


class Network(Protocol):
    """A model in training mode for one client: (params, x) -> outputs, for classifiers logits [..., B, C].

    It keeps running statistics in `buffers`.
    """

    buffers: Tree

    def __call__(self, params: Tree, x: Tensor) -> Tensor: ...

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The model's objective on a batch: mean cross-entropy, unless the model has its own."""
        ...

    def begin_step(self, step: int) -> None:
        """Marks what follows as local step `step`. Dropout masks are drawn anew for each step."""

    def features(self, params: Tree, x: Tensor) -> Tensor:
        """The input of the last layer, [..., B, F]. UserError for a model without such a layer."""
        ...

    def head(self, params: Tree, features: Tensor) -> Tensor:
        """Applies the last layer alone: `features` -> what a call returns."""
        ...

    def gradient(self, params: Tree, batch: Batch) -> Tree | None:
        """The gradient of `loss`, [D], by the model's closed form. None if there is none; then autograd computes it."""
        ...

    def squared_gradient(self, params: Tree, x: Tensor) -> Tree | None:
        """The same of the outputs' squared norm, mean over the batch. Running statistics do not move."""
        ...

    @property
    def last_layer(self) -> LastLayer:
        """The shapes of the last layer. UserError for a model without one."""
        ...


VELOCITY = "solver.velocity"  # of the local solver, in a client's local state; a rule cannot use this name


@dataclass(frozen=True)
class Solver:
    """The local solver, SGD: v <- momentum * v + (g + weight_decay * w), w <- w - client_lr * v."""

    momentum: float
    weight_decay: float

    def descend(self, params: Tree, g: Tree, local: dict[str, Tree], client_lr: float | Tensor) -> tuple[Tree, dict[str, Tree]]:
        """(weights, local state) after a step along g [D]. With momentum, v is in the local state."""
        v = tree.map(lambda g, w: g + self.weight_decay * w, g, params)
        if self.momentum:
            v = tree.map(lambda before, v: self.momentum * before + v, local[VELOCITY], v)
            local = local | {VELOCITY: v}
        return tree.axpy(-client_lr, v, params), local


@dataclass(frozen=True)
class ClientContext:
    """What a client rule may read during its round. All of it is read-only.

    Rules are written for one client. An engine may pass several at once: trees and batches then have a leading client axis, and
    `client_lr`, `num_steps` and `cohort_size` have one number per client, in the weights' type. `tree.scale` and `tree.axpy`
    combine these numbers with trees.
    """

    network: Network
    anchor: Tree  # the global weights received this round, [D]
    client_lr: float | Tensor  # this round's learning rate, after the schedule
    num_steps: int | Tensor  # T, how many steps this client takes this round
    cohort_size: int | Tensor = 1  # K, clients whose models the server takes this round
    round: int = 0  # from 0; the same for all clients that are passed at once
    rounds: int = 1  # R, of the whole run
    local_epochs: int = 1  # E in this round; `num_steps` is a multiple of it
    solver: Solver = Solver(0.0, 0.0)  # the local solver, see `LocalRule.solver`
    shared: Tree | None = None  # the server's state for this rule, if it has any, [D]
    # This client's state from its last round, or `LocalRule.init_client_state`.
    client_state: dict[str, Tree] = field(default_factory=dict)


@dataclass(frozen=True)
class Start:
    """What a client rule may read before round 0, besides the initial weights."""

    network: Network
    rng: Callable[[str], np.random.Generator]  # a stream for a purpose, fixed by the seed


@dataclass(frozen=True)
class Cohort:
    """The results of the clients of one round. Clients without training data are not in it."""

    clients: list[int]  # ids, ascending, length K
    updates: Tree  # w_k - w, [K, D]
    weights: Tensor  # data-size weights p_k, they sum to 1, [K]
    num_steps: Tensor  # T_k, [K]
    effective_steps: Tensor  # a_k, what T_k steps are worth under momentum and a proximal term (FedNova's ||a_k||_1), [K]
    fraction: float  # K / N, where N counts the clients that have training data
    population: int  # all clients of the setting, including those without training data
    anchor: Tree  # w, the global weights that the clients started from, [D]
    buffers: Tree  # running statistics after local training, [K, D']
    messages: Tree | None = None  # what the client rule sends besides its update, [K, D]
    probes: dict[str, Tree] = field(default_factory=dict)  # part -> what it measured on held-out samples, see `Part.probe`
    notes: dict[str, Tensor] = field(default_factory=dict)  # numbers of each client, see `LocalRule.notes`, each [K]

    @property
    def models(self) -> Tree:
        """The clients' weights w_k, [K, D]."""
        return self.updates.like(self.updates.flat + self.anchor.flat)

    def shares(self, weighting: str) -> Tensor:
        """Weights [K]: "size" for the data-size weights p_k, "uniform" for 1/K each; both sum to 1.

        "all": 1/N each, where N is the whole population. So absent clients count with the global model, and the weights sum to
        K/N.
        """
        if weighting == "size":
            return self.weights
        return torch.full_like(self.weights, 1 / (self.population if weighting == "all" else len(self.clients)))


@dataclass(frozen=True)
class GradientRequest:
    """A gradient that the server's work asks for: of `loss` (logits [B, C] -> number) at `params` [D], on images x."""

    network: Network
    params: Tree
    x: Tensor
    loss: Callable[[Tensor], Tensor]

    def compute(self) -> Tree:
        """The gradient [D]. It moves the network's running statistics."""
        return tree.gradient(lambda p: self.loss(self.network(p, self.x)), self.params)


@dataclass(frozen=True)
class ServerContext:
    """What a server part may read, and where it writes notes and requests."""

    cohort: Cohort  # `Method.apply` replaces it by the transformed cohort
    network: Network  # in training mode; its running statistics become those of the global model
    predict: Callable[[Tree, Tree, Tensor], Tensor]  # (params, buffers, x) -> logits in evaluation mode, no gradients; with a
    # leading axis of models on params and buffers, all of them on the same x
    proxy: Batch | None  # the server's whole proxy set
    rng: Callable[[str], np.random.Generator]  # a stream for a purpose, fixed by (seed, round)
    round: int
    rounds: int
    proxy_batch_size: int
    proxy_sampling: str = "shuffled"  # or balanced, see `methods.parts.proxy_batches`
    smallest_batch: int = 1  # smaller batches are left out
    notes: dict[str, float] = field(default_factory=dict)  # scalars to be recorded under this round
    diagnostics: dict[str, Tensor] = field(default_factory=dict)  # tensors that diagnostics read, kept with the round's models
    starting_over: set[str] = field(default_factory=set)  # slots: a part may add a later slot than its own, see `Method.apply`
    # Answers `gradient`. An engine may answer the requests of several seeds at once.
    answer_request: Callable[[GradientRequest], Tree] = GradientRequest.compute

    def gradient(self, params: Tree, index_B: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> Tree:
        """The gradient [D] at `params` of loss(logits [B, C], positions [B]) on those images of the proxy set."""
        assert self.proxy is not None
        return self.answer_request(
            GradientRequest(self.network, params, self.proxy.x[index_B], lambda logits: loss(logits, index_B))
        )
