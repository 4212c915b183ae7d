"""VGG-11 of FedIMA; 9,304,548 parameters at 100 classes and 32x32 colour images.

Simonyan and Zisserman, ICLR 2015, https://arxiv.org/abs/1409.1556, table 1, column A: eight convolutions k3 with padding 1 and
five poolings. GroupNorm of two groups and ReLU after each convolution; linear 512-128, the feature, without ReLU; linear
128-classes. The paper prints GroupNorm and the dimension of the feature; the rest is as in the authors' code.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.models.group_norm import GroupNorms
from fedrepro.tree import Tree

_LAYERS = ((64, True), (128, True), (256, False), (256, True), (512, False), (512, True), (512, False), (512, True))  # pooled?


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    channels, image_height, image_width = input_shape
    param_shapes: dict[str, tuple[int, ...]] = {}
    for layer, (width, _) in enumerate(_LAYERS, 1):
        param_shapes |= {f"conv{layer}.weight": (width, channels, 3, 3), f"conv{layer}.bias": (width,)}
        param_shapes |= {f"norm{layer}.weight": (width,), f"norm{layer}.bias": (width,)}
        channels = width
    return param_shapes | {
        "fc1.weight": (128, channels * (image_height // 32) * (image_width // 32)),
        "fc1.bias": (128,),
        "fc2.weight": (classes, 128),
        "fc2.bias": (classes,),
    }


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, 128], for images x [..., B, C, H, W]; no buffers."""
    norm = GroupNorms(params, buffers, 2)
    for layer, (_, pooled) in enumerate(_LAYERS, 1):
        x = norm(f"norm{layer}", ops.conv2d(x, params[f"conv{layer}.weight"], params[f"conv{layer}.bias"], padding=1))
        x = (ops.max_pool2d(x, 2) if pooled else x).relu_()
    return ops.linear(ops.flatten(x), params["fc1.weight"], params["fc1.bias"]), norm.after()


def head(params: Tree, h: Tensor) -> Tensor:
    """Logits [..., B, classes] of features [..., B, 128]."""
    return ops.linear(h, params["fc2.weight"], params["fc2.bias"])
