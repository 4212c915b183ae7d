"""AlexNet for 32x32 images, as widely used for CIFAR; 2,472,266 parameters at 10 classes.

Krizhevsky, https://arxiv.org/abs/1404.5997, with wider margins at the start and one linear layer: conv 64 k11 stride 4 padding
5, pool 2; conv 192 k5 padding 2, pool 2; conv 384, 256, 256 k3 padding 1, pool 2; linear 256-classes. ReLU behind each
convolution, no norms, no dropout. FedLAW's Tables 1 and 9 name an AlexNet without its layers, and its authors' code has none:
this form is our choice.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.tree import Tree

# (channels, filter, stride, padding, pooled?)
_LAYERS = (
    (64, 11, 4, 5, True),
    (192, 5, 1, 2, True),
    (384, 3, 1, 1, False),
    (256, 3, 1, 1, False),
    (256, 3, 1, 1, True),
)


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    channels, *sides = input_shape
    param_shapes: dict[str, tuple[int, ...]] = {}
    for layer, (width, size, *_) in enumerate(_LAYERS, 1):
        param_shapes |= {f"conv{layer}.weight": (width, channels, size, size), f"conv{layer}.bias": (width,)}
        channels = width
    map_height, map_width = (((side - 1) // 4 + 1) // 8 for side in sides)  # 32 -> 8 -> 4 -> 2 -> 1
    return param_shapes | {"fc.weight": (classes, channels * map_height * map_width), "fc.bias": (classes,)}


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, F], for images x [..., B, C, H, W]. F is 256 at 32x32; there are no buffers."""
    for layer, (_, _, stride, padding, pooled) in enumerate(_LAYERS, 1):
        x = ops.conv2d(x, params[f"conv{layer}.weight"], params[f"conv{layer}.bias"], stride=stride, padding=padding)
        x = (ops.max_pool2d(x, 2) if pooled else x).relu_()
    return ops.flatten(x), buffers


def head(params: Tree, h: Tensor) -> Tensor:
    """Logits [..., B, classes] of features [..., B, F]."""
    return ops.linear(h, params["fc.weight"], params["fc.bias"])
