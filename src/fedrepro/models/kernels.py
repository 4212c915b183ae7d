"""Products in linear layers on a CPU: the kernel that computes them, and the order in which a sum is added up.

torch leaves float32 products to MKL. oneDNN is faster for large ones if MKL does not use a processor's widest units, and in
portable arithmetic, which restricts MKL to code that runs everywhere.

Portable arithmetic defines a product: the terms of each element are taken 512 at a time, a block is summed by fused
multiply-adds in ascending order from zero, and blocks are added in ascending order. Within a block oneDNN's kernels for AVX2
and for AVX-512 both do exactly that (measured against this definition, and each process checks known answers). So the result
does not depend on the width of a processor's units. Small products go to MKL in its portable mode. A product's shape decides,
never the processor or the clock.

Native arithmetic takes the kernel that suits the processor, by the table below. Zen 5 (EPYC, family 26, model 2) has units that
oneDNN uses and MKL does not: 176 GFLOP/s per core for a layer of 784 to 512 units and batches of 128, against 93 (measured). On
EPYC of family 25, model 17, both reach 95. A run's environment records the choice.
"""

from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from fedrepro import arithmetic

# (vendor, family) as in /proc/cpuinfo -> kernel. All others take torch's own.
TABLE = {("AuthenticAMD", "26"): "onednn"}
# Multiplications below which a product is not worth oneDNN's overhead of 17 us, whatever its shape (measured).
LEAST_PRODUCT = 2**21
# The same against MKL's portable mode, which takes twice the time of its native one, for each block (measured).
LEAST_PORTABLE = 2**18
BLOCK = 512


@cache
def linear_kernel() -> str:
    """The kernel: portable in that arithmetic; otherwise onednn if the table says so and it works here, or aten."""
    if arithmetic.current() == "portable":
        return "portable"
    return "onednn" if TABLE.get(processor()) == "onednn" and onednn_works() else "aten"


def portable(x: Tensor) -> bool:
    """Whether layers use the forms of portable arithmetic for inputs like `x`: float32 on a CPU, without autocast."""
    is_cpu_float32 = x.is_cpu and x.dtype is torch.float32
    return is_cpu_float32 and linear_kernel() == "portable" and not torch.is_autocast_enabled("cpu")


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, str]:
    """(vendor, family) of the first processor. Empty strings if they are unknown."""
    try:
        lines = [line.partition(":") for line in cpuinfo.read_text().splitlines()]
    except OSError:
        return "", ""
    fields = {key.strip(): value.strip() for key, _, value in reversed(lines)}
    return fields.get("vendor_id", ""), fields.get("cpu family", "")


def onednn_works() -> bool:
    """Whether oneDNN's products exist here and are exact for small whole numbers, which float32 holds."""
    a = torch.arange(64 * 48, dtype=torch.float32).reshape(64, 48) % 7 - 3
    b = torch.arange(48 * 40, dtype=torch.float32).reshape(48, 40) % 5 - 2
    exact = (a.double() @ b.double()).float()
    try:
        return torch.equal(_onednn(a, b.mT, None), exact) and torch.equal(_onednn(a, b.mT, None, "relu"), exact.relu())
    except (AttributeError, RuntimeError):
        return False


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W' + b for x [B, in], weight [out, in], bias [out]."""
    if _by_onednn(x, weight.shape[0]):
        return _Linear.apply(x, weight, bias)  # type: ignore[return-value]
    return F.linear(x, weight, bias)


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The positive part of `linear`. Without gradients it takes one pass if the kernel can do that."""
    if torch.is_grad_enabled() or not _by_onednn(x, weight.shape[0]):
        return F.relu(linear(x, weight, bias))
    return _product(x, weight.mT, bias, "relu")


def product(a: Tensor, b: Tensor) -> Tensor:
    """a [m, k] times b [k, n], without gradients."""
    return _product(a, b) if _by_onednn(a, b.shape[1]) else torch.mm(a, b)


def turned_product(a: Tensor, b: Tensor) -> Tensor:
    """a' b for a [k, m] and b [k, n], without gradients: the product of a weight's gradient.

    oneDNN copies a first factor that lies column by column in memory. In portable arithmetic the bits do not depend on which
    factor is first, so the smaller one is first.
    """
    if a.shape[1] > b.shape[1] and linear_kernel() == "portable" and _by_onednn(a.mT, b.shape[1]):
        return _product(b.mT, a).mT
    return product(a.mT, b)


def _by_onednn(a: Tensor, columns: int) -> bool:
    if a.dim() != 2 or not a.is_cpu or a.dtype is not torch.float32:
        return False
    rows, terms = a.shape
    kernel = linear_kernel()
    if kernel == "portable":  # one row or one column would be added up in another order
        is_large = rows > 1 < columns and rows * terms * columns >= LEAST_PORTABLE * -(-terms // BLOCK)
    else:
        is_large = kernel == "onednn" and rows * terms * columns >= LEAST_PRODUCT
    return is_large and not torch.is_autocast_enabled("cpu")


def _product(a: Tensor, b: Tensor, bias: Tensor | None = None, activation: str = "none") -> Tensor:
    """a b + bias by oneDNN, then `activation` (none or relu). In portable arithmetic the product is added up block by block."""
    if linear_kernel() != "portable":
        return _onednn(a, b.mT, bias, activation)
    a, b, terms = _dense(a), _dense(b), a.shape[1]
    if terms <= BLOCK:
        return _onednn(a, b.mT, bias, activation)
    if terms <= 2 * BLOCK and _adds_blocks(a.shape[0], terms, b.shape[1], a.is_contiguous(), b.is_contiguous()):
        return _onednn(a, b.mT, bias, activation)
    y = _blocks(a, b)
    y = y if bias is None else y.add_(bias)
    return y.relu_() if activation == "relu" else y


def _blocks(a: Tensor, b: Tensor) -> Tensor:
    """a b, block by block."""
    block_pairs = zip(a.split(BLOCK, 1), b.split(BLOCK, 0), strict=True)
    total, *terms = (_onednn(_dense(p), _dense(q).mT, None) for p, q in block_pairs)
    for term in terms:
        total.add_(term)
    return total


def _dense(x: Tensor) -> Tensor:
    """`x`, copied if neither its rows nor its columns are contiguous in memory: oneDNN has no fast kernel for that."""
    if x.is_contiguous() or x.mT.is_contiguous():
        return x
    return x.contiguous() if x.stride(1) == 1 else x.mT.contiguous().mT


@lru_cache(None)
def _adds_blocks(rows: int, terms: int, columns: int, by_row_a: bool, by_row_b: bool) -> bool:
    """Whether oneDNN itself adds up such a product block by block, as it does with AVX-512. Tried once per process."""
    generator = np.random.default_rng(0)
    a, b = (
        torch.from_numpy(generator.random(shape, np.float32) if by_row else generator.random(shape[::-1], np.float32).T)
        for shape, by_row in (((rows, terms), by_row_a), ((terms, columns), by_row_b))
    )
    return torch.equal(_onednn(a, b.mT, None), _blocks(a, b))


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str = "none") -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], "")


class _Linear(torch.autograd.Function):
    """`linear` with all three of its products by the kernels here."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight.mT, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):  # type: ignore[override]
        x, weight = ctx.saved_tensors
        grad_x = product(g, weight) if ctx.needs_input_grad[0] else None
        return grad_x, turned_product(g, x), g.sum(0)
