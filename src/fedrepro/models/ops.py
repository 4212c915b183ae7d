"""The layer of tensor operations in which models are written.

Every operation takes weights with or without a leading client axis. Without: x [B, ...], as usual. With: x [K, B, ...] and
weights [K, ...]; client k's samples use client k's weights, as one batched product or one grouped convolution.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from fedrepro import elementwise
from fedrepro.models import convolutions, gpu, kernels

_EPS = 1e-5  # of BatchNorm, torch's default


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W' + b. x [B, in], weight [out, in], bias [out]; or [K, B, in], [K, out, in], [K, out]."""
    if weight.dim() == 2:
        return kernels.linear(x, weight, bias)
    return torch.baddbmm(bias.unsqueeze(1), x, weight.mT)


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """max(0, `linear`)."""
    if weight.dim() == 2:
        return kernels.linear_relu(x, weight, bias)
    return relu(linear(x, weight, bias))


def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: int = 1, padding: int = 0) -> Tensor:
    """Cross-correlation. x [B, C, H, W], weight [out, C, h, w], bias [out] or none; or each with a leading K.

    On a CPU the weights, and so the output, have channels last in memory: 1.2 to 1.5 times as fast there.
    """
    if weight.dim() == 4:
        if kernels.portable(x):
            y = convolutions.conv2d(x, weight, stride, padding)
            return y if bias is None else y + bias[:, None, None]
        if weight.device.type == "cpu":
            weight = convolutions.channels_last(weight)
        return F.conv2d(x, weight, bias, stride=stride, padding=padding)
    if gpu.takes(x, weight) and stride == 1:
        y = gpu.conv2d(x, weight, padding)
        return y if bias is None else y + _per_channel(bias)
    clients, out = weight.shape[:2]
    flat_bias = None if bias is None else bias.flatten()
    y = F.conv2d(_clients_as_channels(x), weight.flatten(0, 1), flat_bias, stride=stride, padding=padding, groups=clients)
    return y.unflatten(1, (clients, out)).transpose(0, 1)


def batch_norm(
    x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, train: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """(normalised x, running mean, running variance). x [B, C, H, W], the others [C]; or each with a leading K.

    In training x is normalised by its batch, and the statistics move by a tenth (unbiased variance); otherwise they stay.
    """
    clients = weight.shape[:-1]
    merged_x = _clients_as_channels(x) if clients else x
    old_mean, old_var, scale, shift = (t.flatten() for t in (mean, var, weight, bias))
    if train and merged_x.device.type == "cpu" and merged_x.dtype in (torch.float32, torch.float64):
        count = merged_x.numel() // merged_x.shape[1]
        if count == 1:
            raise ValueError(f"BatchNorm needs more than one value a channel in training, found x of shape {tuple(x.shape)}")
        y, batch_mean, batch_var = _BatchNorm.apply(merged_x, scale, shift)  # type: ignore[misc]
        new_mean = 0.9 * old_mean.detach() + 0.1 * batch_mean
        new_var = 0.9 * old_var.detach() + 0.1 * count / (count - 1) * batch_var
    else:
        new_mean, new_var = (t.detach().clone() if train else t for t in (old_mean, old_var))
        y = F.batch_norm(merged_x, new_mean, new_var, scale, shift, training=train, momentum=0.1)
    y = y.unflatten(1, (*clients, -1)).transpose(0, 1) if clients else y
    return y, new_mean.view(mean.shape), new_var.view(var.shape)


class _BatchNorm(torch.autograd.Function):
    """(y, mean, biased variance) of a batch on a CPU.

    With channels last, torch's own kernel adds up a channel's values one after the other: its variances are off by 1e-5 at
    64 x 32 x 32 values, and ResNet-20's gradients by 2e-3. torch's `mean` adds in a tree, and is as fast.
    """

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor):
        mean = x.mean((0, 2, 3))
        var = (x - mean[:, None, None]).square_().mean((0, 2, 3))
        ctx.save_for_backward(x, weight, mean, (var + _EPS).rsqrt())
        ctx.mark_non_differentiable(mean, var)
        return F.batch_norm(x, mean, var, weight, bias, training=False, eps=_EPS), mean, var

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor, *_):  # type: ignore[override]
        x, weight, mean, inverse = ctx.saved_tensors
        mask = [True, True, True]
        return torch.ops.aten.native_batch_norm_backward(g, x, weight, None, None, mean, inverse, True, _EPS, mask)


