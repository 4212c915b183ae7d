"""FedDF, ensemble distillation. Lin, Kong, Stich, Jaggi, NeurIPS 2020, https://arxiv.org/abs/2006.07242, Algorithm 1.

The student starts at the aggregated model and learns softmax(mean_k logits_k(x)) on the proxy set, by KL divergence, without
labels. The teachers are the clients' models, in evaluation mode, all with the same weight. Not reproduced: its authors'
annealing, early stopping and clipping, which FedLAW's comparison does not use. Limiting case: server_epochs = 0 is FedAvg.
"""

from dataclasses import dataclass

from fedrepro.methods.parts import Refine, register
from fedrepro.methods.student import StudentTraining, client_logits
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("refine", "feddf")
@dataclass(frozen=True)
class FedDf(StudentTraining, Refine):
    """All arguments are those of the server's optimiser."""

    needs = frozenset({"proxy"})
    reads_buffers = True  # those of its teachers

    def __call__(self, x: Tree, state: Tree | None, ctx: ServerContext) -> tuple[Tree, Tree | None]:
        return self.distil(x, state, ctx, client_logits(ctx).mean(0).softmax(-1))
