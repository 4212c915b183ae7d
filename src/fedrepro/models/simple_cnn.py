"""A-CNN ("SimpleCNN") of FedLAW's Table 3; 122,570 parameters at 10 classes and 32x32 colour images, 128,420 at 100.

conv 3-32 k3, pool 2; conv 32-64 k3, pool 2; conv 64-64 k3; linear 1024-64-10; ReLU between all of them, no padding.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.tree import Tree


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    channels, height, width = input_shape
    map_sides = [((side - 2) // 2 - 2) // 2 - 2 for side in (height, width)]  # 32 -> 30 -> 15 -> 13 -> 6 -> 4
    return {
        "conv1.weight": (32, channels, 3, 3),
        "conv1.bias": (32,),
        "conv2.weight": (64, 32, 3, 3),
        "conv2.bias": (64,),
        "conv3.weight": (64, 64, 3, 3),
        "conv3.bias": (64,),
        "fc1.weight": (64, 64 * map_sides[0] * map_sides[1]),
        "fc1.bias": (64,),
        "fc2.weight": (classes, 64),
        "fc2.bias": (classes,),
    }


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, F], for images x [..., B, C, H, W]. The model has no buffers.

    The second pooling leaves out the last row and column of 13 x 13, and with them two of the image: these are not computed.
    """
    height, width = (((side - 2) // 2 - 2) // 2 * 4 + 6 for side in x.shape[-2:])  # 30 of 32
    h = ops.conv_pool_relu(x[..., :height, :width], params["conv1.weight"], params["conv1.bias"], 2)
    h = ops.conv_pool_relu(h, params["conv2.weight"], params["conv2.bias"], 2)
    h = ops.conv2d(h, params["conv3.weight"], params["conv3.bias"]).relu_()
    h = ops.linear_relu(ops.flatten(h), params["fc1.weight"], params["fc1.bias"])
    return h, buffers


def head(params: Tree, h: Tensor) -> Tensor:
    """Logits [..., B, classes] of features [..., B, F]."""
    return ops.linear(h, params["fc2.weight"], params["fc2.bias"])
