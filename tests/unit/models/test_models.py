"""Architectures against torch.nn modules built here from the papers' descriptions."""

import pytest
import torch
from torch import nn

from fedrepro.errors import UserError
from fedrepro.models import build, initial
from fedrepro.models.names import MODELS
from fedrepro.tree import Tree

# FedLAW: MLP 784-200-200-10; "LeNet" conv 16 and 32, k5 pad 2, each with ReLU and 2x2 pooling, then linear 1568-10.
REFERENCES = {
    "mlp": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10)
    ),
    "lenet": lambda: nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1568, 10),
    ),
}
# 784*200 + 200 + 200*200 + 200 + 200*10 + 10; and (25 + 1)*16 + (16*25 + 1)*32 + 1568*10 + 10 = 416 + 12,832 + 15,690.
PARAMETERS = {"mlp": 199_210, "lenet": 28_938}


def test_every_model_has_a_reference_here() -> None:
    """A new architecture adds its line."""
    assert set(MODELS) == set(REFERENCES) == set(PARAMETERS)


@pytest.mark.parametrize("name", MODELS)
def test_parameter_count(name: str) -> None:
    """As published, at the native input and ten classes."""
    assert build(name, MODELS[name], 10).parameters == PARAMETERS[name]


@pytest.mark.parametrize("name", MODELS)
def test_forward_and_gradient_equal_the_module(name: str) -> None:
    """Same weights, same images: logits and gradients of torch.nn, in float64, in both modes; the buffers come back."""
    model, module = build(name, MODELS[name], 10), REFERENCES[name]().double()
    drawn = initial.draw(model, 8)
    flat = drawn.flat.double().requires_grad_()
    params = Tree(model.layout, flat)
    for parameter, (_, value) in zip(module.parameters(), params.items(), strict=True):
        assert parameter.shape == value.shape
        parameter.data.copy_(value.detach())
    x = torch.randn(5, *MODELS[name], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    buffers = Tree(model.buffer_layout, torch.zeros(0, dtype=torch.float64))
    for train in (True, False):
        logits, after = model.forward(params, buffers, x, train)
        torch.testing.assert_close(logits, module(x), rtol=0, atol=1e-12)
        assert after is buffers
    expected = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
    (found,) = torch.autograd.grad(logits.square().sum(), flat)
    torch.testing.assert_close(found, torch.cat([g.flatten() for g in expected]), rtol=1e-9, atol=1e-9)


def test_unknown_model() -> None:
    """One line with the nearest name."""
    with pytest.raises(UserError, match="unknown model 'lennet'; did you mean 'lenet'"):
        build("lennet", (1, 28, 28), 10)
