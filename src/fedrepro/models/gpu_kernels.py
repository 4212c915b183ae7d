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
    tall, wide = height - size + 1, width - size + 1
    y = x.new_empty(clients, batch, out, tall, wide)
    places, block = batch * tall * wide, _block(out)
    grid = (triton.cdiv(places, PLACES), triton.cdiv(out, block), clients)
    shapes = {"channels": channels, "height": height, "width": width, "out": out, "size": size}
    terms = channels * size * size
    # With few output channels and long sums the images are the right factor, so that neighbours in memory are read together.
    how = {
        "M": PLACES,
        "N": block,
        "R": 32 if terms % 16 else 16,
        "turned": out <= 32 and terms > 32,
        "precision": _precision(),
    }
    _correlate[grid](x, weight, y, batch, **shapes, **how, num_warps=WARPS)
    return y


def weight_gradient(x: Tensor, g: Tensor, size: int) -> Tensor:
    """The gradient of weights [K, out, C, size, size], from x [K, B, C, H, W] and g [K, B, out, H - size + 1, W - size + 1].
    Both are contiguous."""
    (clients, batch, channels, height, width), out = x.shape, g.shape[2]
    terms, places, block = channels * size * size, batch * g.shape[3] * g.shape[4], _block(out)
    across = 64 if terms > 32 else 32
    blocks = triton.cdiv(terms, across) * triton.cdiv(out, block)
    parts = max(1, min(PROGRAMS // max(1, clients * blocks), places // (8 * STEP)))
    each = triton.cdiv(triton.cdiv(places, parts), STEP) * STEP
    found = x.new_empty(parts, clients, out, channels, size, size)
    shapes = {"channels": channels, "height": height, "width": width, "out": out, "size": size}
    how = {"M": STEP, "N": block, "R": across, "precision": _precision()}
    _weight_gradient[(blocks, parts, clients)](x, g, found, batch, each, **shapes, **how, num_warps=WARPS)
    return found[0] if parts == 1 else found.sum(0)


def pool_relu(y: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """(max(0, maxima + bias), the place of each maximum among the four) for 2 x 2 windows of y [K, B, C, H, W]; bias [K, C]."""
    clients, batch, channels, height, width = y.shape
    found = y.new_empty(clients, batch, channels, height // 2, width // 2)
    place = torch.empty_like(found, dtype=torch.uint8)
    if found.numel():
        shapes = {"channels": channels, "height": height, "width": width}
        grid = (triton.cdiv(found.numel() // clients, ELEMENTS), clients)
        _pool_relu[grid](y, bias, found, place, batch, **shapes, N=ELEMENTS)
    return found, place


def unpool(g: Tensor, place: Tensor, shape: torch.Size) -> Tensor:
    """The gradient [K, B, C, H, W] of `shape`: each value of g at the place of its maximum, 0 elsewhere."""
    height, width = shape[-2:]
    found = g.new_zeros(shape) if height % 2 or width % 2 else g.new_empty(shape)
    if g.numel():
        per_client = math.prod(g.shape[1:])
        grid = (triton.cdiv(per_client, ELEMENTS), shape[0])
        _unpool[grid](g, place, found, per_client, math.prod(shape[1:]), height=height, width=width, N=ELEMENTS)
    return found


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
    wide: tl.constexpr = width - size + 1
    plane: tl.constexpr = (height - size + 1) * wide
    terms: tl.constexpr = channels * size * size
    m = tl.program_id(0) * M + tl.arange(0, M)
    n = tl.program_id(1) * N + tl.arange(0, N)
    image, place = m // plane, m % plane
    x += client * batch * channels * height * width
    start = image * (channels * height * width) + place // wide * width + place % wide
    here = m < batch * plane
    weight += client * out * terms
    y += client * batch * out * plane
    at = image * (out * plane) + place
    found = tl.zeros((N, M) if turned else (M, N), dtype=tl.float32)
    for first in range(0, terms, R):
        r = first + tl.arange(0, R)
        tap = r % (size * size)
        offset = r // (size * size) * (height * width) + tap // size * width + tap % size
        if turned:
            a = tl.load(weight + n[:, None] * terms + r[None, :], mask=(n < out)[:, None] & (r < terms)[None, :], other=0.0)
            b = tl.load(x + offset[:, None] + start[None, :], mask=(r < terms)[:, None] & here[None, :], other=0.0)
        else:
            a = tl.load(x + start[:, None] + offset[None, :], mask=here[:, None] & (r < terms)[None, :], other=0.0)
            b = tl.load(weight + n[None, :] * terms + r[:, None], mask=(n < out)[None, :] & (r < terms)[:, None], other=0.0)
        found = tl.dot(a, b, found, input_precision=precision)
    if turned:
        tl.store(y + n[:, None] * plane + at[None, :], found, mask=(n < out)[:, None] & here[None, :])
    else:
        tl.store(y + at[:, None] + n[None, :] * plane, found, mask=here[:, None] & (n < out)[None, :])


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
    wide: tl.constexpr = width - size + 1
    plane: tl.constexpr = (height - size + 1) * wide
    terms: tl.constexpr = channels * size * size
    across: tl.constexpr = (terms + R - 1) // R
    r = tl.program_id(0) % across * R + tl.arange(0, R)
    n = tl.program_id(0) // across * N + tl.arange(0, N)
    tap = r % (size * size)
    offset = r // (size * size) * (height * width) + tap // size * width + tap % size
    x += client * batch * channels * height * width
    g += client * batch * out * plane
    total = tl.zeros((N, R), dtype=tl.float32)
    begin = tl.program_id(1) * each
    for first in range(begin, begin + each, M):
        m = first + tl.arange(0, M)
        here = m < batch * plane
        image, place = m // plane, m % plane
        at = image * (out * plane) + place
        a = tl.load(g + at[None, :] + n[:, None] * plane, mask=here[None, :] & (n < out)[:, None], other=0.0)
        start = image * (channels * height * width) + place // wide * width + place % wide
        b = tl.load(x + start[:, None] + offset[None, :], mask=here[:, None] & (r < terms)[None, :], other=0.0)
        total = tl.dot(a, b, total, input_precision=precision)
    found += (tl.program_id(1) * tl.num_programs(2) + client) * out * terms
    tl.store(found + n[:, None] * terms + r[None, :], total, mask=(n < out)[:, None] & (r < terms)[None, :])


@triton.jit
def _pool_relu(
    y, bias, found, place, batch, channels: tl.constexpr, height: tl.constexpr, width: tl.constexpr, N: tl.constexpr
):
    client = tl.program_id(1).to(tl.int64)
    wide: tl.constexpr = width // 2
    plane: tl.constexpr = height // 2 * wide
    i = tl.program_id(0) * N + tl.arange(0, N)
    here = i < batch * channels * plane
    image, inside = i // plane, i % plane  # within one channel
    at = y + client * batch * channels * height * width + image * (height * width)
    at += inside // wide * (2 * width) + inside % wide * 2
    best = tl.load(at, mask=here, other=0.0)
    which = tl.zeros((N,), dtype=tl.int32)
    for one in tl.static_range(1, 4):
        value = tl.load(at + one // 2 * width + one % 2, mask=here, other=0.0)
        larger = (value > best) | (value != value)
        best, which = tl.where(larger, value, best), tl.where(larger, one, which)
    best += tl.load(bias + client * channels + image % channels, mask=here, other=0.0)
    out = client * batch * channels * plane + i
    tl.store(found + out, tl.where(best < 0, 0.0, best), mask=here)
    tl.store(place + out, which.to(tl.uint8), mask=here)


@triton.jit
def _unpool(g, place, found, per_client, per_client_found, height: tl.constexpr, width: tl.constexpr, N: tl.constexpr):
    client = tl.program_id(1).to(tl.int64)
    wide: tl.constexpr = width // 2
    plane: tl.constexpr = height // 2 * wide
    i = tl.program_id(0) * N + tl.arange(0, N)
    here = i < per_client
    value = tl.load(g + client * per_client + i, mask=here, other=0.0)
    which = tl.load(place + client * per_client + i, mask=here, other=0)
    inside = i % plane
    at = found + client * per_client_found + i // plane * (height * width) + inside // wide * (2 * width) + inside % wide * 2
    for one in tl.static_range(4):
        tl.store(at + one // 2 * width + one % 2, tl.where(which == one, value, 0.0), mask=here)
