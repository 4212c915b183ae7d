"""Adaptive global weight shrinking (GWS). FedLAW, ICML 2023, section 4: FedLAW with lambda held at the data sizes.

w <- gamma * w after the server step. gamma is learned on the proxy set in each round, starting from 1. It shrinks whatever the
server step produced, so it also covers a server learning rate (Table 10) and works with any aggregation rule.
Each round notes gamma, the norms of the two gradients of equation 4, and their ratio r (`fedrepro.methods.shrinking`).
Limiting case: server_epochs = 0 is FedAvg (with BatchNorm, of its weights alone: see `server_buffers`).
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.methods.parts import Refine, register
from fedrepro.methods.proxy_weights import ProxyLearning
from fedrepro.methods.shrinking import shrink
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("refine", "adaptive_gws")
@dataclass(frozen=True)
class AdaptiveGws(ProxyLearning, Refine):
    """Learns only the shrinking factor. The paper does not state the server settings; they are those of FedLAW."""

    needs = frozenset({"proxy"})

    def __call__(self, x: Tree, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        single_model = tree.stack([x])
        gamma, _ = self.learn(single_model, x.flat.new_ones(1), ctx, gamma=True, weights_too=False)
        return shrink(x, gamma, ctx), state
