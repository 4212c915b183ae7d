"""One half of FedLAW. A control of ours for FedLAW, ICML 2023, https://arxiv.org/abs/2302.10911, Algorithm 1: no paper has it.

In each round gamma and lambda are learned together, as in FedLAW, and one of them is applied without the other:

    use = gamma:     w <- gamma * sum_i p_i w_i        (p: the data sizes)
    use = lambda:    w <- sum_i lambda_i w_i

So it shows whether FedLAW's gain comes from the shrinking or from the weights. Adaptive GWS and attentive LAW learn one of them
while the other is held, which is another question. The learning passes use another model than the one applied, so running
statistics are measured anew on the proxy set, with the new global model (`proxy_buffers`).
Limiting case: server_epochs = 0 is FedAvg.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.methods.parts import Aggregate, register
from fedrepro.methods.proxy_weights import ProxyLearning, blended_update
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "fedlaw_only")
@dataclass(frozen=True)
class FedLawOnly(ProxyLearning, Aggregate):
    """`use`: gamma or lambda, the one that is applied."""

    needs = frozenset({"proxy"})

    use: str = "gamma"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.use in ("gamma", "lambda"), "fedlaw_only: use", self.use, "must be gamma or lambda")

    @property
    def wants(self) -> dict[str, str]:
        return {"buffers": "proxy_buffers"}

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        gamma, lambda_K = self.learn(x.models, x.weights, ctx, gamma=True, weights_too=True)
        ctx.notes.update({"gamma": gamma, "lambda_max": float(lambda_K.max())})
        ctx.diagnostics.update({"gamma": lambda_K.new_tensor(gamma), "lambda": lambda_K})
        if self.use == "gamma":
            return blended_update(x, gamma, x.weights), state
        return tree.weighted_sum(lambda_K, x.updates), state
