"""Server-FT: the aggregated model is fine-tuned on the labels of the proxy set. A baseline of FedLAW, ICML 2023,
https://arxiv.org/abs/2302.10911, section 6.2 and appendix D.6. Limiting case: server_epochs = 0 is FedAvg.
"""

from dataclasses import dataclass

from fedrepro.methods.parts import Refine, register
from fedrepro.methods.student import StudentTraining
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("refine", "server_ft")
@dataclass(frozen=True)
class ServerFt(StudentTraining, Refine):
    """Cross-entropy, two epochs a round (the paper's number)."""

    needs = frozenset({"proxy"})

    server_epochs: int = 2

    def __call__(self, x: Tree, state: Tree | None, ctx: ServerContext) -> tuple[Tree, Tree | None]:
        assert ctx.proxy is not None
        labels = ctx.proxy.y
        return self.train(x, state, ctx, lambda logits, index_B: ctx.network.loss(logits, labels[index_B]))
