"""Running statistics that never travel (FedLAW's authors' code, ICML 2023, https://arxiv.org/abs/2302.10911, Algorithm 1).

The server's network keeps its own statistics. Only its training passes on the proxy set move them, and the global model is
evaluated with them. A hundred passes leave 3e-5 of the values before. Clients start from the server's statistics, which does
not matter: in training a BatchNorm uses its batch alone. Limiting case: on a model without BatchNorm it changes nothing.
"""

from dataclasses import dataclass

from fedrepro.methods.parts import Buffers, register
from fedrepro.tree import Tree
from fedrepro.types import Cohort


@register("buffers", "server_buffers")
@dataclass(frozen=True)
class ServerBuffers(Buffers):
    """No arguments. Without server training the statistics stay those of the initial model and fit nothing."""

    def start(self, before: Tree, cohort: Cohort) -> Tree:
        return before
