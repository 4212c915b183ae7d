"""Running statistics averaged like the weights, as FedAvg does with a whole state dictionary (FedLAW's authors' code, ICML
2023, https://arxiv.org/abs/2302.10911). Limiting case: with one client, its statistics stay as they are."""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.methods.parts import Buffers, register, require_weighting
from fedrepro.tree import Tree
from fedrepro.types import Cohort


@register("buffers", "mean_buffers")
@dataclass(frozen=True)
class MeanBuffers(Buffers):
    """`weighting`: size or uniform, as for the weights. Forward passes in the server's training move the mean further."""

    reads_buffers = True

    weighting: str = "size"

    def __post_init__(self) -> None:
        require_weighting("mean_buffers", self.weighting)

    def start(self, before: Tree, cohort: Cohort) -> Tree:
        return tree.weighted_sum(cohort.shares(self.weighting), cohort.buffers)
