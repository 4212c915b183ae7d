"""Convolutions of one client in portable arithmetic: the same bits with AVX2 and with AVX-512.

oneDNN's forward kernels, with both, add the terms of an output in ascending order of (row, column, channel) of the filter by
fused multiply-adds. Its other kernels differ between the two, so this module computes the two gradients in forms that do not
(all measured, and each process checks known answers):

- of the input, without a stride: a forward convolution with the filters turned round. If that needs a wider margin than half a
  filter, part of the margin is laid around the data beforehand. With filters larger than 3 x 3 and more than 64 output
  channels, which AVX-512 adds in another order on a map of 7 x 7, it takes 64 channels at a time;
- of the filters, which oneDNN adds row by row with AVX-512 and without a break with AVX2. Without padding, or with a stride
  if the input is smaller than the filter: as products (`fedrepro.models.kernels`) of a few images at a time. With padding:
  the margin above and below is made so wide that only the kernel for AVX2 takes it; the zeros there change no sum;
- grey images get two channels of zeros, and a single image a second image of zeros, since without them AVX-512 orders some
  terms in another way; a 1 x 1 filter on a single place takes no stride.

Measured on the shapes of our models and around them. `tests/portable` compares every registered model; one with filters of
5 x 5 and hundreds of input channels may fail there.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from fedrepro import arithmetic
from fedrepro.models import kernels

_LAST = torch.channels_last
_COLOURS = 3  # with at most 3 input channels, AVX2 and AVX-512 sum the weight gradient in the same order
_CHANNELS_AT_ONCE = 64  # channels of a 5 x 5 filter that both sum in one go, for any image size


def conv2d(x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """Cross-correlation of x [B, C, H, W] with weight [out, C, h, w], channels last; float32 on a CPU."""
    if x.shape[2:] == weight.shape[2:] == (1, 1):
        stride = 1
    if len(x) == 1:
        x = torch.cat([x, torch.zeros_like(x)])
        return _Convolution.apply(x, weight, stride, padding)[:1]  # type: ignore[index]
    return _Convolution.apply(x, weight, stride, padding)  # type: ignore[return-value]


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
        x, weight = x.contiguous(memory_format=_LAST), channels_last(weight)
        ctx.save_for_backward(x, weight)
        ctx.how = stride, padding
        if x.shape[1] == 1 and arithmetic.wide():
            x, weight = _with_zero_channels(x), _with_zero_channels(weight)
        return F.conv2d(x, weight, stride=stride, padding=padding)

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):  # type: ignore[override]
        x, weight = ctx.saved_tensors
        g = g.contiguous(memory_format=_LAST)
        grad_x = _input_gradient(g, x, weight, *ctx.how) if ctx.needs_input_grad[0] else None
        grad_weight = _filter_gradient(g, x, weight, *ctx.how) if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight, None, None


def channels_last(weight: Tensor) -> Tensor:
    """`weight` [out, C, h, w] laid out with channels last, also if C = 1, where torch accepts any layout.

    Otherwise a convolution of grey images would put its output channels first, and then max-pooling takes six times as long.
    """
    if weight.shape[1] == 1:
        return weight[:, 0].unsqueeze(-1).permute(0, 3, 1, 2)
    return weight.contiguous(memory_format=_LAST)


def _with_zero_channels(x: Tensor) -> Tensor:
    """[N, 1, h, w] with two more channels of zeros."""
    padded_x = x.new_zeros((len(x), *x.shape[2:], _COLOURS))
    padded_x[..., 0] = x[:, 0]
    return padded_x.permute(0, 3, 1, 2)


def _input_gradient(g: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    margins = [side - 1 - padding for side in weight.shape[2:]]
    if stride > 1 or min(margins) < 0:
        return _backward(g, x, weight, stride, (padding, padding), (True, False))[0]
    conv_padding = [min(margin, side // 2) for margin, side in zip(margins, weight.shape[2:], strict=True)]
    extra_margins = [margin - side_padding for margin, side_padding in zip(margins, conv_padding, strict=True)]
    turned_weight = weight.flip(2, 3).transpose(0, 1).contiguous(memory_format=_LAST)
    g = _zero_padded(g, (extra_margins[0], extra_margins[0]), extra_margins[1])
    if weight.shape[2] > 3 and g.shape[1] > _CHANNELS_AT_ONCE:
        part_pairs = zip(g.split(_CHANNELS_AT_ONCE, 1), turned_weight.split(_CHANNELS_AT_ONCE, 1), strict=True)
        total, *terms = (
            F.conv2d(p.contiguous(memory_format=_LAST), channels_last(q), padding=conv_padding) for p, q in part_pairs
        )
        for term in terms:
            total.add_(term)
        return total
    return F.conv2d(g, turned_weight, padding=conv_padding)


def _filter_gradient(g: Tensor, x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    size, few_channels = weight.shape[2], weight.shape[1] <= _COLOURS
    if not padding and (not few_channels or size == 1):
        return _by_products(g, x, weight, stride)
    if stride > 1 and x.shape[2] < size:  # 2 x 2, as at the end of ResNet-18 on 32 x 32 images
        return _by_products(g, _zero_padded(x, (padding, padding), padding), weight, stride)
    if few_channels or not arithmetic.wide():
        return _backward(g, x, weight, stride, (padding, padding), (False, True))[1]
    margin = size // 2 + 1  # one row more than the AVX-512 kernel takes
    lead_rows = -(margin - padding) % stride  # rows of zeros above the image, so that the old places stay among the new ones
    top = (margin + lead_rows - padding) // stride
    bottom = (x.shape[2] + lead_rows + 2 * margin - size) // stride + 1 - top - g.shape[2]
    return _backward(
        _zero_padded(g, (top, bottom), 0), _zero_padded(x, (lead_rows, 0), 0), weight, stride, (margin, padding), (False, True)
    )[1]


def _by_products(g: Tensor, x: Tensor, weight: Tensor, stride: int) -> Tensor:
    """The weight gradient by im2col: one matrix product for each group of images, small enough to stay in cache."""
    (batch, channels, height, width), (out, _, rows, columns), places = x.shape, weight.shape, g.shape[2:]
    shape = (batch, *places, rows, columns * channels)
    image_stride, row_stride, place_stride = height * width * channels, width * channels, channels
    patches = x.as_strided(shape, (image_stride, stride * row_stride, stride * place_stride, row_stride, 1))
    group_size = max(1, kernels.BLOCK // places.numel())
    total: Tensor | None = None
    for patch_group, g_group in zip(patches.split(group_size), g.permute(0, 2, 3, 1).split(group_size), strict=True):
        partial_sum = kernels.product(g_group.reshape(-1, out).mT, patch_group.reshape(-1, rows * columns * channels))
        total = partial_sum if total is None else total.add_(partial_sum)
    assert total is not None
    return total.view(out, rows, columns, channels).permute(0, 3, 1, 2)


def _zero_padded(x: Tensor, rows: tuple[int, int], columns: int) -> Tensor:
    """Zero-pads x [B, C, H, W]: `rows` = (top, bottom), `columns` on each side; channels last."""
    if not any(rows) and not columns:
        return x
    (top, bottom), (batch, channels, height, width) = rows, x.shape
    shape = (batch, channels, top + height + bottom, columns + width + columns)
    framed_x = torch.empty(shape, dtype=x.dtype, memory_format=_LAST)
    for edge in (
        framed_x[:, :, :top],
        framed_x[:, :, top + height :],
        framed_x[..., :columns],
        framed_x[..., columns + width :],
    ):
        edge.zero_()
    framed_x[:, :, top : top + height, columns : columns + width] = x
    return framed_x


def _backward(
    g: Tensor, x: Tensor, weight: Tensor, stride: int, padding: tuple[int, int], needs_grad: tuple[bool, bool]
) -> tuple[Tensor, Tensor]:
    gradients = torch.ops.aten.convolution_backward(
        g, x, weight, None, [stride, stride], list(padding), [1, 1], False, [0, 0], 1, [*needs_grad, False]
    )
    return gradients[0], gradients[1]
