"""FedLAW with squares, the quadratic base function of FedLAW, ICML 2023, https://arxiv.org/abs/2302.10911, appendix C,
equation 10. The paper runs only the exponential one, which is the part `fedlaw`. gamma = x_gamma^2 and the start are those of
the authors' code.

w <- gamma * sum_i lambda_i w_i with gamma = x_gamma^2 and lambda_i = x_i^2 / sum_j x_j^2. Every round begins at x_gamma = 1 and
x_i = 1 / sqrt(K), so with equal weights and not with the clients' data sizes. With G the gradient of the proxy loss at the
blended model, u_i = <G, w_i> and ubar = sum_i lambda_i u_i, the gradients are

    dL/dx_gamma = 2 x_gamma ubar        dL/dx_i = gamma * 2 x_i / (sum_j x_j^2) * (u_i - ubar).

The closed form is ours and is tested against autograd. Limiting case: server_epochs = 0 is FedAvg with equal weights.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.adam import Adam
from fedrepro.methods.parts import Aggregate, proxy_batches, register
from fedrepro.methods.proxy_weights import ProxyLearning, blended_update
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "fedlaw_quad")
@dataclass(frozen=True)
class FedLawQuad(ProxyLearning, Aggregate):
    """Joint learning of gamma and lambda by Adam, as `fedlaw` does it, with the other base function."""

    needs = frozenset({"proxy"})

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        assert ctx.proxy is not None
        models, labels, adam = x.models, ctx.proxy.y, Adam(self.beta1, self.beta2)
        roots = first_roots(x.weights)
        moments = adam.init(roots)
        for epoch, index_B in proxy_batches(ctx, "server-weights", self.server_epochs):
            gamma, lambda_K = squares(roots)
            blended_model = tree.weighted_sum(gamma * lambda_K, models)
            g = ctx.gradient(blended_model, index_B, lambda logits, i: ctx.network.loss(logits, labels[i]))
            roots, moments = adam.step(roots, root_gradient(models, roots, g), moments, self.halved_lr(epoch))
        gamma, lambda_K = squares(roots)
        ctx.notes.update({"gamma": float(gamma), "lambda_max": float(lambda_K.max())})
        ctx.diagnostics.update({"gamma": gamma, "lambda": lambda_K})
        return blended_update(x, float(gamma), lambda_K), state


def first_roots(weights_K: Tensor) -> Tensor:
    """The x [K + 1] at the start of a round: 1 / sqrt(K) for every client, then x_gamma = 1."""
    clients = len(weights_K)
    return torch.cat([weights_K.new_full((clients,), clients**-0.5), weights_K.new_ones(1)])


def squares(roots: Tensor) -> tuple[Tensor, Tensor]:
    """(gamma [], lambda [K]) for x [K + 1]."""
    squared_roots = roots.square()
    return squared_roots[-1], squared_roots[:-1] / squared_roots[:-1].sum()


def root_gradient(models: Tree, roots: Tensor, g: Tree) -> Tensor:
    """dL/dx [K + 1] from the gradient g [D] of L at the blended model, by K dot products with `models` [K, D]."""
    gamma, lambda_K = squares(roots)
    u_K = models.flat @ g.flat
    ubar = lambda_K @ u_K
    weights_gradient = gamma * 2 * roots[:-1] / roots[:-1].square().sum() * (u_K - ubar)
    return torch.cat([weights_gradient, (2 * roots[-1] * ubar).reshape(1)])
