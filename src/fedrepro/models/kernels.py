"""Which kernel multiplies matrices in linear layers on a CPU: chosen by the type of processor, never by timing.

torch hands float32 products to MKL, which takes its AVX2 path on AMD. Zen 5 (EPYC, family 26, model 2) has units of twice that
width, which oneDNN uses: 176 GFLOP/s a core for a layer of 784 to 512 units and batches of 128, against 93 (measured). On EPYC
of family 25, model 17, both reach 95 for large products and MKL is faster for small ones (measured). The choice changes the
last bits of results, so it depends on nothing but the table below, is checked once a process against exact products, and is
recorded in a run's environment.
"""

from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

# (vendor, family) as in /proc/cpuinfo -> kernel; all others take torch's own.
TABLE = {("AuthenticAMD", "26"): "onednn"}
# Multiplications below which a product is not worth oneDNN's overhead of 17 us, whatever its shape (measured).
LEAST = 2**21


@cache
def linear_kernel() -> str:
    """ "onednn" where the table says so and it works here, otherwise "aten"."""
    return "onednn" if TABLE.get(processor()) == "onednn" and works() else "aten"


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, str]:
    """(vendor, family) of the first processor; empty strings where that cannot be told."""
    try:
        lines = [line.partition(":") for line in cpuinfo.read_text().splitlines()]
    except OSError:
        return "", ""
    found = {key.strip(): value.strip() for key, _, value in reversed(lines)}
    return found.get("vendor_id", ""), found.get("cpu family", "")


def works() -> bool:
    """Whether oneDNN's products are there and exact for small whole numbers, which float32 holds."""
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
    """The positive part of `linear`; without gradients in one pass where the kernel can."""
    if torch.is_grad_enabled() or not _by_onednn(x, weight.shape[0]):
        return F.relu(linear(x, weight, bias))
    return _onednn(x, weight, bias, "relu")


def product(a: Tensor, b: Tensor) -> Tensor:
    """a [m, k] times b [k, n], without gradients."""
    return _onednn(a, b.mT, None) if _by_onednn(a, b.shape[1]) else torch.mm(a, b)


def _by_onednn(a: Tensor, columns: int) -> bool:
    if a.dim() != 2 or not a.is_cpu or a.dtype is not torch.float32:
        return False
    rows, terms = a.shape
    large = rows * terms * columns >= LEAST
    return large and linear_kernel() == "onednn" and not torch.is_autocast_enabled("cpu")


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None, then: str = "none") -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, then, [], "")


class _Linear(torch.autograd.Function):
    """`linear` with all three of its products by oneDNN."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):  # type: ignore[override]
        x, weight = ctx.saved_tensors
        to_x = product(g, weight) if ctx.needs_input_grad[0] else None
        return to_x, product(g.mT, x), g.sum(0)
