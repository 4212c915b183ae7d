"""Rounds of Per-FedAvg and pFedMe by hand, on a loss that is quadratic in one weight: f(w; b) = (w - mean(b))^2 / 2.

Its gradient is w - mean(b) and its curvature 1. Client 0 has two samples of 2, client 1 one of -1; w starts at 1.
"""

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from fedrepro.engine.cohort import Clients
from fedrepro.engine.loop import train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.methods.compose import Method, compose
from fedrepro.methods.parts import PARTS
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext
from tests import toy

PLAIN = {"local_epochs": 1, "batch_size": 2, "client_momentum": 0.0, "weight_decay": 0.0, "client_lr_decay": 1.0}


def quadratic(text: str) -> Method:
    """The method with this loss."""

    def loss(self: Any, params: Tree, batch: Batch, ctx: ClientContext) -> Tensor:
        return (params["w"] - batch.x.mean((-4, -3, -2, -1))).square().sum() / 2

    method = compose(text)
    rule = type("OnQuadratic", (type(method.client),), {"loss": loss})
    return dataclasses.replace(method, client=rule(**PARTS.canonical(method.client).arguments))


def make_task(rounds: int, cohorts: tuple[tuple[int, ...], ...] = ((0,),), **changes: Any) -> Task:
    """A task with a held-out sample for each client, on which its own model is evaluated."""
    held_out = [torch.tensor([0]), torch.tensor([2])]
    return dataclasses.replace(toy.linear_task(rounds, cohorts, **PLAIN | changes), held_out=held_out)


def weights(text: str, rounds: int, cohorts: tuple[tuple[int, ...], ...] = ((0,),), **changes: Any) -> list[float]:
    """The global weight after each round."""
    tasks = [make_task(t, cohorts, **changes) for t in range(1, rounds + 1)]
    return [train(task, quadratic(text)).params.flat.item() for task in tasks]


@pytest.mark.parametrize("engine", ["sequential", "plain", "vectorised"])
def test_per_fedavg_by_hand(engine: str) -> None:
    """Client 0, rate 0.1, inner_lr 0.5. w' = 1 + 0.5 = 1.5, G = -0.5: w = 1.05. Hessian-free: G - 0.5 G = -0.25: w = 1.025."""
    task = make_task(1)
    for variant, expected in (("first_order", 1.05), ("hessian_free", 1.025)):
        method = quadratic(f"per_fedavg(inner_lr=0.5, variant={variant})")
        assert train(task, method, engine=engine).params.flat.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("variant", "samples"), [("first_order", 4), ("hessian_free", 6)])
def test_every_batch_of_a_step_counts_in_the_samples(variant: str, samples: int) -> None:
    """Client 0 has two samples, and one step reads them two or three times."""
    task, method = make_task(1), quadratic(f"per_fedavg(variant={variant})")
    assert SequentialEngine(task, method).run_cohort(toy.first_state(task, method), 0)[1] == samples


