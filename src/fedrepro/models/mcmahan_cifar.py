"""The CIFAR-10 network of McMahan et al., AISTATS 2017, https://arxiv.org/abs/1602.05629, section 3: that of TensorFlow's
tutorial of the time. 1,756,426 parameters at 32x32 colour images and 10 classes; 1,068,298 at the tutorial's crops of 24x24.

conv 3-64 k5, ReLU, pool 3/2, response norm; conv 64-64 k5, ReLU, response norm, pool 3/2; linear 384, ReLU; linear 192, ReLU;
linear 10. Convolutions keep the image size, and poolings halve it: if it is even, the last window ends outside.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.tree import Tree


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    channels, height, width = input_shape
    map_sides = [side // 4 for side in (height, width)]  # 32 -> 16 -> 8
    return {
        "conv1.weight": (64, channels, 5, 5),
        "conv1.bias": (64,),
        "conv2.weight": (64, 64, 5, 5),
        "conv2.bias": (64,),
        "fc1.weight": (384, 64 * map_sides[0] * map_sides[1]),
        "fc1.bias": (384,),
        "fc2.weight": (192, 384),
        "fc2.bias": (192,),
        "fc3.weight": (classes, 192),
        "fc3.bias": (classes,),
    }


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, 192], for images x [..., B, C, H, W]. The model has no buffers."""
    h = ops.conv_pool_relu(x, params["conv1.weight"], params["conv1.bias"], 3, padding=2, stride=2, ceil=True)
    h = ops.relu(ops.conv2d(ops.local_response_norm(h), params["conv2.weight"], params["conv2.bias"], padding=2))
    h = ops.flatten(ops.max_pool2d(ops.local_response_norm(h), 3, stride=2, ceil=True))
    h = ops.linear_relu(h, params["fc1.weight"], params["fc1.bias"])
    return ops.linear_relu(h, params["fc2.weight"], params["fc2.bias"]), buffers


def head(params: Tree, h: Tensor) -> Tensor:
    """Logits [..., B, classes] of features [..., B, 192]."""
    return ops.linear(h, params["fc3.weight"], params["fc3.bias"])
