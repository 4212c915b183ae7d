"""FedGMA, gradient masked averaging. Tenison et al., TMLR 2023, https://arxiv.org/abs/2201.11986, section 3.

Where clients agree on the direction of a parameter, the server follows their mean; elsewhere it takes less of it:

    a_j = |sum_k p_k sign(u_kj)|,   m_j = 1 if a_j >= threshold, else a_j,   update = m * sum_k p_k u_k.

An update of 0 has no sign. `and` uses 0 in place of a_j, the mask of an earlier version (Parascandolo et al., ICLR 2021).
Agreement may be a rounding error below the threshold: nine of ten clients of equal size against one are 0.8 (our choice).

`authors` is what the code of FedIMA's authors computes: FedAvg with a perturbation. The update is x_K, where

    x_0 = 0;   x_k = mean_p u - STEP / K * sum_{l <= k} M_l (u_l - x_{l-1}),   M_l = [the sign of u_l - x_{l-1} is that of s]
                                                                                  and |s| > threshold K,   s = sum_k sign(u_k),

client by client. The first is compared with the old model, each later one with the current mean, since tensors share
memory in that code. "Sign" means greater than 0 or not. The order is that of the cohort: theirs was the order in which clients
were drawn, ours is by id, so the terms of the perturbation come in another order. Limiting cases: threshold = 0 is FedAvg for
`masked` and `and`; so is any threshold where all clients agree.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.lazy import torch
from fedrepro.methods.parts import Aggregate, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext

ROUNDING = 1e-5  # of a sum of weights in float32; a client of one sample in 50,000 weighs twice that
STEP = 1e-4  # `server_lr` in the authors' code


@register("aggregate", "fedgma")
@dataclass(frozen=True)
class FedGma(Aggregate):
    """`threshold` in [0, 1], 0.8 in FedIMA; `variant`: masked, and, or authors."""

    threshold: float = 0.8
    variant: str = "masked"

    def __post_init__(self) -> None:
        require(0 <= self.threshold <= 1, "fedgma: threshold", self.threshold, "must be from 0 to 1 (0 is FedAvg)")
        variants = ("masked", "and", "authors")
        require(self.variant in variants, "fedgma: variant", self.variant, "must be masked, and or authors")

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        mean = tree.weighted_sum(x.weights, x.updates)
        if self.variant == "authors":
            return self._perturbed_mean(mean, x), state
        agreement = tree.map(torch.abs, tree.weighted_sum(x.weights, tree.map(torch.sign, x.updates))).flat
        above_threshold = agreement >= self.threshold - ROUNDING
        ctx.notes["gma_agreed"] = float(above_threshold.to(agreement.dtype).mean())
        mask = torch.where(above_threshold, 1.0, agreement if self.variant == "masked" else 0.0)
        return tree.map(lambda u: mask * u, mean), state

    def _perturbed_mean(self, mean: Tree, x: Cohort) -> Tree:
        """The authors' form."""
        clients, votes = len(x.clients), x.updates.flat.sign().sum(0)
        positive_vote, clear_vote = votes > 0, votes.abs() > self.threshold * clients
        reference, perturbed_mean = torch.zeros_like(mean.flat), mean.flat
        for u in x.updates.flat:
            gap = u - reference
            perturbed_mean = reference = perturbed_mean - STEP / clients * gap * ((gap > 0) == positive_vote) * clear_vote
        return mean.like(perturbed_mean)
