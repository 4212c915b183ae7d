"""FedLAW. Li, Lin, Shang, Wu, "Revisiting Weighted Aggregation in Federated Learning with Neural Networks", ICML 2023,
https://arxiv.org/abs/2302.10911, Algorithm 1 and equation 8.

w <- gamma * sum_i lambda_i w_i, where gamma and lambda are learned together on the server's proxy set, afresh each round, from
gamma = 1 and lambda = the clients' data sizes. Limiting case: server_epochs = 0 is FedAvg.
"""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.methods.parts import Aggregate, register
from fedrepro.methods.proxy_weights import ProxyLearning
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "fedlaw")
@dataclass(frozen=True)
class FedLaw(ProxyLearning, Aggregate):
    """Joint learning of the shrinking factor gamma and the weights lambda ("exp" base function)."""

    needs = frozenset({"proxy"})

    def __call__(self, cohort: Cohort, ctx: ServerContext) -> Tree:
        models = tree.map(lambda u, w: u + w, cohort.updates, cohort.anchor)
        gamma, lambda_K = self.learn(models, cohort.weights, ctx, gamma=True, weights_too=True)
        ctx.notes.update({"gamma": gamma, "lambda_max": float(lambda_K.max())})
        # gamma * sum lambda_i (w + u_i) - w, arranged so that gamma = 1 leaves no trace of w: exactly the weighted mean.
        mean = tree.weighted_sum(lambda_K, cohort.updates)
        return tree.map(lambda u, w: gamma * u + (gamma - 1) * w, mean, cohort.anchor)
