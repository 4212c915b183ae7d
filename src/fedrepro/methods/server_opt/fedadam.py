"""FedAdam. Reddi et al., ICLR 2021, https://arxiv.org/abs/2003.00295, Algorithm 2.

m <- beta1 m + (1 - beta1) update, v <- beta2 v + (1 - beta2) update^2, w <- w + server_lr * m / (sqrt(v) + tau), without bias
correction. m starts at 0 and v at `first_v`: 0 in most codes, tau^2 in the paper. Limiting case: beta1 = 0 and tau far above
every |update| is FedAvg with a server_lr of server_lr / tau.
"""

from dataclasses import dataclass

import torch

from fedrepro import elementwise, tree
from fedrepro.methods.parts import ServerOpt, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("server_opt", "fedadam")
@dataclass(frozen=True)
class FedAdam(ServerOpt):
    """`server_lr` > 0, `beta1` and `beta2` in [0, 1), `tau` > 0, `first_v` zero or tau_squared.

    FedIMA takes a server_lr of 0.01; the code of FedLAW's authors, whose paper has no FedAdam, takes 1.0 with tau = 1e-5.
    """

    server_lr: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    first_v: str = "zero"

    def __post_init__(self) -> None:
        for key in ("server_lr", "tau"):
            require(getattr(self, key) > 0, f"fedadam: {key}", getattr(self, key), "must be greater than 0")
        for key in ("beta1", "beta2"):
            require(0 <= getattr(self, key) < 1, f"fedadam: {key}", getattr(self, key), "must be at least 0 and below 1")
        require(self.first_v in ("zero", "tau_squared"), "fedadam: first_v", self.first_v, "must be zero or tau_squared")

    def init(self, params: Tree) -> tuple[Tree, Tree]:
        first = self.tau**2 if self.first_v == "tau_squared" else 0.0
        return tree.zeros_like(params), tree.map(lambda w: torch.full_like(w, first), params)

    def __call__(self, x: Tree, state: tuple[Tree, Tree], ctx: ServerContext) -> tuple[Tree, tuple[Tree, Tree]]:
        m = tree.map(lambda m, u: self.beta1 * m + (1 - self.beta1) * u, state[0], x)
        v = tree.map(lambda v, u: self.beta2 * v + (1 - self.beta2) * u.square(), state[1], x)
        return tree.map(lambda m, v: self.server_lr * m / (elementwise.sqrt(v) + self.tau), m, v), (m, v)
