"""AlexNet of FedIMA for PACS; 12,438,599 parameters at 7 classes.

Krizhevsky, https://arxiv.org/abs/1404.5997, in torchvision's form: conv 64 k11 stride 4 padding 2, 192 k5 padding 2, and 384,
256, 256 k3 padding 1; 3x3 maxima with stride 2 after the first, second and fifth. GroupNorm of 32 groups and ReLU after each
convolution. A mean over 6 x 6 windows, which changes nothing at the paper's 224 x 224; linear 9216-1024, ReLU; linear 1024-512,
ReLU, the feature; linear 512-classes. No dropout. Widths are those of the authors' code: the paper's table prints 4096-512-10
by mistake, and 512 feature values.
"""

import torch
from torch import Tensor

from fedrepro.models import ops
from fedrepro.models.group_norm import GroupNorms
from fedrepro.tree import Tree

# (channels, filter, stride, padding, pooled?)
_LAYERS = (
    (64, 11, 4, 2, True),
    (192, 5, 1, 2, True),
    (384, 3, 1, 1, False),
    (256, 3, 1, 1, False),
    (256, 3, 1, 1, True),
)
_GROUPS, _PLACES = 32, 6


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order. They do not depend on the image's size."""
    channels = input_shape[0]
    param_shapes: dict[str, tuple[int, ...]] = {}
    for layer, (width, size, *_) in enumerate(_LAYERS, 1):
        param_shapes |= {f"conv{layer}.weight": (width, channels, size, size), f"conv{layer}.bias": (width,)}
        param_shapes |= {f"norm{layer}.weight": (width,), f"norm{layer}.bias": (width,)}
        channels = width
    for layer, (inputs, outputs) in enumerate(((channels * _PLACES**2, 1024), (1024, 512), (512, classes)), 1):
        param_shapes |= {f"fc{layer}.weight": (outputs, inputs), f"fc{layer}.bias": (outputs,)}
    return param_shapes


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, 512], for images x [..., B, C, H, W]; no buffers."""
    norm = GroupNorms(params, buffers, _GROUPS)
    for layer, (_, _, stride, padding, pooled) in enumerate(_LAYERS, 1):
        weight, bias = params[f"conv{layer}.weight"], params[f"conv{layer}.bias"]
        x = norm(f"norm{layer}", ops.conv2d(x, weight, bias, stride=stride, padding=padding))
        x = (ops.max_pool2d(x, 3, stride=2) if pooled else x).relu_()
    h = ops.flatten(_windows(_windows(x, -2), -1))
    h = ops.linear_relu(h, params["fc1.weight"], params["fc1.bias"])
    return ops.linear_relu(h, params["fc2.weight"], params["fc2.bias"]), norm.after()


def head(params: Tree, h: Tensor) -> Tensor:
    """Logits [..., B, classes] of features [..., B, 512]."""
    return ops.linear(h, params["fc3.weight"], params["fc3.bias"])


def _windows(x: Tensor, axis: int) -> Tensor:
    """Means over six windows of an axis that cover it, like torch's adaptive_avg_pool2d, whose gradient on a GPU is not
    deterministic."""
    places = x.shape[axis]
    if places == _PLACES:
        return x
    edges = [(i * places // _PLACES, -(-(i + 1) * places // _PLACES)) for i in range(_PLACES)]
    return torch.stack([x.narrow(axis, start, end - start).mean(axis) for start, end in edges], axis)
