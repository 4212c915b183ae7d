"""The kernels for stacked convolutions, by Triton's interpreter on the CPU, against torch's own."""

import os
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from fedrepro.models import gpu, ops

pytestmark = [
    pytest.mark.skipif(find_spec("triton") is None, reason="torch has no Triton here"),
    pytest.mark.skipif("TRITON_INTERPRET" not in os.environ, reason="Triton has a GPU to run on, see tests/gpu"),
]


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


def plain(x: Tensor, weight: Tensor, bias: Tensor, padding: int) -> Tensor:
    """As `ops.conv_pool_relu` has it on a CPU."""
    return ops.conv_pool_relu(x, weight, bias, 2, padding=padding)


def assert_alike(found: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    """Values and gradients, to rounding in float32."""
    g = torch.randn(expected.shape, generator=torch.Generator().manual_seed(0))
    each = zip(torch.autograd.grad(found, inputs, g), torch.autograd.grad(expected, inputs, g), strict=True)
    for one, other in [(found, expected), *each]:
        assert (one - other).norm() <= 1e-6 * other.norm()


# Clients, batch, channels, side, channels of output, size, padding: LeNet's layers on small images; an odd side, of which
# pooling leaves a row out; more channels of output than a block has, and terms in a number that 16 does not divide.
SHAPES = [(2, 3, 1, 8, 16, 5, 2), (2, 3, 16, 6, 32, 5, 2), (3, 2, 3, 9, 20, 3, 0), (2, 2, 17, 7, 70, 3, 1)]


@pytest.mark.parametrize(("clients", "batch", "channels", "side", "out", "size", "padding"), SHAPES)
def test_values_and_gradients(clients: int, batch: int, channels: int, side: int, out: int, size: int, padding: int) -> None:
    """Of a convolution, and of one with pooling and ReLU."""
    x, bias = draw(clients, batch, channels, side, side), draw(clients, out)
    weight = draw(clients, out, channels, size, size)
    assert_alike(gpu.conv2d(x, weight, padding), ops.conv2d(x, weight, padding=padding), [x, weight])
    whole = gpu.pool_relu(gpu.conv2d(x, weight, padding), bias)
    assert_alike(whole, plain(x, weight, bias, padding), [x, weight, bias])


def test_a_weights_gradient_is_added_up_in_parts() -> None:
    """One client with many places: several programs share the sum out, in an order that shapes alone settle."""
    x, weight = draw(1, 16, 1, 12, 12), draw(1, 4, 1, 3, 3)
    assert_alike(gpu.conv2d(x, weight, 1), ops.conv2d(x, weight, padding=1), [x, weight])


def test_the_first_of_equal_maxima_and_what_is_no_number() -> None:
    """As torch's pooling: the gradient goes to the first; a NaN stays one, so that a diverged training is seen."""
    y = torch.tensor([[1.0, 1.0, float("nan"), 2.0], [1.0, 0.0, 5.0, 0.0]]).reshape(1, 1, 1, 2, 4).requires_grad_()
    found = gpu.pool_relu(y, torch.zeros(1, 1))
    assert found.flatten()[0] == 1
    assert found.flatten()[1].isnan()
    (g,) = torch.autograd.grad(found[..., 0].sum(), y)
    assert g.flatten().tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_they_are_for_stacked_float32_on_a_gpu() -> None:
    """Nothing of a CPU's is changed by them."""
    x, weight = draw(2, 1, 1, 4, 4), draw(2, 1, 1, 3, 3)
    assert not gpu.takes(x, weight)
