"""FedBE, Bayesian model ensemble. Chen and Chao, ICLR 2021, https://arxiv.org/abs/2009.01974, Algorithm 1, Gaussian form.

Distillation as in FedDF, with more teachers: the aggregated model, every client, and models drawn from a Gaussian around the
clients. For each tensor, with unit updates u_k = (w_k - w) / ||w_k - w||: mean m and variance s^2 = max(mean u^2 - m^2, 1e-5)
over the clients, nu = mean ||w_k - w||, and a model is w + nu (m + 0.1 s eps), eps ~ N(0, 1). FedLAW's comparison takes the
mean of logits and one drawn model (its authors' code). FedBE's own code takes the mean of probabilities, sharpened, and ten.
Our choice: drawn models use the aggregated model's running statistics, since a drawn variance may be negative. Not reproduced:
weight averaging of the student. Limiting case: server_epochs = 0 is FedAvg.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro import elementwise, tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.parts import Refine, register
from fedrepro.methods.student import StudentTraining, client_logits
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext


@register("refine", "fedbe")
@dataclass(frozen=True)
class FedBe(StudentTraining, Refine):
    """`samples` >= 0: models drawn per round. `noise` >= 0: factor of the deviation. `ensemble`: mean of logits or of
    probabilities.

    `temperature` in (0, 1] sharpens the mean, p^(1/temperature) normalised (1 leaves it; FedBE's own code takes 0.5).
    """

    needs = frozenset({"proxy"})
    reads_buffers = True  # those of its teachers

    samples: int = 1
    noise: float = 0.1
    ensemble: str = "logits"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.samples >= 0, "fedbe: samples", self.samples, "must be at least 0")
        require(self.noise >= 0, "fedbe: noise", self.noise, "must be at least 0")
        require(
            self.ensemble in ("logits", "probabilities"), "fedbe: ensemble", self.ensemble, "must be logits or probabilities"
        )
        require(0 < self.temperature <= 1, "fedbe: temperature", self.temperature, "must be greater than 0 and at most 1")

    def __call__(self, x: Tree, state: Tree | None, ctx: ServerContext) -> tuple[Tree, Tree | None]:
        assert ctx.proxy is not None
        generator = ctx.rng("fedbe-samples")
        extra_teachers = tree.stack([x, *(draw(ctx.cohort, generator, self.noise) for _ in range(self.samples))])
        buffers = tree.stack([ctx.network.buffers] * len(extra_teachers.flat))
        logits = ctx.predict(extra_teachers, buffers, ctx.proxy.x)
        return self.distil(x, state, ctx, self.teacher(torch.cat([client_logits(ctx), logits])))

    def teacher(self, logits_TPC: Tensor) -> Tensor:
        """Probabilities [P, C] of the ensemble, from its members' logits [T, P, C]."""
        mean_logits = logits_TPC.mean(0) if self.ensemble == "logits" else elementwise.log(logits_TPC.softmax(-1).mean(0))
        return (mean_logits / self.temperature).softmax(-1)


def draw(cohort: Cohort, generator: np.random.Generator, noise: float) -> Tree:
    """One model [D] from the Gaussian around the cohort's. A client that did not move adds a zero direction."""
    updates = cohort.updates
    norm_KL = tree.tensor_norms(updates)
    norm_KD = tree.spread(norm_KL, updates)
    unit_KD = torch.where(norm_KD > 1e-6, updates.flat / norm_KD.clamp_min(1e-6), 0)
    mean = unit_KD.mean(0)
    deviation = elementwise.sqrt((unit_KD.square().mean(0) - mean.square()).clamp_min(1e-5))
    eps = torch.from_numpy(generator.standard_normal(len(mean))).to(mean)
    step = tree.spread(norm_KL.mean(0), updates) * (mean + noise * deviation * eps)
    return cohort.anchor.like(cohort.anchor.flat + step)
