"""The weighted mean of FedAvg. McMahan et al., AISTATS 2017, https://arxiv.org/abs/1602.05629, Algorithm 1.

update <- sum_k p_k (w_k - w), where p_k is client k's share of the cohort's samples, or 1/K for each: the mean of FedDyn, IGFL
and gradient harmonisation. Limiting case: clients of equal size make both the same.

Or 1/N for each, where N counts all clients: the mean of every client's model, where absent clients keep w, so the update is K/N
times as long. This is our reading of gradient harmonisation, tried after its numbers were known; its Algorithm 1 has 1/K over
the cohort. Limiting case: with full participation, and data for every client, 1/N is 1/K.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.methods.parts import Aggregate, register, require_weighting
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "mean")
@dataclass(frozen=True)
class Mean(Aggregate):
    """`weighting`: size, uniform (1/K, the cohort) or all (1/N, all clients)."""

    weighting: str = "size"

    def __post_init__(self) -> None:
        require_weighting("mean", self.weighting, "size", "uniform", "all")

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        return tree.weighted_sum(x.shares(self.weighting), x.updates), state
