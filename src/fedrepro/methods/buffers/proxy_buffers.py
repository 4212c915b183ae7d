"""Running statistics measured anew on the server's proxy set, after everything else. This is our ablation of FedLAW (ICML 2023,
https://arxiv.org/abs/2302.10911, Algorithm 1), whose training on the proxy set has the same side effect.

`fedavg+proxy_buffers` separates what FedLAW gains by its weights from what it gains by its statistics. Limiting case: on a
model without BatchNorm it changes nothing.
"""

from dataclasses import dataclass

from fedrepro.lazy import torch
from fedrepro.methods.parts import Buffers, proxy_batches, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("buffers", "proxy_buffers")
@dataclass(frozen=True)
class ProxyBuffers(Buffers):
    """`passes` >= 1 over the proxy set. Each batch moves the statistics by a tenth; FedLAW makes 100 passes."""

    needs = frozenset({"proxy"})

    passes: int = 100

    def __post_init__(self) -> None:
        require(self.passes >= 1, "proxy_buffers: passes", self.passes, "must be at least 1")

    def start(self, before: Tree, cohort: Cohort) -> Tree:
        return before

    def finish(self, params: Tree, buffers: Tree, ctx: ServerContext) -> Tree:
        if not buffers.layout.names or ctx.proxy is None:
            return buffers
        with torch.no_grad():
            for _, index_B in proxy_batches(ctx, "proxy-buffers", self.passes):
                ctx.network(params, ctx.proxy.take(index_B).x)
        return ctx.network.buffers
