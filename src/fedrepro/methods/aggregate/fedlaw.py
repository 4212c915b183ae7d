"""FedLAW. Li, Lin, Shang, Wu, "Revisiting Weighted Aggregation in Federated Learning with Neural Networks", ICML 2023,
https://arxiv.org/abs/2302.10911, Algorithm 1 and equation 8.

w <- gamma * sum_i lambda_i w_i, where gamma and lambda are learned together on the server's proxy set, afresh each round, from
gamma = 1 and lambda = the clients' data sizes. Limiting case: server_epochs = 0 is FedAvg (with BatchNorm, of its weights
alone: see `server_buffers`). With a server_lr other than 1 this whole update is scaled; only `fixed_gamma` and `adaptive_gws`
follow equation 4, where gamma shrinks after the step.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro.methods.parts import Aggregate, register
from fedrepro.methods.proxy_weights import ProxyLearning, blended_update
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "fedlaw")
@dataclass(frozen=True)
class FedLaw(ProxyLearning, Aggregate):
    """Joint learning of the shrinking factor gamma and the weights lambda ("exp" base function)."""

    needs = frozenset({"proxy"})

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        gamma, lambda_K = self.learn(x.models, x.weights, ctx, gamma=True, weights_too=True)
        ctx.notes.update({"gamma": gamma, "lambda_max": float(lambda_K.max())})
        ctx.diagnostics.update({"gamma": lambda_K.new_tensor(gamma), "lambda": lambda_K})
        return blended_update(x, gamma, lambda_K), state
