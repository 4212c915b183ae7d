"""logistic_sigmoid, multinomial logistic regression with a sigmoid before the cross-entropy: 784-10; 7,850 parameters.

FedML's LogisticRegression, `torch.sigmoid(self.linear(x))` trained by CrossEntropyLoss (He et al., 2020,
https://arxiv.org/abs/2007.13518), which the paper of Elastic aggregation cites. The softmax gets values in (0, 1), so the most
certain prediction of ten classes is e / (e + 9) = 0.23. Weights as in `logistic`.

The features of this model are its linear outputs. Its last layer, the sigmoid, has no weights.
"""

import torch
from torch import Tensor

from fedrepro.models import kernels, ops
from fedrepro.tree import Parts, Tree

WEIGHT, BIAS = "fc1.weight", "fc1.bias"


def shapes(input_shape: tuple[int, int, int], classes: int) -> dict[str, tuple[int, ...]]:
    """Parameter shapes, in order: those of `logistic`."""
    channels, height, width = input_shape
    return {WEIGHT: (classes, channels * height * width), BIAS: (classes,)}


def features(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
    """The linear outputs, [..., B, classes], for images x [..., B, C, H, W]. The model has no buffers."""
    return ops.linear(ops.flatten(x), params[WEIGHT], params[BIAS]), buffers


def head(params: Tree, h: Tensor) -> Tensor:
    """The logits of the cross-entropy: the sigmoids [..., B, classes] of linear outputs [..., B, classes]."""
    return h.sigmoid()


def gradient(params: Tree, x: Tensor, y: Tensor) -> Tree:
    """The gradient [D] of the mean cross-entropy on images x [B, C, H, W] with labels y [B], in closed form, for one client.

    It uses columns for speed, like `mlp.gradient`, and is tested against autograd.
    """
    with torch.no_grad():
        inputs, s = _sigmoids(params, x)
        return _backward(params, inputs, s, s.softmax(0).scatter_(0, y.unsqueeze(0), -1.0, reduce="add").div_(len(y)))


def squared_gradient(params: Tree, x: Tensor) -> Tree:
    """The gradient [D] of the sigmoids' squared norm, mean over images x [B, C, H, W], in closed form, for one client."""
    with torch.no_grad():
        inputs, s = _sigmoids(params, x)
        return _backward(params, inputs, s, s * (2 / len(x)))


def _sigmoids(params: Tree, x: Tensor) -> tuple[Tensor, Tensor]:
    """(images, sigmoids), as columns [units, B]."""
    inputs = ops.flatten(x).mT
    return inputs, kernels.product(params[WEIGHT], inputs).add_(params[BIAS].unsqueeze(1)).sigmoid_()


def _backward(params: Tree, inputs: Tensor, s: Tensor, delta: Tensor) -> Tree:
    """The gradient [D], given the derivative `delta` [classes, B] by the sigmoids s [classes, B]."""
    delta = torch.ops.aten.sigmoid_backward(delta, s)
    return Parts(params, {WEIGHT: kernels.product(delta, inputs.mT), BIAS: delta.sum(1)})
