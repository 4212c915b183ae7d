"""FedLAW with SWA. Li, Lin, Shang, Wu, ICML 2023, https://arxiv.org/abs/2302.10911, section 6.1. It learns weights and
shrinking one after the other, and averages the weights' logits over the server's epochs (Izmailov et al. 2018).

Stage 1 takes half of the epochs, with gamma = 1: Adam learns lambda. Until `swa_start` the rate follows a cosine that would
reach zero at `cosine_epochs`. From then on the logits after each epoch enter an equal average, while the rate moves along a
half cosine of `swa_anneal` epochs to `swa_lr`. Stage 2 takes the other half, with the averaged lambda: Adam learns gamma, and
the rate is halved every so often. The paper describes the stages in the other order and says that the order does not matter.
This is its authors' code, which we assume made the numbers. Limiting case: server_epochs < 2 is FedAvg (with BatchNorm, of its
weights alone: see `server_buffers`).
"""

import math
from dataclasses import dataclass
from typing import Any

from fedrepro.lazy import torch
from fedrepro.methods.parts import Aggregate, register
from fedrepro.methods.proxy_weights import ProxyLearning, blended_update
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "fedlaw_swa")
@dataclass(frozen=True)
class FedLawSwa(ProxyLearning, Aggregate):
    """`swa_start`: the first epoch (from 0) whose logits are averaged; `swa_lr` > 0; the other two are epochs, >= 1."""

    needs = frozenset({"proxy"})

    swa_start: int = 6
    swa_lr: float = 0.05
    swa_anneal: int = 10
    cosine_epochs: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.swa_start >= 0, "fedlaw_swa: swa_start", self.swa_start, "must be at least 0")
        require(self.swa_lr > 0, "fedlaw_swa: swa_lr", self.swa_lr, "must be greater than 0")
        for key in ("swa_anneal", "cosine_epochs"):
            require(getattr(self, key) >= 1, f"fedlaw_swa: {key}", getattr(self, key), "must be at least 1")

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        epochs, models = self.server_epochs // 2, x.models
        logits = self.start(x.weights)
        logits_by_epoch = list(self.optimise(models, logits, ctx, "server-weights", epochs, self.weights_lr, gamma=False))
        averaged_logits = logits_by_epoch[self.swa_start :] or logits_by_epoch[-1:]  # too few epochs for an average: the last
        lambda_K = torch.stack(averaged_logits).mean(0)[:-1].softmax(0) if averaged_logits else x.weights
        logits = self.start(lambda_K)
        for new_logits in self.optimise(models, logits, ctx, "server-gamma", epochs, self.halved_lr, weights=False):
            logits = new_logits
        gamma = float(logits[-1].exp())
        ctx.notes.update({"gamma": gamma, "lambda_max": float(lambda_K.max())})
        return blended_update(x, gamma, lambda_K), state

    def weights_lr(self, epoch: int) -> float:
        """The learning rate of stage 1 in `epoch`, from 0."""
        cosine_lr = lambda e: self.server_lr * (1 + math.cos(math.pi * e / self.cosine_epochs)) / 2  # noqa: E731
        if epoch <= self.swa_start:
            return cosine_lr(epoch)
        annealed_share = (1 - math.cos(math.pi * min(1.0, (epoch - self.swa_start) / self.swa_anneal))) / 2
        return annealed_share * self.swa_lr + (1 - annealed_share) * cosine_lr(self.swa_start)
