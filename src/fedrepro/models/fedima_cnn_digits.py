"""The CNN of FedIMA for the five domains of digits; 806,090 parameters at 10 classes and 28x28 colour images.

conv 3-64, 64-64, 64-128, all k5 with padding 2, each with GroupNorm of two groups, ReLU and pool 2; linear 1152-384, ReLU;
linear 384-128, the feature, without ReLU; linear 128-classes. Layers as in the authors' code; the paper prints GroupNorm.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.models.group_norm import GroupNorms
from fedrepro.tree import Tree

_WIDTHS = (64, 64, 128)


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    channels, image_height, image_width = input_shape
    param_shapes: dict[str, tuple[int, ...]] = {}
    for layer, (inputs, width) in enumerate(zip((channels, *_WIDTHS), _WIDTHS, strict=False), 1):
        param_shapes |= {f"conv{layer}.weight": (width, inputs, 5, 5), f"conv{layer}.bias": (width,)}
        param_shapes |= {f"norm{layer}.weight": (width,), f"norm{layer}.bias": (width,)}
    return param_shapes | {
        "fc1.weight": (384, 128 * (image_height // 8) * (image_width // 8)),  # 28 -> 14 -> 7 -> 3
        "fc1.bias": (384,),
        "fc2.weight": (128, 384),
        "fc2.bias": (128,),
        "fc3.weight": (classes, 128),
        "fc3.bias": (classes,),
    }


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, 128], for images x [..., B, C, H, W]; no buffers."""
    norm = GroupNorms(params, buffers, 2)
    for layer in (1, 2, 3):
        x = ops.conv2d(x, params[f"conv{layer}.weight"], params[f"conv{layer}.bias"], padding=2)
        x = ops.max_pool2d(norm(f"norm{layer}", x), 2).relu_()  # ReLU of a quarter of the values, with the same result
    h = ops.linear_relu(ops.flatten(x), params["fc1.weight"], params["fc1.bias"])
    return ops.linear(h, params["fc2.weight"], params["fc2.bias"]), norm.after()


def head(params: Tree, h: Tensor) -> Tensor:
    """Logits [..., B, classes] of features [..., B, 128]."""
    return ops.linear(h, params["fc3.weight"], params["fc3.bias"])
