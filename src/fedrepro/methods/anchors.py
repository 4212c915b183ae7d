"""Feature anchors of FedFA: a point of the feature space for each class. Zhou, Zhang, Tsang, "FedFA: Federated Learning with
Feature Anchors to Align Features and Classifiers for Heterogeneous Data", IEEE TMC 2024, https://arxiv.org/abs/2211.09299.

All functions accept leading axes (clients). Labels of -100 are padding.
"""

import numpy as np

from fedrepro import elementwise, tree
from fedrepro.errors import UserError
from fedrepro.lazy import Tensor, torch
from fedrepro.tree import Layout, Tree
from fedrepro.types import ClientContext, LastLayer

Named = dict[str, Tree]
CALIBRATION_LR, BETAS, EPS = 1e-3, (0.9, 0.999), 1e-8  # Adam's defaults in torch
_GATHERED = ("anchors", "sums", "present", "batches")
_ONES = Layout.of({"first": (), "second": ()})


def initial_anchors(layer: LastLayer, like: Tensor, generator: np.random.Generator) -> Tree:
    """Anchors [C, F] before round 0: different rows of the identity, or unit Gaussian rows if there are more classes than
    features. They have the type and device of `like`. UserError for text models, which make a vector for each character, and
    for a last layer without parameters."""
    if len(layer.features) != 1 or not layer.parameters.names:
        raise UserError("fedfa: needs one vector of features a sample, and parameters behind it; choose another model")
    (width,), classes = layer.features, layer.classes
    if classes > width:
        rows = generator.standard_normal((classes, width))
        rows /= np.sqrt(np.square(rows).sum(1, keepdims=True))
    else:
        rows = np.eye(width)[generator.permutation(width)[:classes]]
    return Tree(Layout.of({"anchors": (classes, width)}), torch.from_numpy(rows.ravel()).to(like))


def distance(h: Tensor, y: Tensor, anchors: Tensor) -> Tensor:
    """1/C sum_samples ||h - a_y||^2 / count_y of features h [..., B, F] with labels y [..., B]; count_y is the number of
    samples of that class in the batch. Summed over leading axes, so that gradients separate."""
    membership = _members(y, anchors.shape[-2], h)
    share = (membership / membership.sum(-2, keepdim=True).clamp_min(1)).sum(-1)
    class_anchors = anchors.take_along_dim(y.clamp_min(0).unsqueeze(-1), -2)
    return (share * (h - class_anchors).square().sum(-1)).sum() / anchors.shape[-2]


def class_means(h: Tensor, y: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """(mean features [..., C, F] of a batch's classes, 0 where there is no sample; which classes it has, 0 or 1, [..., C])."""
    membership = _members(y, classes, h)
    counts = membership.sum(-2)
    return (membership.mT @ h) / counts.clamp_min(1).unsqueeze(-1), counts.clamp_max(1)


def initial_gathering(anchors: Tree) -> Named:
    """What a client gathers for its anchors, before its first batch: sums of class means, classes seen and batches, all 0."""
    zero_sums = torch.zeros_like(anchors["anchors"])
    counters = {"present": zero_sums[..., 0], "batches": zero_sums[..., 0, :1]}
    trees = {name: Tree(Layout.of({name: zeros.shape[-1:]}), zeros.contiguous()) for name, zeros in counters.items()}
    return {"anchors": anchors, "sums": tree.zeros_like(anchors)} | trees


def gather_batch(h: Tensor, y: Tensor, local: Named, batches: float | Tensor, momentum: float) -> Named:
    """What is gathered after a batch. After the last of `batches` the anchors of the classes seen are mixed with the means over
    those batches, a <- momentum a + (1 - momentum) sums / batches, and gathering starts anew."""
    a, sums, present, count = (local[key].flat for key in _GATHERED)
    batches = batches.unsqueeze(-1) if isinstance(batches, torch.Tensor) else batches
    means, batch_present = class_means(h, y, present.shape[-1])
    sums, present, count = sums + means.flatten(-2), present.maximum(batch_present), count + 1
    is_last_batch, present_mask = count == batches, present.repeat_interleave(means.shape[-1], -1) > 0
    mixed_anchors = torch.where(is_last_batch & present_mask, momentum * a + (1 - momentum) * sums / batches, a)
    new_values = mixed_anchors, *(value.masked_fill(is_last_batch, 0.0) for value in (sums, present, count))
    return {key: local[key].like(value) for key, value in zip(_GATHERED, new_values, strict=True)}


def initial_adam_state(ctx: ClientContext) -> Named:
    """Adam's state before a round's first calibration: moments 0. `adam.ones` are the moments of a gradient that is always 1,
    which Adam uses to correct its own."""
    zero = ctx.anchor.flat[..., :1] * 0
    layout = ctx.network.last_layer.parameters
    moments = {key: Tree(layout, zero.expand(*zero.shape[:-1], layout.size)) for key in ("adam.first", "adam.second")}
    return moments | {"adam.ones": Tree(_ONES, zero.expand(*zero.shape[:-1], 2))}


def calibrate(params: Tree, anchors: Tensor, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
    """(weights, Adam's state) after a step of Adam on the last layer alone. The step lowers the cross-entropy of the anchors
    [..., C, F] as samples of their classes."""
    leading_axes, layout = params.flat.dim() - 1, ctx.network.last_layer.parameters
    layer = Tree(layout, torch.cat([params[name].flatten(leading_axes) for name in layout.names], -1))
    labels = torch.arange(anchors.shape[-2], device=anchors.device).expand(anchors.shape[:-1])
    g = tree.gradient(lambda p: ctx.network.loss(ctx.network.head(p, anchors), labels), layer).flat
    first, second, ones = (local[f"adam.{key}"].flat for key in ("first", "second", "ones"))
    first, second = (b * m + (1 - b) * x for b, m, x in zip(BETAS, (first, second), (g, g.square()), strict=True))
    ones = torch.stack([b * moment + (1 - b) for b, moment in zip(BETAS, ones.unbind(-1), strict=True)], -1)
    denominator = elementwise.sqrt(second / ones[..., 1:]) + EPS
    layer = layer.like(layer.flat - CALIBRATION_LR * (first / ones[..., :1]) / denominator)
    new_params = params.like(params.flat.clone())
    for name, value in layer.items():
        new_params[name].copy_(value)
    state = {"adam.first": layer.like(first), "adam.second": layer.like(second), "adam.ones": Tree(_ONES, ones)}
    return new_params, state


def _members(y: Tensor, classes: int, like: Tensor) -> Tensor:
    """[..., B, C]: 1 where a sample is of the class, in the type of `like`."""
    return (y.unsqueeze(-1) == torch.arange(classes, device=y.device)).to(like.dtype)
