"""Convolutions in portable arithmetic: right values, and the same bits in both forms of the filters' gradient."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from fedrepro import arithmetic
from fedrepro.models import convolutions, kernels, ops
from tests.helpers.processor import needs_avx2, needs_avx512, python

pytestmark = needs_avx2

# batch, channels, out, height, width, filter, stride, padding: those of the models, and unusual ones
CASES = [
    (2, 256, 512, 2, 2, (3, 3), 2, 1),
    (5, 1, 16, 28, 28, (5, 5), 1, 2),
    (3, 1, 8, 9, 12, (5, 5), 1, 0),
    (4, 3, 32, 32, 32, (3, 3), 1, 1),
    (6, 3, 64, 20, 20, (7, 7), 2, 3),
    (9, 32, 64, 15, 15, (3, 3), 1, 0),
    (7, 64, 64, 6, 6, (3, 3), 1, 0),
    (3, 32, 64, 30, 30, (5, 5), 1, 0),
    (5, 16, 32, 14, 14, (5, 5), 1, 2),
    (5, 64, 128, 7, 7, (5, 5), 1, 2),
    (5, 16, 16, 8, 10, (3, 3), 1, 1),
    (5, 16, 32, 9, 8, (3, 3), 2, 1),
    (4, 16, 32, 8, 8, (3, 3), 2, 0),
    (5, 16, 32, 8, 7, (1, 1), 2, 0),
    (5, 16, 14, 8, 8, (1, 1), 1, 0),
    (4, 8, 6, 8, 9, (3, 1), 1, 0),
    (1, 16, 32, 32, 32, (3, 3), 2, 1),
    (1, 16, 32, 16, 16, (3, 3), 1, 1),
    (1, 1, 16, 13, 13, (3, 3), 1, 0),
    (1, 3, 10, 7, 7, (1, 1), 2, 0),
    (1, 32, 64, 15, 15, (3, 3), 1, 0),
    (2, 64, 128, 1, 1, (1, 1), 2, 0),
    (3, 256, 512, 2, 2, (3, 3), 1, 1),
]


def tensors(case: tuple) -> tuple[Tensor, Tensor]:
    batch, channels, out, height, width, size, *_ = case
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.rand(*shape, generator=generator) - 0.5  # noqa: E731
    return draw(batch, channels, height, width), draw(out, channels, *size)


def everything(x: Tensor, weight: Tensor, convolve) -> list[Tensor]:
    """Output and both gradients of a loss whose gradient differs at every place."""
    leaves = [x.clone().requires_grad_(), weight.clone().requires_grad_()]
    y = convolve(*leaves)
    return [y.detach(), *torch.autograd.grad((y * y.detach().sin()).sum(), leaves)]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_right(case: tuple, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forms for AVX2 and AVX-512 differ from float64 by less than 1e-5 of the largest number."""
    monkeypatch.setattr(arithmetic, "wide", lambda: wide)
    x, weight = tensors(case)
    *_, stride, padding = case
    found = everything(x, weight, lambda x, w: ops.conv2d(x, w, stride=stride, padding=padding))
    exact = everything(x.double(), weight.double(), lambda x, w: F.conv2d(x, w, stride=stride, padding=padding))
    for one, other in zip(found, exact, strict=True):
        assert (one.double() - other).abs().max() < 1e-5 * other.abs().max()


@pytest.mark.parametrize("case", CASES)
def test_both_forms_have_the_same_bits(case: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    """The margin of zeros and the two channels of zeros do not matter."""
    x, weight = tensors(case)
    *_, stride, padding = case
    results = []
    for wide in (False, True):
        monkeypatch.setattr(arithmetic, "wide", lambda wide=wide: wide)
        results.append(everything(x, weight, lambda x, w: convolutions.conv2d(x, w, stride, padding)))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


@needs_avx512
def test_both_widths_have_the_same_bits() -> None:
    """A process with only AVX2 and one with AVX-512 give the same output and gradients in all cases."""
    code = """
from hashlib import sha256
from fedrepro import arithmetic
arithmetic.use("portable")
WIDTH
from tests.unit.models import test_convolutions as t
for case in t.CASES:
    found = t.everything(*t.tensors(case), lambda x, w: t.convolutions.conv2d(x, w, *case[-2:]))
    print(case, *(sha256(part.contiguous().numpy().tobytes()).hexdigest() for part in found))
"""
    narrow, wide = python(code.replace("WIDTH", "")), python(code.replace("WIDTH", "arithmetic.widen()"))
    assert len(narrow.stdout.splitlines()) == len(CASES), narrow.stderr[-3000:]
    assert wide.stdout.splitlines() == narrow.stdout.splitlines(), wide.stderr[-3000:]


@pytest.mark.parametrize("rows", [5, 512, 700, 1024, 1700])
def test_a_product_is_added_up_in_blocks(rows: int) -> None:
    """Blocks have 512 terms, and each is summed from zero by fused multiply-adds in ascending order. The test computes this in
    float64, which holds every product of two float32 numbers and, except for one in millions, rounds a sum as a fused
    multiply-add does."""
    generator = torch.Generator().manual_seed(rows)
    a, b = (torch.rand(*shape, generator=generator) - 0.5 for shape in ((24, rows), (rows, 64)))
    total = None
    for start in range(0, rows, kernels.BLOCK):
        part = torch.zeros(24, 64)
        for k in range(start, min(rows, start + kernels.BLOCK)):
            part = (a[:, k : k + 1].double() * b[k].double() + part.double()).float()
        total = part if total is None else total + part
    assert torch.equal(kernels._product(a, b), total)
    assert torch.equal(kernels._product(a.mT.contiguous().mT, b.mT.contiguous().mT), total)
