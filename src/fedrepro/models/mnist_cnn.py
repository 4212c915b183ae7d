"""The small CNN for timing simulators on MNIST: McMahan et al. (AISTATS 2017) without padding; 582,026 parameters.

conv 1-32 k5, pool 2; conv 32-64 k5, pool 2; linear 1024-512-10; ReLU between all of them.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.tree import Tree


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    channels, height, width = input_shape
    map_sides = [((side - 4) // 2 - 4) // 2 for side in (height, width)]  # 28 -> 24 -> 12 -> 8 -> 4
    return {
        "conv1.weight": (32, channels, 5, 5),
        "conv1.bias": (32,),
        "conv2.weight": (64, 32, 5, 5),
        "conv2.bias": (64,),
        "fc1.weight": (512, 64 * map_sides[0] * map_sides[1]),
        "fc1.bias": (512,),
        "fc2.weight": (classes, 512),
        "fc2.bias": (classes,),
    }


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, F], for images x [..., B, C, H, W]. The model has no buffers."""
    h = ops.conv_pool_relu(x, params["conv1.weight"], params["conv1.bias"], 2)
    h = ops.conv_pool_relu(h, params["conv2.weight"], params["conv2.bias"], 2)
    h = ops.linear_relu(ops.flatten(h), params["fc1.weight"], params["fc1.bias"])
    return h, buffers


def head(params: Tree, h: Tensor) -> Tensor:
    """Logits [..., B, classes] of features [..., B, F]."""
    return ops.linear(h, params["fc2.weight"], params["fc2.bias"])
