"""Whole server optimisations compared with torch: FedLAW and LAW with SWA, under torch's two schedulers, and FedLAW with
squares."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR
from torch.optim.swa_utils import SWALR

from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.methods.aggregate.fedlaw_quad import FedLawQuad
from fedrepro.methods.aggregate.fedlaw_swa import FedLawSwa
from fedrepro.methods.aggregate.law_swa import LawSwa
from fedrepro.methods.compose import compose
from fedrepro.models import ops
from fedrepro.tree import Tree
from fedrepro.types import Cohort
from tests import toy


class Stage1:
    """Stage 1 as a script with torch's optimiser and schedulers would run it, with `swa_start` = 5. After epochs 0 to 5 the
    cosine schedule moves; after every later one the logits are averaged and the SWA schedule moves."""

    def __init__(self, x: Tensor, server_lr: float, swa_lr: float) -> None:
        self.x, self.seen, self.rates = x, [], []
        self.optimiser = torch.optim.Adam([x], lr=server_lr, betas=(0.5, 0.999))
        self.cosine = CosineAnnealingLR(self.optimiser, T_max=100)
        self.swa = SWALR(self.optimiser, swa_lr=swa_lr)

    def epoch(self, epoch: int, loss: Tensor) -> None:
        self.rates.append(self.optimiser.param_groups[0]["lr"])
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        if epoch > 5:
            self.seen.append(self.x.detach().clone())
            self.swa.step()
        else:
            self.cosine.step()


@pytest.mark.parametrize("server_lr", [0.01, 0.005])
def test_learning_rate_of_the_weights_equals_torchs_schedulers(server_lr: float) -> None:
    """CosineAnnealingLR(T_max=100) and SWALR(swa_lr=0.05, anneal_epochs=10, cos) are stepped for 50 epochs."""
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    reference = Stage1(x, server_lr, 0.05)
    for epoch in range(50):
        reference.epoch(epoch, x.sum())
    part = FedLawSwa(server_lr=server_lr)
    assert [part.weights_lr(epoch) for epoch in range(50)] == pytest.approx(reference.rates, rel=1e-12)


def one_batch() -> tuple[Task, Cohort, Callable[[Tensor, Tensor], Tensor]]:
    """A cohort, and the loss at gamma * sum_i lambda_i w_i on the whole proxy set, which is one batch."""
    task, fedavg = toy.make_task(proxy_batch_size=12), compose("fedavg")
    cohort, _ = SequentialEngine(task, fedavg).run_cohort(fedavg.init(task.params, task.buffers), 0)
    assert cohort is not None
    proxy, models = task.proxy, cohort.models.flat
    assert proxy is not None

    def loss(gamma: Tensor, lambda_K: Tensor) -> Tensor:
        v = Tree(task.model.layout, (gamma * lambda_K).unsqueeze(1).mul(models).sum(0))
        return ops.cross_entropy(task.model.forward(v, task.buffers, proxy.x, True)[0], proxy.y)

    return task, cohort, loss


@pytest.mark.parametrize("server_epochs", [2, 13, 16, 60])
def test_a_server_optimisation_equals_torchs(server_epochs: int) -> None:
    """Autograd goes through softmax, exp and sum_i lambda_i w_i, with torch's Adam, CosineAnnealingLR, SWALR and StepLR(20,
    0.5).

    60 epochs are 30 and 30: averages over epochs 6 to 29 and one halving in stage 2. 14 and 16 epochs average one and two, 2
    and 13 (6 and 6) none: then the last logits are used. The proxy set is one batch.
    """
    server_lr = 0.02
    task, cohort, loss = one_batch()
    models = cohort.models.flat
    one = torch.ones((), dtype=torch.float64)
    x = cohort.weights.log().requires_grad_()
    stage1 = Stage1(x, server_lr, 0.05)
    for epoch in range(server_epochs // 2):
        stage1.epoch(epoch, loss(one, x.softmax(0)))
    lambda_K = (torch.stack(stage1.seen).mean(0) if stage1.seen else x.detach()).softmax(0)
    x_gamma = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([x_gamma], lr=server_lr, betas=(0.5, 0.999))
    halving = StepLR(optimiser, 20, 0.5)
    for _ in range(server_epochs // 2):
        optimiser.zero_grad()
        loss(x_gamma.exp(), lambda_K).backward()
        optimiser.step()
        halving.step()
    expected = x_gamma.detach().exp() * (lambda_K @ models) - cohort.anchor.flat

    part, ctx = FedLawSwa(server_lr=server_lr, server_epochs=server_epochs), toy.server_context(task)
    torch.testing.assert_close(part(cohort, None, ctx)[0].flat, expected, rtol=0, atol=1e-9)
    assert ctx.notes["gamma"] == pytest.approx(float(x_gamma.detach().exp()), abs=1e-10)
    assert ctx.notes["lambda_max"] == pytest.approx(float(lambda_K.max()), abs=1e-10)
    assert abs(ctx.notes["gamma"] - 1) > 1e-3
    assert (lambda_K - cohort.weights).abs().max() > 1e-3


@pytest.mark.parametrize("server_epochs", [1, 6, 7, 30])
def test_law_with_swa_equals_torchs(server_epochs: int) -> None:
    """Stage 1 takes all epochs, gamma = 1. Up to 6 epochs average none, and the last logits are used."""
    task, cohort, loss = one_batch()
    x = cohort.weights.log().requires_grad_()
    reference = Stage1(x, 0.02, 0.05)
    for epoch in range(server_epochs):
        reference.epoch(epoch, loss(x.new_ones(()), x.softmax(0)))
    lambda_K = (torch.stack(reference.seen).mean(0) if reference.seen else x.detach()).softmax(0)
    part, ctx = LawSwa(server_lr=0.02, server_epochs=server_epochs), toy.server_context(task)
    update, _ = part(cohort, None, ctx)
    torch.testing.assert_close(update.flat, lambda_K @ cohort.updates.flat, rtol=0, atol=1e-9)
    torch.testing.assert_close(ctx.diagnostics["lambda"], lambda_K, rtol=0, atol=1e-9)
    assert (lambda_K - cohort.weights).abs().max() > 1e-3


def test_fedlaw_of_squares_equals_torchs() -> None:
    """Autograd goes through x_gamma^2 and x_i^2 / sum_j x_j^2 for 50 epochs, with torch's Adam and StepLR(20, 0.5)."""
    task, cohort, loss = one_batch()
    clients = len(cohort.clients)
    x = torch.tensor([*[clients**-0.5] * clients, 1.0], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([x], lr=0.02, betas=(0.5, 0.999))
    halving = StepLR(optimiser, 20, 0.5)
    for _ in range(50):
        optimiser.zero_grad()
        loss(x[-1] ** 2, x[:-1] ** 2 / (x[:-1] ** 2).sum()).backward()
        optimiser.step()
        halving.step()
    gamma, lambda_K = x.detach()[-1] ** 2, x.detach()[:-1] ** 2 / (x.detach()[:-1] ** 2).sum()
    part, ctx = FedLawQuad(server_lr=0.02, server_epochs=50), toy.server_context(task)
    update, _ = part(cohort, None, ctx)
    expected = gamma * (lambda_K @ cohort.models.flat) - cohort.anchor.flat
    torch.testing.assert_close(update.flat, expected, rtol=0, atol=1e-9)
    assert ctx.notes == pytest.approx({"gamma": float(gamma), "lambda_max": float(lambda_K.max())}, abs=1e-9)
    torch.testing.assert_close(ctx.diagnostics["lambda"], lambda_K, rtol=0, atol=1e-9)
    assert abs(float(gamma) - 1) > 1e-3
