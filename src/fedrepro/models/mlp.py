"""A-MLP of FedLAW's Table 3: 784-200-200-10, ReLU; 199,210 parameters at 10 classes and 28x28 grey images."""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.tree import Tree


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order."""
    channels, height, width = input_shape
    return {
        "fc1.weight": (200, channels * height * width),
        "fc1.bias": (200,),
        "fc2.weight": (200, 200),
        "fc2.bias": (200,),
        "fc3.weight": (classes, 200),
        "fc3.bias": (classes,),
    }


def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """Logits [..., B, classes] of images x [..., B, C, H, W]; the model has no buffers."""
    h = ops.relu(ops.linear(ops.flatten(x), params["fc1.weight"], params["fc1.bias"]))
    h = ops.relu(ops.linear(h, params["fc2.weight"], params["fc2.bias"]))
    return ops.linear(h, params["fc3.weight"], params["fc3.bias"]), buffers
