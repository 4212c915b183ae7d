"""Convolutions of stacked clients on a GPU, [K, B, C, H, W] by [K, out, C, k, k], in one launch for all clients.

cuDNN computes them as one convolution with a group for each client, at 2 to 15 TFLOP/s forward and backward on an H200. For the
second layer of LeNet and 20 clients its result differs from other forms by 2e-3 of the norm, although float32 is set. Here a
convolution is a matrix product that reads its left factor from the images as it goes (Triton). A product consists of three of
TensorFloat-32, of the factors' leading and remaining bits, and differs from float64 by 2e-7 of the norm. Sums have a fixed
order: a run has the same bits twice. Measured on one H200, see docs/performance.md.
"""

from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from fedrepro.console import say


def takes(x: Tensor, weight: Tensor) -> bool:
    """Whether these kernels can use `weight`: square, of stacked clients, float32 without autocast, on a GPU where they work.

    They have no second derivatives.
    """
    if weight.dim() != 5 or not weight.is_cuda or weight.shape[-1] != weight.shape[-2]:
        return False
    return x.dtype is weight.dtype is torch.float32 and not torch.is_autocast_enabled("cuda") and _kernels_work(weight.device)


def form() -> str:
    """The form of convolutions of stacked clients on the GPU of this process, for the record of a run."""
    return f"triton {version('triton')}" if _kernels_work(torch.device("cuda", torch.cuda.current_device())) else "grouped"


@cache
def _kernels_work(device: torch.device) -> bool:
    """Whether the kernels work on this device. Tried once, with the largest blocks.

    TensorFloat-32 needs compute capability 8.0, and Triton needs a C compiler and Python's headers.
    """
    if torch.version.hip or find_spec("triton") is None or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    try:
        x, weight = torch.zeros(1, 1, 64, 4, 4, device=device), torch.zeros(1, 64, 64, 3, 3, device=device)
        _kernels().weight_gradient(x, _kernels().correlate(x, weight), 3)
    except Exception as error:  # from a compiler, from the system, or of Triton's own kinds
        cause = " ".join(str(error).split())[:200]
        say(
            f"convolutions of clients side by side take cuDNN's form, which is slower, since Triton does not work here: {cause}"
        )
        return False
    return True


def conv2d(x: Tensor, weight: Tensor, padding: int) -> Tensor:
    """Cross-correlation with stride 1. x [K, B, C, H, W], weight [K, out, C, k, k] -> [K, B, out, H', W']."""
    return _Convolution.apply(x, weight, padding)  # type: ignore[return-value]


def pool_relu(y: Tensor, bias: Tensor) -> Tensor:
    """max(0, maximum over 2 x 2 windows side by side + bias). y [K, B, C, H, W], bias [K, C]."""
    return _PoolRelu.apply(y, bias)  # type: ignore[return-value]


def _kernels() -> Any:
    from fedrepro.models import gpu_kernels  # imports Triton: half a second

    return gpu_kernels


class _Convolution(torch.autograd.Function):
    """Both gradients are products of the same kind: for x from g and the turned weights, for the weights from x and g."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, padding: int) -> Tensor:
        padded_x, weight = _padded(x, padding), weight.contiguous()
        ctx.save_for_backward(padded_x, weight)
        ctx.padding = padding
        return _kernels().correlate(padded_x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):  # type: ignore[override]
        (padded_x, weight), size = ctx.saved_tensors, ctx.saved_tensors[1].shape[-1]
        grad_x, grad_weight = None, None
        if ctx.needs_input_grad[0]:
            turned_weight = weight.flip(-1, -2).transpose(1, 2).contiguous()
            grad_x = _kernels().correlate(_padded(g, size - 1 - ctx.padding), turned_weight)
        if ctx.needs_input_grad[1]:
            grad_weight = _kernels().weight_gradient(padded_x, g.contiguous(), size)
        return grad_x, grad_weight, None


class _PoolRelu(torch.autograd.Function):
    """A byte for each window stores which of its four values was the first of the largest."""

    @staticmethod
    def forward(ctx, y: Tensor, bias: Tensor) -> Tensor:
        outputs, place = _kernels().pool_relu(y.contiguous(), bias.contiguous())
        ctx.save_for_backward(outputs, place)
        ctx.shape = y.shape
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):  # type: ignore[override]
        outputs, place = ctx.saved_tensors
        g = torch.where(outputs <= 0, 0, g).contiguous()
        return _kernels().unpool(g, place, ctx.shape), g.sum((1, 3, 4))


def _padded(x: Tensor, padding: int) -> Tensor:
    return (F.pad(x, [padding] * 4) if padding else x).contiguous()
