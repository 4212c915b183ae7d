"""ResNet-18 of FedIMA; 11,235,786 parameters at 10 classes and 11,247,396 at 100.

`fedrepro.models.resnet` with a 3x3 stem without a maximum after it, widths 64 to 512, two blocks per stage, GroupNorm of two
groups. After the average a linear layer makes the feature, 512-128 without ReLU; linear 128-classes. As in the authors' code.
"""

from typing import Any

from torch import Tensor

from fedrepro.models import ops, resnet
from fedrepro.tree import Tree

_BODY: dict[str, Any] = {"blocks": 2, "widths": (64, 128, 256, 512), "groups": 2}
_FEATURES = 128


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order. `fc` makes the feature. Any height and width is allowed."""
    return resnet.shapes(input_shape, _FEATURES, **_BODY) | {"head.weight": (classes, _FEATURES), "head.bias": (classes,)}


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, 128], for images x [..., B, C, H, W]; no buffers."""
    h, buffers = resnet.features(params, buffers, x, train, **_BODY)
    return resnet.head(params, h), buffers


def head(params: Tree, h: Tensor) -> Tensor:
    """Logits [..., B, classes] of features [..., B, 128]."""
    return ops.linear(h, params["head.weight"], params["head.bias"])
