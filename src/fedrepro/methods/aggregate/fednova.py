"""FedNova. Wang et al., NeurIPS 2020, https://arxiv.org/abs/2007.07481, equations 8 to 10.

Each update is divided by the number of steps that it is worth, d_k = (w_k - w) / a_k, and the mean is made as long as the
clients' paths are on average: w <- w + (sum_k p_k a_k) sum_k p_k d_k. a_k = ||a||_1 counts local steps, with the effect of
momentum from zero and of a proximal term (`LocalRule.effective_steps`); `keep_client_momentum` is not counted. Limiting case:
equal a_k is FedAvg.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.methods.parts import Aggregate, register, require_weighting
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "fednova")
@dataclass(frozen=True)
class FedNova(Aggregate):
    """`weighting`: size or uniform, the choice of p_k."""

    weighting: str = "size"

    def __post_init__(self) -> None:
        require_weighting("fednova", self.weighting)

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        p_K, a_K = x.shares(self.weighting), x.effective_steps
        return tree.weighted_sum((p_K @ a_K) * p_K / a_K, x.updates), state
