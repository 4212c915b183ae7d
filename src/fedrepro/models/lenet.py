"""A-LeNet of FedLAW's Table 3 (named LeNet5 in the authors' code, but not the classical one); 28,938 parameters.

conv 1-16 k5 pad 2, ReLU, pool 2; conv 16-32 k5 pad 2, ReLU, pool 2; linear 1568-10.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.tree import Tree


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    channels, height, width = input_shape
    return {
        "conv1.weight": (16, channels, 5, 5),
        "conv1.bias": (16,),
        "conv2.weight": (32, 16, 5, 5),
        "conv2.bias": (32,),
        "fc.weight": (classes, 32 * (height // 4) * (width // 4)),
        "fc.bias": (classes,),
    }


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, F], for images x [..., B, C, H, W]. The model has no buffers."""
    h = ops.conv_pool_relu(x, params["conv1.weight"], params["conv1.bias"], 2, padding=2)
    h = ops.conv_pool_relu(h, params["conv2.weight"], params["conv2.bias"], 2, padding=2)
    return ops.flatten(h), buffers


def head(params: Tree, h: Tensor) -> Tensor:
    """Logits [..., B, classes] of features [..., B, F]."""
    return ops.linear(h, params["fc.weight"], params["fc.bias"])
