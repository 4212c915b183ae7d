"""Multi-layer perceptrons, ReLU between the layers; at 10 classes and 28x28 grey images:

mlp, A-MLP of FedLAW's Table 3: 784-200-200-10; 199,210 parameters. two_nn, the 2NN of FedGH: 784-512-256-10; 535,818.
logistic, multinomial logistic regression, the model of Elastic aggregation for MNIST: 784-10; 7,850.
"""

from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

from fedrepro.models import kernels, ops
from fedrepro.tree import Parts, Tree


def shapes(input_shape: tuple[int, int, int], classes: int, hidden: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order. `hidden`: widths of the hidden layers, empty for logistic regression."""
    channels, height, width = input_shape
    param_shapes: dict[str, tuple[int, ...]] = {}
    for layer, (inputs, outputs) in enumerate(pairwise((channels * height * width, *hidden, classes)), 1):
        param_shapes |= {f"fc{layer}.weight": (outputs, inputs), f"fc{layer}.bias": (outputs,)}
    return param_shapes


def features(params: Tree, buffers: Tree, x: Tensor, train: bool, hidden: tuple[int, ...]) -> tuple[Tensor, Tree]:
    """The input of the last layer, [..., B, F], for images x [..., B, C, H, W]. The model has no buffers."""
    h = ops.flatten(x)
    for weight, bias in _names(len(hidden) + 1)[:-1]:
        h = ops.linear_relu(h, params[weight], params[bias])
    return h, buffers


def head(params: Tree, h: Tensor, hidden: tuple[int, ...]) -> Tensor:
    """Logits [..., B, classes] of features [..., B, F]."""
    weight, bias = _names(len(hidden) + 1)[-1]
    return ops.linear(h, params[weight], params[bias])


def gradient(params: Tree, x: Tensor, y: Tensor, hidden: tuple[int, ...]) -> Tree:
    """The gradient [D] of the mean cross-entropy on images x [B, C, H, W] with labels y [B], in closed form, for one client.

    It has a third of autograd's overhead, which is most of a small model's step. Activations lie as columns, [units, B]: a step
    takes a few percent less time than with rows (our choice; tested against autograd).
    """
    with torch.no_grad():
        inputs, logits = _forward(params, x, hidden)
        return _backward(params, inputs, logits.softmax(0).scatter_(0, y.unsqueeze(0), -1.0, reduce="add").div_(len(y)))


def squared_gradient(params: Tree, x: Tensor, hidden: tuple[int, ...]) -> Tree:
    """The gradient [D] of the logits' squared norm, mean over images x [B, C, H, W], in closed form, for one client."""
    with torch.no_grad():
        inputs, logits = _forward(params, x, hidden)
        return _backward(params, inputs, logits.mul_(2 / len(x)))


def _forward(params: Tree, x: Tensor, hidden: tuple[int, ...]) -> tuple[list[Tensor], Tensor]:
    """(the input of each layer, logits), all as columns [units, B]."""
    names, inputs = _names(len(hidden) + 1), [ops.flatten(x).mT]
    for layer in names[:-1]:
        inputs.append(_outputs(params, layer, inputs[-1]).relu_())
    return inputs, _outputs(params, names[-1], inputs[-1])


def _backward(params: Tree, inputs: list[Tensor], delta: Tensor) -> Tree:
    """The gradient [D], given the derivative `delta` [classes, B] by the logits."""
    names, g = _names(len(inputs)), dict[str, Tensor]()
    for (weight, bias), h in zip(reversed(names), reversed(inputs), strict=True):
        g[weight], g[bias] = kernels.product(delta, h.mT), delta.sum(1)
        if h is not inputs[0]:
            delta = torch.ops.aten.threshold_backward(kernels.product(params[weight].mT, delta), h, 0)
    return Parts(params, g)


def _outputs(params: Tree, layer: tuple[str, str], h: Tensor) -> Tensor:
    """W h + b [out, B] of a layer, for columns h [in, B]."""
    weight, bias = layer
    return kernels.product(params[weight], h).add_(params[bias].unsqueeze(1))


@lru_cache
def _names(layers: int) -> tuple[tuple[str, str], ...]:
    """(weight, bias) of each layer."""
    return tuple((f"fc{layer}.weight", f"fc{layer}.bias") for layer in range(1, layers + 1))
