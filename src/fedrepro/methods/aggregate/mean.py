"""The weighted mean of FedAvg. McMahan et al., AISTATS 2017, https://arxiv.org/abs/1602.05629, Algorithm 1."""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.methods.parts import Aggregate, register
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "mean")
@dataclass(frozen=True)
class Mean(Aggregate):
    """sum_k p_k (w_k - w), where p_k is client k's share of the cohort's samples."""

    def __call__(self, cohort: Cohort, ctx: ServerContext) -> Tree:
        return tree.weighted_sum(cohort.weights, cohort.updates)
