"""The base of the adaptive server optimizers. Reddi et al., ICLR 2021, https://arxiv.org/abs/2003.00295, Algorithm 2.

m <- beta1 m + (1 - beta1) update, v as each optimizer computes it, w <- w + server_lr * m / (sqrt(v) + tau), without bias
correction. m starts at 0 and v at `first_v`: 0 in most codes, tau^2 in the paper.
"""

from fedrepro import elementwise, tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.parts import ServerOpt
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


class AdaptiveServer(ServerOpt):
    """For dataclasses with `server_lr` > 0, `beta1` in [0, 1), `tau` > 0, `first_v` zero or tau_squared. An optimizer that
    forgets also has `beta2` in [0, 1)."""

    server_lr: float
    beta1: float
    tau: float
    first_v: str

    def __post_init__(self) -> None:
        arguments = vars(self)
        for key in ("server_lr", "tau"):
            require(arguments[key] > 0, f"{self.name}: {key}", arguments[key], "must be greater than 0")
        for key in ("beta1", "beta2"):
            if key in arguments:
                require(0 <= arguments[key] < 1, f"{self.name}: {key}", arguments[key], "must be at least 0 and below 1")
        is_known = self.first_v in ("zero", "tau_squared")
        require(is_known, f"{self.name}: first_v", self.first_v, "must be zero or tau_squared")

    def second(self, v: Tensor, squared: Tensor) -> Tensor:
        """The new second moment [D], from the last one and the squared update."""
        raise NotImplementedError

    def init(self, params: Tree) -> tuple[Tree, Tree]:
        initial_v = self.tau**2 if self.first_v == "tau_squared" else 0.0
        return tree.zeros_like(params), tree.map(lambda w: torch.full_like(w, initial_v), params)

    def __call__(self, x: Tree, state: tuple[Tree, Tree], ctx: ServerContext) -> tuple[Tree, tuple[Tree, Tree]]:
        m = tree.map(lambda m, u: self.beta1 * m + (1 - self.beta1) * u, state[0], x)
        v = tree.map(lambda v, u: self.second(v, u.square()), state[1], x)
        return tree.map(lambda m, v: self.server_lr * m / (elementwise.sqrt(v) + self.tau), m, v), (m, v)
