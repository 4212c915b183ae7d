"""FedProx. Li et al., MLSys 2020, https://arxiv.org/abs/1812.06127, Algorithm 2.

Local objective F_k(w) + mu/2 ||w - w_t||^2, where w_t is the model received this round; the norm is over trainable parameters
only. FedLAW's authors run it with plain gradient steps (their code; the paper does not say so). Not reproduced: partial local
work of stragglers. Limiting case: mu = 0 is FedAvg.
"""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.methods.parts import LocalRule, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Solver


@register("client", "fedprox")
@dataclass(frozen=True)
class FedProx(LocalRule):
    """`mu` >= 0, strength of the proximal term; 0.001 in FedLAW's tables (its appendix).

    `steps`: as_set uses the setting's local solver; plain uses none of its momentum and weight decay.
    """

    mu: float = 0.001
    steps: str = "as_set"

    def __post_init__(self) -> None:
        require(self.mu >= 0, "fedprox: mu", self.mu, "must be at least 0 (0 is FedAvg)")
        require(self.steps in ("as_set", "plain"), "fedprox: steps", self.steps, "must be as_set or plain")

    @property
    def pull(self) -> float:
        return self.mu

    def solver(self, setting: Solver) -> Solver:
        return setting if self.steps == "as_set" else Solver(momentum=0.0, weight_decay=0.0)

    def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        g = super().direction(params, batch, ctx)
        return tree.map(lambda g, w, anchor: g + self.mu * (w - anchor), g, params, ctx.anchor)
