"""The CNN of FedGH's CIFAR-10 table; 1,234,762 parameters at 10 classes and 32x32 colour images, as it prints (1.235M). With
filters of 3x3 it is that of Reddi et al., ICLR 2021, https://arxiv.org/abs/2003.00295, for EMNIST (reddi_emnist): 1,206,590
parameters at 62 classes and 28x28 grey images.

conv 3-32 k5, ReLU; conv 32-64 k5, ReLU; pool 2; dropout 0.25; linear 9216-128, ReLU; dropout 0.5; linear 128-10. No padding.
The rates are not printed; these are those of the common CNN of this shape. The printed list of layers ends with a ReLU on the
logits. With it a class may never be learnt again, so it is left out here and kept in fedgh_cnn_relu.
"""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.models.dropout import dropout
from fedrepro.tree import Tree


def shapes(input_shape: tuple[int, int, int], classes: int, kernel: int = 5, **_: bool) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    channels, height, width = input_shape
    map_sides = [(side - 2 * (kernel - 1)) // 2 for side in (height, width)]  # 32 -> 28 -> 24 -> 12, or 28 -> 26 -> 24 -> 12
    return {
        "conv1.weight": (32, channels, kernel, kernel),
        "conv1.bias": (32,),
        "conv2.weight": (64, 32, kernel, kernel),
        "conv2.bias": (64,),
        "fc1.weight": (128, 64 * map_sides[0] * map_sides[1]),
        "fc1.bias": (128,),
        "fc2.weight": (classes, 128),
        "fc2.bias": (classes,),
    }


def features(params: Tree, buffers: Tree, x: Tensor, train: bool, key: Tensor | None = None, **_: int) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, 128], for images x [..., B, C, H, W]; no buffers.

    `key` [] or [K]: of the dropout masks in training. Without a key nothing is dropped.
    """
    drop = lambda h, rate, layer: h if key is None or not train else dropout(h, rate, key, layer)  # noqa: E731
    h = ops.relu(ops.conv2d(x, params["conv1.weight"], params["conv1.bias"]))
    h = ops.conv_pool_relu(h, params["conv2.weight"], params["conv2.bias"], 2)
    h = drop(ops.flatten(h), 0.25, 1)
    return drop(ops.linear_relu(h, params["fc1.weight"], params["fc1.bias"]), 0.5, 2), buffers


def head(params: Tree, h: Tensor, last_relu: bool = False, **_: int) -> Tensor:
    """Logits [..., B, classes] of features [..., B, 128]."""
    h = ops.linear(h, params["fc2.weight"], params["fc2.bias"])
    return ops.relu(h) if last_relu else h
