"""Training the whole global model on the proxy set: the base of FedDF, FedBE and Server-FT.

FedLAW's paper (ICML 2023, https://arxiv.org/abs/2302.10911, appendix D) uses Adam for these three, with betas 0.5 and 0.999 and
no learning rate given. Its authors' code uses the clients' SGD at the undecayed client_lr, with a momentum that continues from
round to round. Both are arguments.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fedrepro import tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.adam import Adam
from fedrepro.methods.parts import proxy_batches
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@dataclass(frozen=True)
class StudentTraining:
    """The server's optimiser. `solver`: adam, fresh in each round, or sgd, with or without `keep_momentum` over rounds.

    Arguments of the other solver are not read. Each needs its own rate: 1e-3 with adam, the clients' rate with sgd.
    """

    solver: str = "adam"
    server_lr: float = 1e-3  # > 0, constant
    server_epochs: int = 100  # passes over the proxy set per round, >= 0; 0 is FedAvg
    beta1: float = 0.5  # adam
    beta2: float = 0.999  # adam
    momentum: float = 0.9  # sgd
    weight_decay: float = 0.0  # sgd
    keep_momentum: bool = False  # sgd

    def __post_init__(self) -> None:
        name = getattr(self, "name", type(self).__name__)
        require(self.solver in ("adam", "sgd"), f"{name}: solver", self.solver, "must be adam or sgd")
        require(self.server_lr > 0, f"{name}: server_lr", self.server_lr, "must be greater than 0")
        require(self.server_epochs >= 0, f"{name}: server_epochs", self.server_epochs, "must be at least 0 (0 is FedAvg)")
        for key in ("beta1", "beta2", "momentum", "weight_decay"):
            require(0 <= getattr(self, key) < 1, f"{name}: {key}", getattr(self, key), "must be at least 0 and below 1")

    def init(self, params: Tree) -> Tree | None:
        """The velocity that continues from round to round. None if there is none."""
        return tree.zeros_like(params) if self.solver == "sgd" and self.keep_momentum else None

    def train(
        self, params: Tree, velocity: Tree | None, ctx: ServerContext, loss: Callable[[Tensor, Tensor], Tensor]
    ) -> tuple[Tree, Tree | None]:
        """(weights, velocity) after the server's epochs, in training mode.

        `loss` maps (logits [B, C], positions [B] in the proxy set) to a number.
        """
        assert ctx.proxy is not None
        w = params.flat
        adam = Adam(self.beta1, self.beta2)
        moments, v = adam.init(w), torch.zeros_like(w) if velocity is None else velocity.flat
        for _, index_B in proxy_batches(ctx, "server-training", self.server_epochs):
            g = ctx.gradient(params.like(w), index_B, loss).flat
            if self.solver == "adam":
                w, moments = adam.step(w, g, moments, self.server_lr)
            else:
                v = self.momentum * v + (g + self.weight_decay * w)
                w = w - self.server_lr * v
        return params.like(w), None if velocity is None else params.like(v)

    def distil(self, params: Tree, velocity: Tree | None, ctx: ServerContext, teacher_PC: Tensor) -> tuple[Tree, Tree | None]:
        """Like `train`, towards a teacher's probabilities [P, C], or [P, T, C] for text, on the proxy set: KL(teacher ||
        student), the mean over predictions."""

        def divergence(logits: Tensor, index_B: Tensor) -> Tensor:
            log_probabilities, targets = (values.flatten(0, -2) for values in (logits.log_softmax(-1), teacher_PC[index_B]))
            return torch.nn.functional.kl_div(log_probabilities, targets, reduction="batchmean")

        return self.train(params, velocity, ctx, divergence)


def client_logits(ctx: ServerContext) -> Tensor:
    """Logits [K, P, C] of every client's model on the proxy set, in evaluation mode with its own running statistics.

    Neither changes during the server's epochs, so they are computed once per round.
    """
    assert ctx.proxy is not None
    return ctx.predict(ctx.cohort.models, ctx.cohort.buffers, ctx.proxy.x)