def group_norm(x: Tensor, groups: int, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalises each sample over every group of channels. x [B, C, H, W], weight and bias [C]; or each with a leading K."""
    if weight.dim() == 1:
        return F.group_norm(x, groups, weight, bias)
    return F.group_norm(x.flatten(0, 1), groups).view(x.shape) * _per_channel(weight) + _per_channel(bias)


def _per_channel(values: Tensor) -> Tensor:
    """[K, C] in a shape that broadcasts with x [K, B, C, H, W]."""
    return values[:, None, :, None, None]


def padded_batch_norm(
    x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, valid: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` in training for x [K, B, C, H, W], where client k has only the first valid_k >= 2 samples; valid [K].

    Results for padding are finite and do not enter the statistics. Everything has the type of the weights.
    """
    x = x.to(weight.dtype)
    places = x.shape[-2] * x.shape[-1]
    # [K, B, 1, 1, 1]
    valid_mask = (torch.arange(x.shape[1], device=x.device) < valid.unsqueeze(1)).to(x.dtype)[:, :, None, None, None]
    count = (valid * places).to(x.dtype)[:, None]  # [K, 1]
    batch_mean = (x * valid_mask).sum((1, 3, 4)) / count
    centred_x = x - _per_channel(batch_mean)
    batch_var = (centred_x.square() * valid_mask).sum((1, 3, 4)) / count
    y = centred_x * _per_channel((batch_var + _EPS).rsqrt() * weight) + _per_channel(bias)
    with torch.no_grad():
        new_mean = 0.9 * mean + 0.1 * batch_mean
        new_var = 0.9 * var + 0.1 * batch_var * count / (count - 1)
    return y, new_mean, new_var


def _clients_as_channels(x: Tensor) -> Tensor:
    """[K, B, C, H, W] to [B, K*C, H, W]: one group of channels per client."""
    return x.transpose(0, 1).flatten(1, 2)


def max_pool2d(x: Tensor, size: int, *, stride: int | None = None, padding: int = 0, ceil: bool = False) -> Tensor:
    """Maxima over size x size windows of the last two axes. The windows lie side by side unless a stride is given.

    `ceil`: a window that begins inside the image counts, even if it ends outside.
    """
    if x.dim() == 4:
        return F.max_pool2d(x, size, stride, padding, ceil_mode=ceil)
    return F.max_pool2d(x.flatten(0, 1), size, stride, padding, ceil_mode=ceil).unflatten(0, x.shape[:2])


def conv_pool_relu(
    x: Tensor, weight: Tensor, bias: Tensor, size: int, *, padding: int = 0, stride: int | None = None, ceil: bool = False
) -> Tensor:
    """`conv2d`, `max_pool2d` and ReLU, in the order with the least work.

    Adding a bias and taking the positive part keep the order of numbers, also after rounding. So both can come after the
    maximum: the same values from a quarter of the elements.
    """
    if gpu.takes(x, weight) and (size, stride or size, ceil) == (2, 2, False):
        return gpu.pool_relu(gpu.conv2d(x, weight, padding), bias)
    y = max_pool2d(conv2d(x, weight, padding=padding), size, stride=stride, ceil=ceil)
    clients = bias.dim() - 1
    return (y + (bias.unsqueeze(1) if clients else bias)[..., None, None]).relu_()


def local_response_norm(x: Tensor, radius: int = 4, alpha: float = 0.001 / 9) -> Tensor:
    """x / (1 + alpha * sum of squares)^0.75 over the channels up to `radius` away. x [B, C, H, W], or with a leading K.

    Krizhevsky et al., NeurIPS 2012, section 3.3; radius, alpha and power are those of TensorFlow's CIFAR-10 tutorial. The power
    is made of square roots, which are the same on every processor.
    """
    flat_x = (x.float() if x.dtype is torch.bfloat16 else x).flatten(0, -4)
    return _ResponseNorm.apply(flat_x, radius, alpha).view(x.shape)  # type: ignore[union-attr]


class _ResponseNorm(torch.autograd.Function):
    """With s = 1 + alpha * W x^2, where W adds up a window of channels: y = x s^(-3/4)."""

    @staticmethod
    def forward(ctx, x: Tensor, radius: int, alpha: float):
        s = _window_sum(x.square(), radius).mul_(alpha).add_(1)
        root = elementwise.sqrt(s)
        power = root.mul_(elementwise.sqrt(root))
        ctx.save_for_backward(x, s, power)
        ctx.window = radius, alpha
        return x / power

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):  # type: ignore[override]
        (x, s, power), (radius, alpha) = ctx.saved_tensors, ctx.window
        direct_term = g / power
        window_term = _window_sum((direct_term * x).div_(s), radius)
        return direct_term.sub_(window_term.mul_(x), alpha=1.5 * alpha), None, None


def _window_sum(x: Tensor, radius: int) -> Tensor:
    """Sums over the channels up to `radius` away, for x [B, C, H, W], by one product with a band of ones."""
    with torch.autocast(x.device.type, enabled=False):
        return (
            kernels.product(x.permute(0, 2, 3, 1).reshape(-1, x.shape[1]), _band(x, radius))
            .view(len(x), *x.shape[2:], x.shape[1])
            .permute(0, 3, 1, 2)
        )


def _band(x: Tensor, radius: int) -> Tensor:
    channel = torch.arange(x.shape[1], device=x.device)
    return ((channel - channel.unsqueeze(1)).abs() <= radius).to(x.dtype)


def flatten(x: Tensor) -> Tensor:
    """[..., C, H, W] to [..., C*H*W]."""
    return x.flatten(-3)


relu = F.relu


def embedding(x: Tensor, weight: Tensor) -> Tensor:
    """Rows of a table: x int64 [B, ...], weight [V, F] to [B, ..., F]; or [K, B, ...] and [K, V, F]."""
    if weight.dim() == 2:
        return F.embedding(x, weight)
    first_row = torch.arange(len(x), device=x.device) * weight.shape[1]
    return F.embedding(x + first_row.view(-1, *[1] * (x.dim() - 1)), weight.flatten(0, 1))


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over the batch. With a leading client axis it is the sum of the clients' means, so that gradients separate.

    Samples labelled -100 are padding and do not count.
    """
    if logits.dim() == 2:
        return F.cross_entropy(logits, labels)
    sample_losses = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none").unflatten(0, labels.shape)
    return (sample_losses.sum(-1) / (labels >= 0).sum(-1)).sum()
