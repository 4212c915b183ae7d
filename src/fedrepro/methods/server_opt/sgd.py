"""The server step of FedAvg, w + server_lr * update. Reddi et al., ICLR 2021, https://arxiv.org/abs/2003.00295, Algorithm 1."""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.methods.parts import ServerOpt, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("server_opt", "server_sgd")
@dataclass(frozen=True)
class ServerSgd(ServerOpt):
    """`server_lr` > 0 multiplies the aggregated update. Limiting case: 1 replaces the weights by the mean (FedAvg)."""

    server_lr: float = 1.0

    def __post_init__(self) -> None:
        require(self.server_lr > 0, "server_sgd: server_lr", self.server_lr, "must be greater than 0")

    def __call__(self, x: Tree, state: None, ctx: ServerContext) -> tuple[Tree, None]:
        return tree.scale(x, self.server_lr), state
