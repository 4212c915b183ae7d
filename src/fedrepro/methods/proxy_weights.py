"""Learning aggregation weights on the proxy set: the base of FedLAW, adaptive GWS, attentive LAW and their variants.

The blended model is v = gamma * sum_i lambda_i w_i, with gamma = exp(x_gamma) and lambda = softmax(x). Its gradients follow
from one backward pass: with G = dL/dv, u_i = <G, w_i> and ubar = sum_i lambda_i u_i,

    dL/dx_gamma = gamma * ubar        dL/dx_i = gamma * lambda_i * (u_i - ubar).

FedLAW, ICML 2023, equation 8 and Algorithm 1; the closed form and the order of operations are ours and are tested against
finite differences in float64.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fedrepro import elementwise, tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.adam import Adam
from fedrepro.methods.parts import proxy_batches
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@dataclass(frozen=True)
class ProxyLearning:
    """Arguments of the server's optimisation, the same for all parts that learn gamma or lambda on the proxy set.

    The defaults are those of FedLAW's paper (server_epochs, betas) and, where it is silent, of its authors' code.
    """

    server_lr: float = 0.005  # Adam, > 0; 0.01 on CIFAR-10, 0.005 otherwise
    server_epochs: int = 100  # passes over the proxy set per round, >= 0; 0 is FedAvg
    halve_every: int = 20  # epochs after which the server learning rate is halved, >= 1
    beta1: float = 0.5
    beta2: float = 0.999

    def __post_init__(self) -> None:
        name = getattr(self, "name", type(self).__name__)
        require(self.server_lr > 0, f"{name}: server_lr", self.server_lr, "must be greater than 0")
        require(self.server_epochs >= 0, f"{name}: server_epochs", self.server_epochs, "must be at least 0 (0 is FedAvg)")
        require(self.halve_every >= 1, f"{name}: halve_every", self.halve_every, "must be at least 1")
        for key in ("beta1", "beta2"):
            require(0 <= getattr(self, key) < 1, f"{name}: {key}", getattr(self, key), "must be at least 0 and below 1")

    @property
    def wants(self) -> dict[str, str]:
        """Running statistics never travel; training on the proxy set refreshes the server's."""
        return {"buffers": "server_buffers"}

    def learn(
        self, models: Tree, weights: Tensor, ctx: ServerContext, *, gamma: bool, weights_too: bool
    ) -> tuple[float, Tensor]:
        """(gamma, lambda_K) for `models` [K, D] after the server's epochs, from gamma = 1 and lambda = `weights` [K], all > 0.

        A factor that is not learned keeps its first value. Both restart in every round.
        """
        x, optimise_args = self.start(weights), (ctx, "server-weights", self.server_epochs, self.halved_lr)
        for new_x in self.optimise(models, x, *optimise_args, gamma=gamma, weights=weights_too):
            x = new_x
        return float(x[-1].exp()), x[:-1].softmax(0) if weights_too else weights

    def start(self, weights: Tensor) -> Tensor:
        """Logits [K + 1] for gamma = 1 and lambda = `weights`: the K of lambda, then x_gamma."""
        return torch.cat([elementwise.log(weights), weights.new_zeros(1)])

    def halved_lr(self, epoch: int) -> float:
        """server_lr, halved after every `halve_every` epochs."""
        return self.server_lr * 0.5 ** (epoch // self.halve_every)

    def optimise(
        self,
        models: Tree,
        x: Tensor,
        ctx: ServerContext,
        purpose: str,
        epochs: int,
        lr_at: Callable[[int], float],
        *,
        gamma: bool = True,
        weights: bool = True,
    ) -> Iterator[Tensor]:
        """The logits [K + 1] after each epoch of Adam on the proxy set, from `x`. `gamma`, `weights`: whether to learn them."""
        assert ctx.proxy is not None
        labels, adam = ctx.proxy.y, Adam(self.beta1, self.beta2)
        mask = torch.cat([x.new_full((len(x) - 1,), float(weights)), x.new_full((1,), float(gamma))])
        state, epochs_done = adam.init(x), 0
        for epoch, index_B in proxy_batches(ctx, purpose, epochs):
            if epoch > epochs_done:
                yield x
                epochs_done = epoch
            grad = lambda v, i=index_B: ctx.gradient(v, i, lambda logits, i: ctx.network.loss(logits, labels[i]))  # noqa: E731
            x, state = adam.step(x, mask * logit_gradient(models, x, grad), state, lr_at(epoch))
        if epochs:
            yield x


def blended_update(cohort: Cohort, gamma: float, lambda_K: Tensor) -> Tree:
    """gamma * sum_k lambda_k (w + u_k) - w, [D]. With gamma = 1, w drops out exactly and the weighted mean remains."""
    mean = tree.weighted_sum(lambda_K, cohort.updates)
    return tree.map(lambda u, w: gamma * u + (gamma - 1) * w, mean, cohort.anchor)


def blend(models: Tree, x: Tensor) -> Tree:
    """v = exp(x_gamma) * sum_i softmax(x)_i w_i for logits x [K + 1], the last of which is x_gamma."""
    return tree.weighted_sum(x[-1].exp() * x[:-1].softmax(0), models)


def logit_gradient(models: Tree, x: Tensor, gradient: Callable[[Tree], Tree]) -> Tensor:
    """dL/dx [K + 1] at the blended model, by one gradient [D] of L there and K dot products."""
    gamma, lambda_K = x[-1].exp(), x[:-1].softmax(0)
    u_K = models.flat @ gradient(blend(models, x)).flat
    ubar = lambda_K @ u_K
    return torch.cat([gamma * lambda_K * (u_K - ubar), (gamma * ubar).reshape(1)])
