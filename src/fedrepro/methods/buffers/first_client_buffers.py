"""Running statistics of one client for all: the lowest id of the cohort (FedDyn in FedLAW's authors' code, ICML 2023,
https://arxiv.org/abs/2302.10911). Limiting case: with one client, or without BatchNorm, it is the mean."""

from dataclasses import dataclass

from fedrepro.methods.parts import Buffers, register
from fedrepro.tree import Tree
from fedrepro.types import Cohort


@register("buffers", "first_client_buffers")
@dataclass(frozen=True)
class FirstClientBuffers(Buffers):
    """No arguments."""

    reads_buffers = True

    def start(self, before: Tree, cohort: Cohort) -> Tree:
        return cohort.buffers.like(cohort.buffers.flat[0])
