"""Adaptive global weight shrinking (GWS). FedLAW, ICML 2023, section 4: FedLAW with lambda held at the data sizes.

w <- gamma * w after the server step, gamma learned on the proxy set, afresh each round, from 1. As it shrinks whatever the
server step produced, it also covers a server learning rate (Table 10) and joins any aggregation rule.
Each round notes gamma, the norms of the two gradients of equation 4, and their ratio r (`fedrepro.methods.shrinking`).
Limiting case: server_epochs = 0 is FedAvg.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.methods.parts import Refine, register
from fedrepro.methods.proxy_weights import ProxyLearning
from fedrepro.methods.shrinking import shrunk
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("refine", "adaptive_gws")
@dataclass(frozen=True)
class AdaptiveGws(ProxyLearning, Refine):
    """Learns the shrinking factor only; server settings unstated in the paper, taken from FedLAW."""

    needs = frozenset({"proxy"})

    def __call__(self, x: Tree, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        alone = tree.stack([x])
        gamma, _ = self.learn(alone, x.flat.new_ones(1), ctx, gamma=True, weights_too=False)
        return shrunk(x, gamma, ctx), state
