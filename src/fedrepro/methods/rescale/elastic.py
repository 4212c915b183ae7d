"""Elastic aggregation. Chen, Hu, Tan, Wei, Wu, "Elastic Aggregation for Federated Optimization", CVPR 2023,
https://openaccess.thecvf.com/content/CVPR2023/html/Chen_Elastic_Aggregation_for_Federated_Optimization_CVPR_2023_paper.html,
section 3 and Algorithm 1.

Before it trains, client k measures how much each parameter of the received model w matters to the output F. It uses samples
that it does not train on, and no labels. Over their batches, from Omega_k = 0:

    Omega_k <- mu Omega_k + (1 - mu) |d ||F(x; w)||^2 / dw|.

The server takes Omega = sum_k p_k Omega_k and scales the aggregated update element by element by

    zeta = 1 + tau - Omega / (the largest Omega of its layer),    from tau for what matters most to 1 + tau.

zeta > 1 boosts a parameter, zeta < 1 restricts it. ||F||^2 is the mean over a batch (our choice: with a sum, a last, smaller
batch would count for less). If a layer's largest Omega is 0, zeta = 1 (our choice). With other methods zeta scales the result
of the aggregate, before the server's momentum or adaptive step; control variates do not see it (our choice: the paper gives the
idea only). Running statistics are not scaled. Limiting case: Omega constant in each layer scales the update by tau, so that
tau = 1 is then FedAvg.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.parts import Rescale, register, require_weighting
from fedrepro.methods.sensitivity import GRANULARITIES, relative_to_largest, sensitivity_notes
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, ServerContext

OUTPUTS = ("logits", "probabilities", "features")


@register("rescale", "elastic")
@dataclass(frozen=True)
class Elastic(Rescale):
    """`tau` >= 0; `mu` in [0, 1), 0.95 in the paper's experiments and 0.9 in its section 3.

    `granularity` says which parameters share a largest Omega: each tensor, each module (a layer's weight and bias), each
    channel (what leads to one output of a module: a row of its weight and that row's bias), or global. `of`: F is the logits,
    the probabilities, or the features that the last layer reads, whose own Omega is then 0. `bias_correction` divides Omega_k
    by 1 - mu^b, where b is its number of batches; without it clients with more batches count for more. `weighting`: p_k, by
    size (including held-out samples) or uniform. Given twice in one method, both take the Omega of the second.
    """

    tau: float = 0.5
    mu: float = 0.95
    granularity: str = "tensor"
    bias_correction: bool = False
    of: str = "logits"
    weighting: str = "size"

    sends = 1  # Omega_k

    def __post_init__(self) -> None:
        require(self.tau >= 0, "elastic: tau", self.tau, "must be at least 0")
        require(0 <= self.mu < 1, "elastic: mu", self.mu, "must be at least 0 and below 1")
        for key, names in (("granularity", GRANULARITIES), ("of", OUTPUTS)):
            require(getattr(self, key) in names, f"elastic: {key}", getattr(self, key), f"must be one of {', '.join(names)}")
        require_weighting("elastic", self.weighting)

    def probe(self, batches: Iterable[Batch], ctx: ClientContext) -> Tree:
        """Omega_k [D] at the received model. Zeros for a client without held-out samples, so it has no influence on zeta."""
        omega, mu_power = tree.zeros_like(ctx.anchor), 1.0
        for batch in batches:
            g = self._gradient(batch.x, ctx)
            omega = tree.map(lambda before, g: self.mu * before + (1 - self.mu) * g.abs(), omega, g)
            mu_power *= self.mu
        return tree.scale(omega, 1 / (1 - mu_power)) if mu_power < 1 and self.bias_correction else omega

    def __call__(self, x: Tree, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        cohort = ctx.cohort
        omega = tree.weighted_sum(cohort.shares(self.weighting), cohort.probes[self.name])
        ctx.notes.update(sensitivity_notes(omega, self.tau, self.granularity))
        return tree.map(lambda x, zeta: zeta * x, x, self.factors(omega)), state

    def factors(self, omega: Tree) -> Tree:
        """zeta [D] for Omega [D]."""
        relative_omega = relative_to_largest(omega, self.granularity)
        return omega.like(torch.where(relative_omega < 0, 1.0, 1 + self.tau - relative_omega).to(omega.flat.dtype))

    def _gradient(self, x: Tensor, ctx: ClientContext) -> Tree:
        """The gradient of the batch mean of ||F||^2, at the received model."""
        if self.of == "logits" and (closed_form := ctx.network.squared_gradient(ctx.anchor, x)) is not None:
            return closed_form
        return tree.gradient(lambda params: self._length(params, x, ctx), ctx.anchor)

    def _length(self, params: Tree, x: Tensor, ctx: ClientContext) -> Tensor:
        if self.of == "features":
            zero_term = 0.0 * params.flat.sum()  # the last layer's weights, for which autograd would find no gradient
            return ctx.network.features(params, x).square().sum(-1).mean() + zero_term
        outputs = ctx.network(params, x)
        return (outputs.softmax(-1) if self.of == "probabilities" else outputs).square().sum(-1).mean()
