"""BatchNorm with channels last, compared with float64: values, statistics and gradients are as exact as float32 allows."""

import pytest
import torch
from torch import Tensor

from fedrepro.models import ops


def normalised(x: Tensor, weight: Tensor, bias: Tensor, upstream: Tensor) -> dict[str, Tensor]:
    """One training pass from statistics (0, 1), with the gradients for `upstream`."""
    leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
    zero = torch.zeros_like(weight)
    y, mean, var = ops.batch_norm(*leaves, zero, zero + 1, True)
    assert y.requires_grad
    assert not mean.requires_grad | var.requires_grad
    grads = torch.autograd.grad((y * upstream).sum(), leaves)
    return dict(zip(("y", "mean", "var", "to_x", "to_weight", "to_bias"), (y.detach(), mean, var, *grads), strict=True))


@pytest.mark.parametrize("shape", [(128, 16, 32, 32), (64, 64, 8, 8)])
def test_against_float64(shape: tuple[int, ...]) -> None:
    """torch's kernel for channels last has an error 100 times as large in the statistics of the first shape."""
    generator = torch.Generator().manual_seed(0)
    x, upstream = (torch.randn(shape, generator=generator) + shift for shift in (3.0, 0.0))
    weight, bias = (torch.randn(shape[1], generator=generator) for _ in range(2))
    exact = normalised(*(t.double() for t in (x, weight, bias, upstream)))
    last = (t.contiguous(memory_format=torch.channels_last) for t in (x, upstream))
    x, upstream = last
    found = normalised(x, weight, bias, upstream)
    limits = {"y": 1e-6, "mean": 1e-6, "var": 1e-6, "to_x": 1e-6, "to_weight": 3e-5, "to_bias": 3e-5}
    off = {key: float((found[key].double() - exact[key]).norm() / exact[key].norm()) for key in exact}
    assert {key: value for key, value in off.items() if value > limits[key]} == {}
    assert found["y"].is_contiguous(memory_format=torch.channels_last)
