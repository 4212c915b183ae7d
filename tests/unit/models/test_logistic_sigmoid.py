"""Logistic regression with a sigmoid: the formula, its gradients, and its sensitivities for elastic aggregation."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.engine.client_side import probes
from fedrepro.engine.cohort import Clients
from fedrepro.engine.task import Task
from fedrepro.methods.compose import compose
from fedrepro.models import build
from fedrepro.tree import Tree
from tests import toy


def task() -> Task:
    """The toy task, in batches that hold all samples of a client."""
    return toy.make_task(model=build("logistic_sigmoid", (1, 4, 4), toy.CLASSES), batch_size=100)


def written_out(w: Tensor, b: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The linear outputs z and 1 / (1 + exp(-z))."""
    z = x.flatten(1) @ w.T + b
    return z, 1 / (1 + torch.exp(-z))


def test_the_formula() -> None:
    """Features are z and outputs 1 / (1 + exp(-z)). The loss is the cross-entropy of the softmax of the outputs."""
    made = task()
    x, y = made.train.x[:6], made.train.y[:6]
    z, s = written_out(made.params["fc1.weight"], made.params["fc1.bias"], x)
    assert made.model.features is not None
    torch.testing.assert_close(made.model.features(made.params, made.buffers, x, True)[0], z, rtol=1e-12, atol=1e-14)
    outputs, buffers = made.model.forward(made.params, made.buffers, x, True)
    torch.testing.assert_close(outputs, s, rtol=1e-12, atol=0)
    assert buffers is made.buffers
    loss = -(s.exp() / s.exp().sum(1, keepdim=True)).log()[torch.arange(6), y].mean()
    torch.testing.assert_close(made.model.loss(outputs, y), loss, rtol=1e-12, atol=0)


@pytest.mark.parametrize("closed", [True, False], ids=["by hand", "autograd"])
@pytest.mark.parametrize("of", ["features", "logits", "probabilities"])
def test_sensitivities(of: str, closed: bool) -> None:
    """|d mean ||F||^2 / dw| is right for F = z, the sigmoids, or their softmax, in float64, with and without the closed
    form."""
    made = task()
    if not closed:
        made = replace(made, model=replace(made.model, squared_gradient=None))
    method = compose(f"fedavg+elastic(of={of})")
    state = method.init(made.params, made.buffers)
    clients = Clients(made, method)
    found = probes(clients, 0, clients.context(0, state, 0, None, 1, 1), state)["elastic"].flat  # type: ignore[arg-type]
    x = made.train.x[made.held_out[0]]
    assert len(x)
    w, b = (made.params[name].clone().requires_grad_() for name in ("fc1.weight", "fc1.bias"))
    z, s = written_out(w, b, x)
    outputs = {"features": z, "logits": s, "probabilities": s.softmax(1)}[of]
    expected = torch.cat([g.flatten() for g in torch.autograd.grad((outputs**2).sum() / len(x), (w, b))])
    assert expected.any()
    torch.testing.assert_close(found, 0.05 * expected.abs(), rtol=1e-10, atol=1e-15)


def test_the_closed_form_of_the_squared_outputs() -> None:
    """It equals autograd in float64, and no argument is modified."""
    made = task()
    x, kept = made.train.x[:7], made.params.flat.clone()

    def squared(p: Tree) -> Tensor:
        return made.model.forward(p, made.buffers, x, False)[0].square().sum(1).mean()

    assert made.model.squared_gradient is not None
    found = made.model.squared_gradient(made.params, x).flat
    torch.testing.assert_close(found, tree.gradient(squared, made.params).flat, rtol=1e-11, atol=1e-14)
    assert torch.equal(made.params.flat, kept)
