"""The kernels of `fedrepro.models.gpu`, in Triton. M places of output, R terms of a sum (channels by places of a weight).

The block sizes are fixed, by measurement on one H200: the order of each sum depends only on shapes.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

PLACES = 128  # places per block of the output
STEP = 64  # places per step in the sum of a weight's gradient
WARPS = 4
PROGRAMS = 528  # the number to aim for in a weight's gradient, four for each of an H200's multiprocessors
ELEMENTS = 1024


def correlate(x: Tensor, weight: Tensor) -> Tensor:
    """x [K, B, C, H, W], weight [K, out, C, k, k], both contiguous -> [K, B, out, H - k + 1, W - k + 1]."""
    clients, batch, channels, height, width = x.shape
    out, size = weight.shape[1], weight.shape[-1]
    out_height, out_width = height - size + 1, width - size + 1
    y = x.new_empty(clients, batch, out, out_height, out_width)
    places, block = batch * out_height * out_width, _block(out)
    grid = (triton.cdiv(places, PLACES), triton.cdiv(out, block), clients)
    shapes = {"channels": channels, "height": height, "width": width, "out": out, "size": size}
    terms = channels * size * size
    # With few output channels and long sums the images are the right factor, so that neighbours in memory are read together.
    options = {
        "M": PLACES,
        "N": block,
        "R": 32 if terms % 16 else 16,
        "turned": out <= 32 and terms > 32,
        "precision": _precision(),
    }
    _correlate[grid](x, weight, y, batch, **shapes, **options, num_warps=WARPS)
    return y


def weight_gradient(x: Tensor, g: Tensor, size: int) -> Tensor:
    """The gradient of weights [K, out, C, size, size], from x [K, B, C, H, W] and g [K, B, out, H - size + 1, W - size + 1].
    Both are contiguous."""
    (clients, batch, channels, height, width), out = x.shape, g.shape[2]
    terms, places, block = channels * size * size, batch * g.shape[3] * g.shape[4], _block(out)
    block_terms = 64 if terms > 32 else 32
    blocks = triton.cdiv(terms, block_terms) * triton.cdiv(out, block)
    parts = max(1, min(PROGRAMS // max(1, clients * blocks), places // (8 * STEP)))
    places_per_part = triton.cdiv(triton.cdiv(places, parts), STEP) * STEP
    partial_gradients = x.new_empty(parts, clients, out, channels, size, size)
    shapes = {"channels": channels, "height": height, "width": width, "out": out, "size": size}
    options = {"M": STEP, "N": block, "R": block_terms, "precision": _precision()}
    _weight_gradient[(blocks, parts, clients)](
        x, g, partial_gradients, batch, places_per_part, **shapes, **options, num_warps=WARPS
    )
    return partial_gradients[0] if parts == 1 else partial_gradients.sum(0)


def pool_relu(y: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """(max(0, maxima + bias), the place of each maximum among the four) for 2 x 2 windows of y [K, B, C, H, W]; bias [K, C]."""
    clients, batch, channels, height, width = y.shape
    outputs = y.new_empty(clients, batch, channels, height // 2, width // 2)
    place = torch.empty_like(outputs, dtype=torch.uint8)
    if outputs.numel():
        shapes = {"channels": channels, "height": height, "width": width}
        grid = (triton.cdiv(outputs.numel() // clients, ELEMENTS), clients)
        _pool_relu[grid](y, bias, outputs, place, batch, **shapes, N=ELEMENTS)
    return outputs, place


def unpool(g: Tensor, place: Tensor, shape: torch.Size) -> Tensor:
    """The gradient [K, B, C, H, W] of `shape`: each value of g at the place of its maximum, 0 elsewhere."""
    height, width = shape[-2:]
    gradient = g.new_zeros(shape) if height % 2 or width % 2 else g.new_empty(shape)
    if g.numel():
        per_client = math.prod(g.shape[1:])
        grid = (triton.cdiv(per_client, ELEMENTS), shape[0])
        _unpool[grid](g, place, gradient, per_client, math.prod(shape[1:]), height=height, width=width, N=ELEMENTS)
    return gradient


def _block(out: int) -> int:
    return min(64, max(16, triton.next_power_of_2(out)))


def _precision() -> str:
    return "tf32" if torch.backends.cudnn.allow_tf32 else "tf32x3"


@triton.jit
def _correlate(
    x,
    weight,
    y,
    batch,
    channels: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    out: tl.constexpr,
    size: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    R: tl.constexpr,
    turned: tl.constexpr,
    precision: tl.constexpr,
):
    client = tl.program_id(2).to(tl.int64)
    out_width: tl.constexpr = width - size + 1
    plane: tl.constexpr = (height - size + 1) * out_width
    terms: tl.constexpr = channels * size * size
    m = tl.program_id(0) * M + tl.arange(0, M)
    n = tl.program_id(1) * N + tl.arange(0, N)
    image, place = m // plane, m % plane
    x += client * batch * channels * height * width
    start = image * (channels * height * width) + place // out_width * width + place % out_width
    place_mask = m < batch * plane
    weight += client * out * terms
    y += client * batch * out * plane
    out_offset = image * (out * plane) + place
    total = tl.zeros((N, M) if turned else (M, N), dtype=tl.float32)
    for first_term in range(0, terms, R):
        r = first_term + tl.arange(0, R)
        tap = r % (size * size)
        offset = r // (size * size) * (height * width) + tap // size * width + tap % size
        if turned:
            a = tl.load(weight + n[:, None] * terms + r[None, :], mask=(n < out)[:, None] & (r < terms)[None, :], other=0.0)
            b = tl.load(x + offset[:, None] + start[None, :], mask=(r < terms)[:, None] & place_mask[None, :], other=0.0)
        else:
            a = tl.load(x + start[:, None] + offset[None, :], mask=place_mask[:, None] & (r < terms)[None, :], other=0.0)
            b = tl.load(weight + n[None, :] * terms + r[:, None], mask=(n < out)[None, :] & (r < terms)[:, None], other=0.0)
        total = tl.dot(a, b, total, input_precision=precision)
    if turned:
        tl.store(y + n[:, None] * plane + out_offset[None, :], total, mask=(n < out)[:, None] & place_mask[None, :])
    else:
        tl.store(y + out_offset[:, None] + n[None, :] * plane, total, mask=place_mask[:, None] & (n < out)[None, :])


@triton.jit
def _weight_gradient(
    x,
    g,
    found,
    batch,
    each,
    channels: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    out: tl.constexpr,
    size: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    R: tl.constexpr,
    precision: tl.constexpr,
):
    client = tl.program_id(2).to(tl.int64)
    out_width: tl.constexpr = width - size + 1
    plane: tl.constexpr = (height - size + 1) * out_width
    terms: tl.constexpr = channels * size * size
    term_blocks: tl.constexpr = (terms + R - 1) // R
    r = tl.program_id(0) % term_blocks * R + tl.arange(0, R)
    n = tl.program_id(0) // term_blocks * N + tl.arange(0, N)
    tap = r % (size * size)
    offset = r // (size * size) * (height * width) + tap // size * width + tap % size
    x += client * batch * channels * height * width
    g += client * batch * out * plane
    total = tl.zeros((N, R), dtype=tl.float32)
    begin = tl.program_id(1) * each
    for first_place in range(begin, begin + each, M):
        m = first_place + tl.arange(0, M)
        place_mask = m < batch * plane
        image, place = m // plane, m % plane
        g_offset = image * (out * plane) + place
        a = tl.load(g + g_offset[None, :] + n[:, None] * plane, mask=place_mask[None, :] & (n < out)[:, None], other=0.0)
        start = image * (channels * height * width) + place // out_width * width + place % out_width
        b = tl.load(x + start[:, None] + offset[None, :], mask=place_mask[:, None] & (r < terms)[None, :], other=0.0)
        total = tl.dot(a, b, total, input_precision=precision)
    found += (tl.program_id(1) * tl.num_programs(2) + client) * out * terms
    tl.store(found + n[:, None] * terms + r[None, :], total, mask=(n < out)[:, None] & (r < terms)[None, :])


@triton.jit
def _pool_relu(
    y, bias, found, place, batch, channels: tl.constexpr, height: tl.constexpr, width: tl.constexpr, N: tl.constexpr
):
    client = tl.program_id(1).to(tl.int64)
    out_width: tl.constexpr = width // 2
    plane: tl.constexpr = height // 2 * out_width
    i = tl.program_id(0) * N + tl.arange(0, N)
    mask = i < batch * channels * plane
    image, out_place = i // plane, i % plane  # within one channel
    window = y + client * batch * channels * height * width + image * (height * width)
    window += out_place // out_width * (2 * width) + out_place % out_width * 2
    best = tl.load(window, mask=mask, other=0.0)
    best_index = tl.zeros((N,), dtype=tl.int32)
    for index in tl.static_range(1, 4):
        value = tl.load(window + index // 2 * width + index % 2, mask=mask, other=0.0)
        is_larger = (value > best) | (value != value)
        best, best_index = tl.where(is_larger, value, best), tl.where(is_larger, index, best_index)
    best += tl.load(bias + client * channels + image % channels, mask=mask, other=0.0)
    out_offset = client * batch * channels * plane + i
    tl.store(found + out_offset, tl.where(best < 0, 0.0, best), mask=mask)
    tl.store(place + out_offset, best_index.to(tl.uint8), mask=mask)


@triton.jit
def _unpool(g, place, found, per_client, per_client_found, height: tl.constexpr, width: tl.constexpr, N: tl.constexpr):
    client = tl.program_id(1).to(tl.int64)
    out_width: tl.constexpr = width // 2
    plane: tl.constexpr = height // 2 * out_width
    i = tl.program_id(0) * N + tl.arange(0, N)
    mask = i < per_client
    value = tl.load(g + client * per_client + i, mask=mask, other=0.0)
    best_index = tl.load(place + client * per_client + i, mask=mask, other=0)
    out_place = i % plane
    window = (
        found
        + client * per_client_found
        + i // plane * (height * width)
        + out_place // out_width * (2 * width)
        + out_place % out_width * 2
    )
    for index in tl.static_range(4):
        tl.store(window + index // 2 * width + index % 2, tl.where(best_index == index, value, 0.0), mask=mask)
