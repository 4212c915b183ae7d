"""The CNNs of FedIMA for FashionMNIST (width 32; 274,026 parameters) and for CIFAR-10 (width 64; 772,682), 10 classes.
Our choice: the one of width 32 also for PACS at 64x64 (2,155,303 at 7 classes), where the paper has AlexNet at 224x224.

conv k5, pool 2; conv k5, pool 2; linear 384-128-classes; ReLU between all of them, no padding. The feature has 128 values and
is not negative. The paper prints the dimension of the feature; widths and kernels are those of the authors' code.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.tree import Tree


def shapes(input_shape: tuple[int, int, int], classes: int, width: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order; `width`: channels of both convolutions."""
    channels, image_height, image_width = input_shape
    # 28 -> 24 -> 12 -> 8 -> 4, or 32 -> 28 -> 14 -> 10 -> 5
    map_sides = [((side - 4) // 2 - 4) // 2 for side in (image_height, image_width)]
    return {
        "conv1.weight": (width, channels, 5, 5),
        "conv1.bias": (width,),
        "conv2.weight": (width, width, 5, 5),
        "conv2.bias": (width,),
        "fc1.weight": (384, width * map_sides[0] * map_sides[1]),
        "fc1.bias": (384,),
        "fc2.weight": (128, 384),
        "fc2.bias": (128,),
        "fc3.weight": (classes, 128),
        "fc3.bias": (classes,),
    }


def features(params: Tree, buffers: Tree, x: Tensor, train: bool, **_: int) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, 128], for images x [..., B, C, H, W]; no buffers."""
    h = ops.conv_pool_relu(x, params["conv1.weight"], params["conv1.bias"], 2)
    h = ops.conv_pool_relu(h, params["conv2.weight"], params["conv2.bias"], 2)
    h = ops.linear_relu(ops.flatten(h), params["fc1.weight"], params["fc1.bias"])
    return ops.linear_relu(h, params["fc2.weight"], params["fc2.bias"]), buffers


def head(params: Tree, h: Tensor, **_: int) -> Tensor:
    """Logits [..., B, classes] of features [..., B, 128]."""
    return ops.linear(h, params["fc3.weight"], params["fc3.bias"])
