"""FedASAM. Caldarola, Caputo, Ciccone, ECCV 2022, https://arxiv.org/abs/2203.11834, section 4.1, with the ascent of ASAM: Kwon,
Kim, Park, Choi, ICML 2021, https://arxiv.org/abs/2102.11600, Algorithm 1.

A client looks for weights around which the loss is flat. It takes two gradients of each batch:

    g = grad f(w),   eps = rho T^2 g / ||T g||,   direction = grad f(w + eps),

where T is |w| + eta for tensors with "weight" in their name, including the scales of normalisations, and 1 for all others, as
in the reference code (in our LSTMs, by their names, only the recurrent matrices). The norm is over all tensors. The local
solver takes its step from w; momentum and weight decay use only the second gradient. Running statistics move once per batch, by
the pass at w, so that with rho = 0 they are FedAvg's (our choice; in the reference code both passes move them). Each pass draws
its own dropout mask, as there. FedIMA's authors take rho = 0.7 and eta = 0.2 for small CNNs, 0.2 and 0.05 for other networks
(their code). Limiting case: rho = 0 is FedAvg.
"""

from dataclasses import dataclass
from functools import lru_cache

from fedrepro import tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.parts import LocalRule, register
from fedrepro.registry import require
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, ClientContext

TINY = 1e-16  # added to the norm, as in the reference code


@register("client", "fedasam")
@dataclass(frozen=True)
class FedAsam(LocalRule):
    """`rho` >= 0: how far the ascent goes. `eta` >= 0: lets the ascent move weights near 0."""

    rho: float = 0.7
    eta: float = 0.2

    def __post_init__(self) -> None:
        require(self.rho >= 0, "fedasam: rho", self.rho, "must be at least 0 (0 is FedAvg)")
        require(self.eta >= 0, "fedasam: eta", self.eta, "must be at least 0")

    def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        g = super().direction(params, batch, ctx)
        if not self.rho:
            return g
        buffers, perturbed_params = ctx.network.buffers, self._ascend(params, g)
        g = super().direction(perturbed_params, batch, ctx)
        ctx.network.buffers = buffers
        return g

    def _ascend(self, params: Tree, g: Tree) -> Tree:
        """w + eps."""
        is_weight = _weights(params.layout, params.flat.device)
        scale = tree.map(lambda w: torch.where(is_weight, w.abs() + self.eta, 1.0), params)
        scaled_gradient = tree.map(torch.mul, scale, g)
        return tree.axpy(self.rho / (tree.norm(scaled_gradient) + TINY), tree.map(torch.mul, scale, scaled_gradient), params)


@lru_cache(maxsize=4)
def _weights(layout: Layout, device: "torch.device") -> Tensor:
    """Which elements belong to tensors that have "weight" in their name, bool [D]."""
    named_sizes = zip(layout.names, layout.sizes, strict=True)
    return torch.cat([torch.full((size,), "weight" in name) for name, size in named_sizes]).to(device)
