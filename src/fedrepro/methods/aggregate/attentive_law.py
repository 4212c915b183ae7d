"""Attentive LAW. FedLAW, ICML 2023, section 5: FedLAW with gamma held at 1.

w <- sum_i lambda_i w_i, where lambda is learned on the proxy set in each round, starting from the clients' data sizes.

The weights of every client are added up over the rounds (appendix, Table 11). For diagnostics it leaves `lambda` [K] of the
round, `lambda_sum` [N] by client id, and `lambda_rounds` [N], the number of rounds in which each client took part.
Limiting case: server_epochs = 0 is FedAvg (with BatchNorm, of its weights alone: see `server_buffers`).
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.parts import Aggregate, register
from fedrepro.methods.proxy_weights import ProxyLearning
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext

Sums = dict[str, Tensor]  # lambda_sum and lambda_rounds, each [N]; empty before the first round


@register("aggregate", "attentive_law")
@dataclass(frozen=True)
class AttentiveLaw(ProxyLearning, Aggregate):
    """Learns only the relative weights of clients. The paper does not state the server settings; they are those of FedLAW."""

    needs = frozenset({"proxy"})

    def init(self, params: Tree) -> Any:
        return {}

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        _, lambda_K = self.learn(x.models, x.weights, ctx, gamma=False, weights_too=True)
        return weighted_update(x, lambda_K, state or {}, ctx)


def weighted_update(x: Cohort, lambda_K: Tensor, sums: Sums, ctx: ServerContext) -> tuple[Tree, Sums]:
    """The mean of the updates with these weights [K], and the sums after the round. Writes `lambda_max` to the notes, and the
    weights and sums to `ctx.diagnostics`."""
    client_ids, new_sums = torch.tensor(x.clients, device=lambda_K.device), {}
    for name, values_K in (("lambda_sum", lambda_K), ("lambda_rounds", torch.ones_like(lambda_K))):
        old_sum_N = sums[name] if sums else lambda_K.new_zeros(x.population)
        new_sums[name] = old_sum_N.index_add(0, client_ids, values_K)
    ctx.notes["lambda_max"] = float(lambda_K.max())
    ctx.diagnostics.update({"lambda": lambda_K, **new_sums})
    return tree.weighted_sum(lambda_K, x.updates), new_sums
