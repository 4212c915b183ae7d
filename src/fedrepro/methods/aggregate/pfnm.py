"""PFNM, matched averaging of perceptrons. Yurochkin et al., ICML 2019, https://arxiv.org/abs/1905.12022, sections 3 and 4.

The order of a hidden layer's units has no meaning, so clients' units are matched before they are averaged. This goes from the
output side down: unit l of client j is the vector v_jl of its bias and outgoing weights, whose other ends are matched already,
and in the first layer of its incoming weights too. All clients started from the same units, so each v_jl is first assigned to
its own place. Then clients are taken out one by one, in random order, and assigned anew to the units that the others form: by
the Hungarian method, to the highest posterior. This is done at most `sweeps` times, or until nothing changes. The new weights
are the posterior mean (prior_mean / sigma0^2 + sum_j v_jl / sigma^2) / (1 / sigma0^2 + J / sigma^2).

Differences from the paper: a global model has a fixed layout here, so the number of units stays and none is added. As each
client fills every place, the paper's prior over the number of units is the same for all assignments and decides nothing. All
weights of a unit have the same precision: the reference code weighs outgoing ones by a client's share of each class, which a
server does not see. Limiting cases: if every unit stays in its place and sigma0 is large, the uniform mean. Of equally good
places a unit takes its own (our choice), so a client alone in a round keeps all of them: with a large sigma0, its own update.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fedrepro.errors import UserError
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.matching import match_units, reorder_units
from fedrepro.methods.parts import Aggregate, register
from fedrepro.registry import require
from fedrepro.tree import Layout, Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "pfnm")
@dataclass(frozen=True)
class Pfnm(Aggregate):
    """`sigma` and `sigma0` > 0, deviations of the data and of the prior (1 in the reference code), whose mean is 0 for weights
    and `prior_bias` for hidden biases; `sweeps` >= 1."""

    sigma: float = 1.0
    sigma0: float = 1.0
    prior_bias: float = 0.1
    sweeps: int = 3

    def __post_init__(self) -> None:
        for key in ("sigma", "sigma0"):
            require(getattr(self, key) > 0, f"pfnm: {key}", getattr(self, key), "must be greater than 0")
        require(self.sweeps >= 1, "pfnm: sweeps", self.sweeps, "must be at least 1")

    def init(self, params: Tree) -> None:
        """UserError for a model that is not a perceptron."""
        _layers(params.layout)

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        models = x.models.like(x.models.flat.detach().cpu().double())
        layers, tensors = _layers(models.layout), {name: models[name] for name in models.layout.names}
        moved_units, prior = 0, self.prior_bias * (self.sigma / self.sigma0) ** 2
        for layer_below, layer_above in reversed(list(pairwise(layers))):
            bias, weights_in, weights_out = (
                tensors[name] for name in (f"{layer_below}.bias", f"{layer_below}.weight", f"{layer_above}.weight")
            )
            unit_parts = [bias.unsqueeze(2), weights_out.mT, *([weights_in] if layer_below == layers[0] else [])]
            order_KL = match_units(torch.cat(unit_parts, 2), prior, self.sweeps, ctx.rng(f"pfnm/{layer_below}"))
            tensors |= {
                f"{layer_below}.bias": reorder_units(bias, order_KL),
                f"{layer_below}.weight": reorder_units(weights_in, order_KL),
            }
            tensors[f"{layer_above}.weight"] = reorder_units(weights_out.mT, order_KL).mT
            moved_units += int((order_KL != torch.arange(order_KL.shape[1])).sum())
        ctx.notes["pfnm_moved"] = moved_units / len(x.clients)
        hidden_biases = {f"{layer}.bias" for layer in layers[:-1]}
        means = [self._mean(tensors[name], self.prior_bias if name in hidden_biases else 0.0) for name in models.layout.names]
        means[-1] = tensors[models.layout.names[-1]].mean(0)  # the outputs' biases are averaged
        posterior_mean = torch.cat([mean.flatten() for mean in means])
        if len(x.clients) == 1:  # the update by training and that by the prior: w_1 - w would round the update anew
            return x.anchor.like(x.updates.flat[0] + (posterior_mean - models.flat[0]).to(x.anchor.flat)), state
        return x.anchor.like(posterior_mean.to(x.anchor.flat) - x.anchor.flat), state

    def _mean(self, of_clients: Tensor, prior: float) -> Tensor:
        """The posterior mean of a tensor [K, ...]."""
        data_precision = len(of_clients) / self.sigma**2
        return (of_clients.mean(0) * data_precision + prior / self.sigma0**2) / (data_precision + 1 / self.sigma0**2)


def _layers(layout: Layout) -> list[str]:
    """fc1, fc2, ... of a perceptron. UserError for another model."""
    layers = [f"fc{number}" for number in range(1, len(layout.names) // 2 + 1)]
    if layout.names != tuple(f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias")):
        raise UserError("pfnm: matches the units of perceptrons, and this model has other layers; take mlp, two_nn or logistic")
    return layers
