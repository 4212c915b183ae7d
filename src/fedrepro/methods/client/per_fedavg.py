"""Per-FedAvg. Fallah, Mokhtari, Ozdaglar, NeurIPS 2020, https://arxiv.org/abs/2002.07948, Algorithm 1 and section 5.

The global model is to be one step away from a good model for each client. A local step takes independent batches b1, b2 and b3:

    w' = w - inner_lr grad f(w; b2),    G = grad f(w'; b1),    w <- w - client_lr G,

in the first-order form (FO). The Hessian-free form (HF) descends along
G - inner_lr (grad f(w + delta G; b3) - grad f(w - delta G; b3)) / (2 delta). Each client's own model is the global one after
`adapt` steps on batches of its training samples, at most one epoch of them. Only the pass on b1 moves running statistics (our
choice). The paper takes the plain mean of the clients, and its reference code the mean by size; here the aggregate decides.
Limiting case: inner_lr = 0 is FedAvg with the batches b1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from fedrepro import tree
from fedrepro.lazy import torch
from fedrepro.methods.parts import LocalRule, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext

VARIANTS = ("first_order", "hessian_free")


@register("client", "per_fedavg")
@dataclass(frozen=True)
class PerFedAvg(LocalRule):
    """`inner_lr` >= 0, 0.03 in the reference code for MNIST; `variant`; `delta` > 0 of the Hessian-free form; `adapt` >= 1."""

    inner_lr: float = 0.03
    variant: str = "first_order"
    delta: float = 0.001
    adapt: int = 1

    def __post_init__(self) -> None:
        require(self.inner_lr >= 0, "per_fedavg: inner_lr", self.inner_lr, "must be at least 0 (0 is FedAvg)")
        require(self.variant in VARIANTS, "per_fedavg: variant", self.variant, f"must be {' or '.join(VARIANTS)}")
        require(self.delta > 0, "per_fedavg: delta", self.delta, "must be greater than 0")
        require(self.adapt >= 1, "per_fedavg: adapt", self.adapt, "must be at least 1 step")

    @property
    def batches_per_step(self) -> int:
        return 2 if self.variant == "first_order" else 3

    def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        inner_batch, *extra_batches = batch.others
        g = super().direction(self._adapted(params, inner_batch, ctx), batch, ctx)
        if not extra_batches:
            return g
        g_ahead, g_behind = (self._aside(tree.axpy(sign * self.delta, g, params), extra_batches[0], ctx) for sign in (1, -1))
        return tree.axpy(-self.inner_lr / (2 * self.delta), tree.sub(g_ahead, g_behind), g)

    def personalise(self, batches: Iterable[Batch], ctx: ClientContext) -> Tree:
        params = ctx.anchor
        for batch in islice(batches, self.adapt):
            params = self._adapted(params, batch, ctx)
        return params

    def _adapted(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        return tree.axpy(-self.inner_lr, self._aside(params, batch, ctx), params)

    def _aside(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        """The gradient on a batch. It does not change running statistics."""
        buffers = ctx.network.buffers
        g = super().direction(params, batch, ctx)
        ctx.network.buffers = buffers
        return tree.map(torch.clone, g)