def test_the_hessian_free_form_is_the_gradient_through_the_inner_step() -> None:
    """On the toy network, with one batch for all three, it is the gradient of f(w - a grad f(w)) by autograd, up to the error
    of delta."""
    task = toy.make_task(batch_size=100, cohorts=((3,),), client_momentum=0.0, weight_decay=0.0, rounds=1, local_epochs=1)
    found = train(task, compose("per_fedavg(inner_lr=0.2, variant=hessian_free, delta=1e-4)")).params.flat
    rows = task.client_index[3]
    data, model = task.train.take(rows), task.model

    def loss(flat: Tensor) -> Tensor:
        return model.loss(model.forward(task.params.like(flat), task.buffers, data.x, True)[0], data.y)

    w = task.params.flat.clone().requires_grad_()
    (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
    (meta,) = torch.autograd.grad(loss(w - 0.2 * g), w)
    torch.testing.assert_close(found, (w - task.spec.client_lr_at(0) * meta).detach(), rtol=0, atol=1e-7)
    (first_order,) = torch.autograd.grad(loss(v := (w - 0.2 * g).detach().requires_grad_()), v)
    assert (found - (w - task.spec.client_lr_at(0) * first_order)).abs().max() > 1e-5


@pytest.mark.parametrize("engine", ["sequential", "plain", "vectorised"])
def test_pfedme_by_hand(engine: str) -> None:
    """Client 0 has two batches of one sample, both 2. lam 1, inner_lr 0.1, two steps per batch, rate 0.1.

    theta from 1 beside w = 1: 1.1, then 1.1 + 0.09 - 0.01 = 1.18; w = 1 + 0.1 * 0.18 = 1.018.
    theta beside that: 1.18 + 0.082 - 0.0162 = 1.2458, then + 0.07542 - 0.02278 = 1.29844; w = 1.018 + 0.028044 = 1.046044.
    """
    task = make_task(1, batch_size=1)
    found = train(task, quadratic("pfedme(lam=1, inner_lr=0.1, steps=2)"), engine=engine)
    assert found.params.flat.item() == pytest.approx(1.046044, abs=1e-12)


def test_theta_goes_on_in_the_next_round() -> None:
    """One step per batch, one batch: theta 1.1, w 1.01. Then theta = 1.1 + 0.09 - 0.009 = 1.181, w = 1.01 + 0.0171. From the
    received w, theta = 1.01 + 0.099 = 1.109, w = 1.01 + 0.0099."""
    text = "pfedme(lam=1, inner_lr=0.1, steps=1, start={})"
    assert weights(text.format("own"), 2) == pytest.approx([1.01, 1.0271], abs=1e-12)
    assert weights(text.format("received"), 2) == pytest.approx([1.01, 1.0199], abs=1e-12)


def test_a_client_that_comes_late_starts_at_the_global_model_of_its_round() -> None:
    """Client 1 trains first in round 1, where w = 1.01: theta = 1.01 - 0.1 * 2.01 = 0.809, w = 1.01 - 0.0201."""
    assert weights("pfedme(lam=1, inner_lr=0.1, steps=1)", 2, ((0,), (1,))) == pytest.approx([1.01, 0.9899], abs=1e-12)


def test_the_server_mixes_and_theta_may_decay() -> None:
    """beta = 2: w = 1 + 2 * 0.01. decay 0.5: theta = 1 + 0.1 - 0.05 = 1.05, w = 1.005."""
    assert weights("pfedme(lam=1, inner_lr=0.1, steps=1)+server_sgd(server_lr=2)", 1) == pytest.approx([1.02], abs=1e-12)
    assert weights("pfedme(lam=1, inner_lr=0.1, steps=1, decay=0.5)", 1) == pytest.approx([1.005], abs=1e-12)


def test_without_lam_the_global_model_stays() -> None:
    """Each client still descends alone, from round to round."""
    task = toy.make_task()
    engine = SequentialEngine(task, method := compose("pfedme(lam=0)"))
    state = method.init(task.params, task.buffers)
    engine.run_cohort(state, 0)
    first = engine.client_states[3]["theta"].flat.clone()
    engine.run_cohort(state, 1)
    assert torch.equal(train(task, method).params.flat, task.params.flat)
    assert not torch.equal(engine.client_states[3]["theta"].flat, first)


def test_own_models() -> None:
    """All start from 1, with three batches. Per-FedAvg takes one step of inner_lr on the first: client 0 reaches 1.5; adapt =
    2: 1.75. pFedMe takes two steps theta <- 0.8 theta + 0.3 on each: 1.5 - 0.5 * 0.8^6. The global w and the client's theta
    stay."""
    task = make_task(1)
    for text, expected in (
        ("per_fedavg(inner_lr=0.5)", 1.5),
        ("per_fedavg(inner_lr=0.5, adapt=2)", 1.75),
        ("pfedme(lam=1, inner_lr=0.1, steps=2)", 1.368928),
    ):
        method = quadratic(text)
        clients, state = Clients(task, method), method.init(task.params, task.buffers)
        ctx = clients.context(0, state, 0, None, 1, 1)  # type: ignore[arg-type]
        ctx = dataclasses.replace(ctx, network=toy.server_context(task).network)
        batch = task.train.take(task.client_index[0])
        assert method.client.personalise([batch] * 3, ctx).flat.item() == pytest.approx(expected)
        assert not clients.client_states
