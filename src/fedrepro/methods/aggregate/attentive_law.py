"""Attentive LAW. FedLAW, ICML 2023, section 5: FedLAW with gamma held at 1.

w <- sum_i lambda_i w_i, lambda learned on the proxy set, afresh each round, from the clients' data sizes.
Limiting case: server_epochs = 0 is FedAvg.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.methods.parts import Aggregate, register
from fedrepro.methods.proxy_weights import ProxyLearning
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "attentive_law")
@dataclass(frozen=True)
class AttentiveLaw(ProxyLearning, Aggregate):
    """Learns the relative weights of clients only; server settings unstated in the paper, taken from FedLAW."""

    needs = frozenset({"proxy"})

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        _, lambda_K = self.learn(x.models, x.weights, ctx, gamma=False, weights_too=True)
        ctx.notes["lambda_max"] = float(lambda_K.max())
        return tree.weighted_sum(lambda_K, x.updates), state
