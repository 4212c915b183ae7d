"""The layer of tensor operations that models are written in.

Every operation takes weights with or without a leading client axis. Without: x [B, ...], as usual. With: x [K, B, ...] and
weights [K, ...]; client k's samples meet client k's weights, as one batched product or one grouped convolution.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W' + b. x [B, in], weight [out, in], bias [out]; or [K, B, in], [K, out, in], [K, out]."""
    if weight.dim() == 2:
        return F.linear(x, weight, bias)
    return torch.baddbmm(bias.unsqueeze(1), x, weight.mT)


def conv2d(x: Tensor, weight: Tensor, bias: Tensor, *, padding: int = 0) -> Tensor:
    """Cross-correlation, stride 1. x [B, C, H, W], weight [out, C, h, w], bias [out]; or each with a leading K."""
    if weight.dim() == 4:
        return F.conv2d(x, weight, bias, padding=padding)
    clients, out = weight.shape[:2]
    wide = x.transpose(0, 1).flatten(1, 2)  # [B, K*C, H, W]: one group a client
    y = F.conv2d(wide, weight.flatten(0, 1), bias.flatten(), padding=padding, groups=clients)
    return y.unflatten(1, (clients, out)).transpose(0, 1)


def max_pool2d(x: Tensor, size: int) -> Tensor:
    """Non-overlapping maxima over size x size windows of the last two axes."""
    if x.dim() == 4:
        return F.max_pool2d(x, size)
    return F.max_pool2d(x.flatten(0, 1), size).unflatten(0, x.shape[:2])


def flatten(x: Tensor) -> Tensor:
    """[..., C, H, W] to [..., C*H*W]."""
    return x.flatten(-3)


relu = F.relu


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over the batch; with a leading client axis the sum over clients of their means, so that gradients separate."""
    if logits.dim() == 2:
        return F.cross_entropy(logits, labels)
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="sum") / labels.shape[-1]
