"""FedNova. Wang et al., NeurIPS 2020, https://arxiv.org/abs/2007.07481, equations 8 to 10.

Each update is divided by how many steps it is worth, d_k = (w_k - w) / a_k, and the mean is taken as long as the clients'
paths are on average: w <- w + (sum_k p_k a_k) sum_k p_k d_k. a_k = ||a||_1 counts local steps with what momentum and a
proximal term make of them (`LocalRule.effective_steps`). Limiting case: equal a_k is FedAvg.
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
    """`weighting`: size or uniform, what p_k is."""

    weighting: str = "size"

    def __post_init__(self) -> None:
        require_weighting("fednova", self.weighting)

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        p_K, a_K = x.shares(self.weighting), x.effective_steps
        return tree.weighted_sum((p_K @ a_K) * p_K / a_K, x.updates), state
