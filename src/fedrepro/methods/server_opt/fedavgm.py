"""FedAvgM, momentum on the server. Hsu, Qi, Brown 2019, https://arxiv.org/abs/1909.06335, section 4.3.

v <- beta * v + update, w <- w + server_lr * v, from v = 0; with `nesterov` w <- w + server_lr * (update + beta * v), as in the
original. IGFL uses the plain form, and so does our default. Limiting case: beta = 0 is FedAvg with that server_lr.
"""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.methods.parts import ServerOpt, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("server_opt", "fedavgm")
@dataclass(frozen=True)
class FedAvgM(ServerOpt):
    """`beta` in [0, 1), the share of the last velocity that is kept; `server_lr` > 0."""

    beta: float = 0.9
    server_lr: float = 1.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        require(0 <= self.beta < 1, "fedavgm: beta", self.beta, "must be at least 0 and below 1")
        require(self.server_lr > 0, "fedavgm: server_lr", self.server_lr, "must be greater than 0")

    def init(self, params: Tree) -> Tree:
        return tree.zeros_like(params)

    def __call__(self, x: Tree, state: Tree, ctx: ServerContext) -> tuple[Tree, Tree]:
        velocity = tree.axpy(self.beta, state, x)
        step = tree.axpy(self.beta, velocity, x) if self.nesterov else velocity
        return tree.scale(step, self.server_lr), velocity
