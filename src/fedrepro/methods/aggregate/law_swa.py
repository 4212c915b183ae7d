"""LAW with SWA. FedLAW, ICML 2023, https://arxiv.org/abs/2302.10911, Figure 7: attentive LAW with logits averaged over the
server's epochs, as in FedLAW with SWA.

This is stage 1 of `fedlaw_swa`, with its learning rates and its average, and gamma = 1. The paper gives no settings for it. It
runs all of the `server_epochs`, where that stage runs half of them (our choice). So it makes as many passes over the proxy set
as `attentive_law`, and the two differ only in the averaging and the learning rates. Limiting case: server_epochs = 0 is FedAvg
(with BatchNorm, of its weights alone: see `server_buffers`).
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import tree
from fedrepro.lazy import torch
from fedrepro.methods.aggregate.fedlaw_swa import FedLawSwa
from fedrepro.methods.parts import register
from fedrepro.methods.proxy_weights import ProxyLearning
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("aggregate", "law_swa")
@dataclass(frozen=True)
class LawSwa(FedLawSwa):
    """Arguments as in `fedlaw_swa`. `halve_every` has no effect, since the rate of this stage is not halved."""

    def __post_init__(self) -> None:
        ProxyLearning.__post_init__(self)
        require(self.swa_lr > 0, "law_swa: swa_lr", self.swa_lr, "must be greater than 0")
        for key, minimum in (("swa_start", 0), ("swa_anneal", 1), ("cosine_epochs", 1)):
            require(getattr(self, key) >= minimum, f"law_swa: {key}", getattr(self, key), f"must be at least {minimum}")

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        optimise_args = (ctx, "server-weights", self.server_epochs, self.weights_lr)
        logits_by_epoch = list(self.optimise(x.models, self.start(x.weights), *optimise_args, gamma=False))
        averaged_logits = logits_by_epoch[self.swa_start :] or logits_by_epoch[-1:]  # too few epochs for an average: the last
        lambda_K = torch.stack(averaged_logits).mean(0)[:-1].softmax(0) if averaged_logits else x.weights
        ctx.notes["lambda_max"] = float(lambda_K.max())
        ctx.diagnostics["lambda"] = lambda_K
        return tree.weighted_sum(lambda_K, x.updates), state
