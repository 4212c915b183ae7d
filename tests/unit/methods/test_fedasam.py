"""FedASAM's two gradients by hand, and compared with a plain loop of autograd and torch's SGD."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from fedrepro.engine.loop import train, train_together
from fedrepro.engine.task import Task
from fedrepro.methods.client.fedasam import FedAsam
from fedrepro.methods.compose import Method, compose
from fedrepro.models import Model
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, ClientContext
from tests import toy
from tests.contract.test_engines import assert_close, real_task

ENGINES = pytest.mark.parametrize("engine", ["sequential", "plain", "vectorised"])
PLAIN = {"local_epochs": 1, "batch_size": 2, "client_momentum": 0.0, "weight_decay": 0.0, "client_lr_decay": 1.0}
TWO = Layout.of({"fc.weight": (1,), "fc.bias": (1,)})


class OnTwo(FedAsam):
    """Loss (w - 3)^2 / 2 + 3 b^2 / 2 for every batch."""

    def loss(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tensor:
        return ((params["fc.weight"] - 3).square() / 2 + 1.5 * params["fc.bias"].square()).sum()


def on_two(**arguments: float) -> tuple[Task, Method]:
    """One step of client 0 from w = b = 1."""

    def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
        h = params["fc.weight"] * x.flatten(1) + params["fc.bias"]
        return torch.cat([h, 0 * h], 1), buffers

    model = Model("two", (1, 1, 1), 2, TWO, Layout.of({}), forward)
    params = Tree(TWO, torch.ones(2, dtype=torch.float64))
    task = dataclasses.replace(toy.linear_task(1, ((0,),), **PLAIN), model=model, params=params)
    return task, dataclasses.replace(compose("fedavg"), client=OnTwo(**arguments))


@ENGINES
def test_a_step_by_hand(engine: str) -> None:
    """At (1, 1) g = (-2, 3). With eta 1 T = (2, 1), T g = (-4, 3) of norm 5, T^2 g = (-8, 3); with rho 0.5 eps = (-0.8, 0.3).
    At (0.2, 1.3) the gradient is (-2.8, 3.9), and a step of 0.1 from (1, 1) ends at (1.28, 0.61)."""
    task, method = on_two(rho=0.5, eta=1.0)
    assert train(task, method, engine=engine).params.flat.tolist() == pytest.approx([1.28, 0.61], abs=1e-12)


@ENGINES
def test_a_weight_of_zero_moves_by_eta_alone(engine: str) -> None:
    """At (0, 0) g = (-3, 0). With eta 0, T g is 0, so there is no ascent: g = (-3, 0) again, w = 0.3. With eta 0.5 T g = (-1.5,
    0), eps = 0.2 * 0.25 * -3 / 1.5 = -0.1, and the gradient is -3.1: w = 0.31."""
    for eta, expected in ((0.0, 0.3), (0.5, 0.31)):
        task, method = on_two(rho=0.2, eta=eta)
        task = dataclasses.replace(task, params=task.params.like(torch.zeros(2, dtype=torch.float64)))
        assert train(task, method, engine=engine).params.flat.tolist() == pytest.approx([expected, 0.0], abs=1e-12)


@pytest.mark.parametrize("text", ["fedasam", "fedasam(rho=0.2, eta=0.05)"])
def test_a_plain_loop_with_autograd(text: str) -> None:
    """Two rounds of client 3 in float64 agree to 1e-12 with a loop over named tensors and torch's SGD with momentum 0.5 and
    decay 1e-3."""
    seen: list[list[Batch]] = []

    class Spy(FedAsam):
        def begin(self, ctx: ClientContext) -> dict[str, Tree]:
            seen.append([])
            return {}

        def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
            seen[-1].append(batch)
            return super().direction(params, batch, ctx)

    method = compose(text)
    task = toy.make_task(rounds=2, cohorts=((3,),))
    rule: Any = method.client
    found = train(task, dataclasses.replace(method, client=Spy(rule.rho, rule.eta)))
    weights = {name: one.clone().requires_grad_() for name, one in task.params.items()}

    def backward(batch: Batch) -> None:
        for w in weights.values():
            w.grad = None
        h = torch.relu(batch.x.flatten(1) @ weights["fc1.weight"].T + weights["fc1.bias"])
        torch.nn.functional.cross_entropy(h @ weights["fc2.weight"].T + weights["fc2.bias"], batch.y).backward()

    for round, batches in enumerate(seen):
        solver = torch.optim.SGD(weights.values(), lr=0.1 * 0.9**round, momentum=0.5, weight_decay=1e-3)
        for batch in batches:
            backward(batch)
            climb, length = {}, 0.0
            for name, w in weights.items():
                assert w.grad is not None
                scale = w.detach().abs() + rule.eta if name.endswith("weight") else torch.ones_like(w)
                length += float((scale * w.grad).square().sum())
                climb[name] = scale * scale * w.grad
            with torch.no_grad():
                before = {name: w.clone() for name, w in weights.items()}
                for name, w in weights.items():
                    w += rule.rho * climb[name] / (length**0.5 + 1e-16)
            backward(batch)
            with torch.no_grad():
                for name, w in weights.items():
                    w.copy_(before[name])
            solver.step()
    assert [len(batches) for batches in seen] == [8, 8]
    expected = torch.cat([w.detach().flatten() for w in weights.values()])
    torch.testing.assert_close(found.params.flat, expected, rtol=0, atol=1e-12)


def test_statistics_move_once_a_batch() -> None:
    """Only the pass at w moves them. After one step of each client they are FedAvg's to the bit, and the weights are not."""
    task = toy.make_task(model=toy.norm_model(), rounds=1, local_epochs=1, batch_size=50)
    asam, fedavg = (train(task, compose(text)) for text in ("fedasam", "fedavg"))
    assert torch.equal(asam.buffers.flat, fedavg.buffers.flat)
    assert not torch.equal(asam.params.flat, fedavg.params.flat)


def test_engines_agree_on_dropout_masks() -> None:
    """The two passes of a step have different masks. Alone and stacked the results agree in float64 to 1e-10."""
    task = real_task("fedgh_cnn", 8, torch.float64)
    found = dict(train_together([task], compose("fedasam")))[0]
    assert_close(found, train(task, compose("fedasam")), 1e-10)
    assert not torch.equal(found.params.flat, train(task, compose("fedavg")).params.flat)
