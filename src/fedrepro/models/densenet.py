"""DenseNets with bottlenecks. Huang, Liu, van der Maaten, Weinberger, CVPR 2017, https://arxiv.org/abs/1608.06993.

The form for 32x32 images: conv k3 with twice `growth` channels; dense blocks, with a transition between two of them (norm,
ReLU, conv 1x1 to half the channels, 2x2 means); norm, ReLU, average over all places, linear. A layer of a block is norm, ReLU,
conv 1x1 to four times `growth` channels, norm, ReLU, conv k3 to `growth`, and its output is joined to its input. Norms are
BatchNorm, no convolution has a bias. Blocks of 6, 12, 24 and 16 layers with a growth of 32 are DenseNet-121: 6,956,298
parameters at 10 classes. FedLAW, appendix D.3, follows Li et al. (2018) without a description; this is the form of its
authors' code. The original's first layers are for 224x224.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fedrepro.models import ops
from fedrepro.models.batch_norm import BatchNorms
from fedrepro.tree import Tree

_BOTTLENECK = 4  # times the growth


def shapes(
    input_shape: tuple[int, int, int], classes: int, blocks: tuple[int, ...], growth: int = 32
) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order. `blocks`: layers of each dense block. Transitions must be able to halve the sides."""
    param_shapes: dict[str, tuple[int, ...]] = {"conv.weight": (2 * growth, input_shape[0], 3, 3)}
    for norm, width, conv, (out, size) in _layers(blocks, growth):
        param_shapes |= {f"{norm}.weight": (width,), f"{norm}.bias": (width,)}
        if conv:
            param_shapes[f"{conv}.weight"] = (out, width, size, size)
    return param_shapes | {"fc.weight": (classes, param_shapes["bn.weight"][0]), "fc.bias": (classes,)}


def buffer_shapes(blocks: tuple[int, ...], growth: int = 32) -> dict[str, tuple[int, ...]]:
    """Shapes of the running statistics, in the order of the forward pass."""
    norms = [(norm, width) for norm, width, *_ in _layers(blocks, growth)]
    return {f"{norm}.{kind}": (width,) for norm, width in norms for kind in ("running_mean", "running_var")}


def features(
    params: Tree,
    buffers: Tree,
    x: Tensor,
    train: bool,
    blocks: tuple[int, ...],
    growth: int = 32,
    valid: Tensor | None = None,
) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, F], for images x [..., B, C, H, W], and the running statistics after this pass.

    `valid` [K]: how many of each client's samples are real. The rest is padding behind them.
    """
    norms = BatchNorms(params, buffers, train, valid)

    def norm_conv(h: Tensor, norm: str, conv: str, padding: int = 0) -> Tensor:
        return ops.conv2d(norms(norm, h).relu_(), params[f"{conv}.weight"], padding=padding)

    h = ops.conv2d(x, params["conv.weight"], padding=1)
    for block, layers in enumerate(blocks, 1):
        for layer in range(1, layers + 1):
            name = f"block{block}.layer{layer}"
            bottleneck = norm_conv(h, f"{name}.bn1", f"{name}.conv1")
            h = torch.cat([h, norm_conv(bottleneck, f"{name}.bn2", f"{name}.conv2", padding=1)], dim=-3)
        if block < len(blocks):
            h = _halved(norm_conv(h, f"transition{block}.bn", f"transition{block}.conv"))
    return norms("bn", h).relu_().mean((-2, -1)), norms.after()


def head(params: Tree, h: Tensor, **_: Any) -> Tensor:
    """Logits [..., B, classes] of features [..., B, F]."""
    return ops.linear(h, params["fc.weight"], params["fc.bias"])


def _halved(x: Tensor) -> Tensor:
    """Means over 2x2 windows; a last row or column without a partner is left out."""
    means = F.avg_pool2d(x.flatten(0, -4), 2)
    return means.unflatten(0, x.shape[:-3])


def _layers(blocks: tuple[int, ...], growth: int) -> Iterator[tuple[str, int, str, tuple[int, int]]]:
    """(norm, its channels, the convolution after it, (channels out, kernel size)), in the order of the forward pass. The last
    norm has no convolution after it."""
    width = 2 * growth
    for block, layers in enumerate(blocks, 1):
        for layer in range(1, layers + 1):
            name = f"block{block}.layer{layer}"
            yield f"{name}.bn1", width, f"{name}.conv1", (_BOTTLENECK * growth, 1)
            yield f"{name}.bn2", _BOTTLENECK * growth, f"{name}.conv2", (growth, 3)
            width += growth
        if block < len(blocks):
            yield f"transition{block}.bn", width, f"transition{block}.conv", (width // 2, 1)
            width //= 2
    yield "bn", width, "", (0, 0)
