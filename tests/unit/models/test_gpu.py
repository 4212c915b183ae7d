"""The kernels for stacked convolutions, compared with torch in float64: in Triton's interpreter, or on a GPU by `make
test-gpu`."""

import os
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from fedrepro.models import gpu, ops

DEVICE = "cpu" if os.environ["TRITON_INTERPRET"] == "1" else "cuda"


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(DEVICE).requires_grad_()


def assert_alike(ours: Callable[..., Tensor], plain: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Compares values and gradients to rounding in float32. TensorFloat-32 would differ by 8e-4."""
    doubles = [one.detach().cpu().double().requires_grad_() for one in inputs]
    found, expected = ours(*inputs), plain(*doubles)
    g = torch.randn(expected.shape, generator=torch.Generator().manual_seed(0))
    gradients = torch.autograd.grad(found, inputs, g.to(DEVICE)), torch.autograd.grad(expected, doubles, g.double())
    for one, other in [(found, expected), *zip(*gradients, strict=True)]:
        assert (one.cpu() - other).norm() <= 1e-6 * other.norm()


# Clients, batch, channels, side, output channels, size, padding: LeNet's layers on small images; an odd side, of which pooling
# drops a row; more output channels than a block has, and a number of terms that 16 does not divide.
SHAPES = [(2, 3, 1, 8, 16, 5, 2), (2, 3, 16, 6, 32, 5, 2), (3, 2, 3, 9, 20, 3, 0), (2, 2, 17, 7, 70, 3, 1)]


@pytest.mark.parametrize(("clients", "batch", "channels", "side", "out", "size", "padding"), SHAPES)
def test_values_and_gradients(clients: int, batch: int, channels: int, side: int, out: int, size: int, padding: int) -> None:
    """Values and gradients of a convolution, and of one with pooling and ReLU."""
    x, bias = draw(clients, batch, channels, side, side), draw(clients, out)
    weight = draw(clients, out, channels, size, size)
    assert_alike(partial(gpu.conv2d, padding=padding), partial(ops.conv2d, padding=padding), x, weight)

    def whole(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return gpu.pool_relu(gpu.conv2d(x, weight, padding), bias)

    assert_alike(whole, partial(ops.conv_pool_relu, size=2, padding=padding), x, weight, bias)


def test_a_weights_gradient_is_added_up_in_parts() -> None:
    """One client has many places, so several programs share the sum. Only the shapes decide its order."""
    x, weight = draw(1, 16, 1, 12, 12), draw(1, 4, 1, 3, 3)
    assert_alike(partial(gpu.conv2d, padding=1), partial(ops.conv2d, padding=1), x, weight)


def test_the_first_of_equal_maxima_and_what_is_no_number() -> None:
    """As in torch's pooling and ReLU, the gradient goes to the first maximum. It also passes through a NaN, so a diverged
    training is noticed."""
    y = torch.tensor([[1.0, 1.0, float("nan"), 2.0], [1.0, 0.0, 5.0, 0.0]]).reshape(1, 1, 1, 2, 4).to(DEVICE).requires_grad_()
    found = gpu.pool_relu(y, torch.zeros(1, 1, device=DEVICE))
    assert found.flatten()[0] == 1
    assert found.flatten()[1].isnan()
    (g,) = torch.autograd.grad(found.sum(), y)
    assert g.flatten().tolist() == [1, 0, 1, 0, 0, 0, 0, 0]


def test_they_are_for_stacked_float32_on_a_gpu() -> None:
    """The kernels refuse CPU tensors and the cases that they do not support: one client, float64, filters that are not
    square."""
    x, weight = draw(2, 1, 1, 4, 4), draw(2, 1, 1, 3, 3)
    assert gpu.takes(x, weight) == (DEVICE == "cuda")
    assert not any(gpu.takes(*pair) for pair in [(x[0], weight[0]), (x.double(), weight.double()), (x, weight[..., :2])])
