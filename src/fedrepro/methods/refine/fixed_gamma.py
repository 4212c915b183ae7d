"""Global weight shrinking with a fixed factor. FedLAW, ICML 2023, section 4 (Tables 1 and 9).

w <- gamma * w after the server step, over all trainable parameters (biases included). Each round notes gamma, the norms of the
two gradients of equation 4, and their ratio r (`fedrepro.methods.shrinking`). The clients measured BatchNorm's running
statistics before the weights shrank, so these no longer fit; `proxy_buffers` measures new ones. Limiting case: gamma = 1 is
FedAvg.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro.methods.parts import Refine, register
from fedrepro.methods.shrinking import shrink
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("refine", "fixed_gamma")
@dataclass(frozen=True)
class FixedGamma(Refine):
    """`gamma` in (0, 1]; Table 1 finds the best values between 0.93 and 0.97."""

    gamma: float = 0.97

    def __post_init__(self) -> None:
        require(0 < self.gamma <= 1, "fixed_gamma: gamma", self.gamma, "must be greater than 0 and at most 1 (1 is FedAvg)")

    def __call__(self, x: Tree, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        return shrink(x, self.gamma, ctx), state
