"""Products in linear layers: the choice by processor, and oneDNN's kernel compared with torch's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fedrepro import tree
from fedrepro.models import build, initial, kernels, ops

CPUINFO = "processor\t: 0\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: 2\nmodel name\t: X\n\n"


@pytest.fixture
def onednn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Native arithmetic on a processor for which the table has oneDNN."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this build of torch has no oneDNN")
    assert kernels.onednn_works()
    kernels.linear_kernel.cache_clear()
    monkeypatch.setattr(kernels.arithmetic, "current", lambda: "native")
    monkeypatch.setattr(kernels, "TABLE", {kernels.processor(): "onednn"})
    assert kernels.linear_kernel() == "onednn"
    yield
    kernels.linear_kernel.cache_clear()


@pytest.mark.parametrize(
    ("vendor", "family", "expected"),
    [("AuthenticAMD", "26", "onednn"), ("AuthenticAMD", "25", None), ("GenuineIntel", "26", None), ("GenuineIntel", "6", None)],
)
def test_chosen_by_vendor_and_family(vendor: str, family: str, expected: str | None, tmp_path: Path) -> None:
    """The choice reads the first processor in /proc/cpuinfo, as it is spelled there. A machine without that file has no
    entry."""
    path = tmp_path / "cpuinfo"
    path.write_text(CPUINFO.format(vendor, family) + CPUINFO.format("Other", "99"))
    assert kernels.processor(path) == (vendor, family)
    assert kernels.TABLE.get(kernels.processor(path)) == expected
    assert kernels.processor(tmp_path / "nothing") == ("", "")


def test_a_kernel_that_is_wrong_is_not_taken(monkeypatch: pytest.MonkeyPatch, onednn: None) -> None:
    """If the kernel is wrong in one place or missing, torch's kernel is used."""
    right = kernels._onednn

    def wrong(x, weight, bias, then="none"):
        y = right(x, weight, bias, then)
        y[3, 4] += 1
        return y

    def missing(x, weight, bias, then="none"):
        raise AttributeError("no such operation")

    for broken in (wrong, missing):
        monkeypatch.setattr(kernels, "_onednn", broken)
        kernels.linear_kernel.cache_clear()
        assert kernels.linear_kernel() == "aten"


@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(128, 160, 128), (400, 700, 10), (7, 800, 400), (64, 96, 48)])
def test_same_linear_layer(onednn: None, rows: int, inputs: int, outputs: int) -> None:
    """Output and all three gradients are within 1e-4 of float64, whether the product is large enough for the kernel or not."""
    generator = torch.Generator().manual_seed(0)
    x, w, b = (torch.randn(*shape, generator=generator) for shape in ((rows, inputs), (outputs, inputs), (outputs,)))
    w /= inputs**0.5
    found, expected = [], []
    for results, kind in ((found, torch.float32), (expected, torch.float64)):
        leaves = [t.to(kind).requires_grad_() for t in (x, w, b)]
        y = ops.linear(*leaves) if kind == torch.float32 else torch.nn.functional.linear(*leaves)
        results += [y, *torch.autograd.grad((y**2).sum(), leaves)]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-3)
    by_onednn = type(ops.linear(x.requires_grad_(), w, b).grad_fn).__name__ == "_LinearBackward"
    assert by_onednn == (rows * inputs * outputs >= kernels.LEAST_PRODUCT)


@pytest.mark.parametrize(("terms", "rows", "columns"), [(700, 96, 40), (800, 40, 96), (300, 200, 8), (4, 30, 20), (600, 70, 1)])
def test_a_turned_product(terms: int, rows: int, columns: int) -> None:
    """The bits are those of the plain product of a' and b, whichever factor oneDNN copies and whether the product is large
    enough for it or not."""
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.rand(terms, size, generator=generator) - 0.5 for size in (rows, columns))
    assert torch.equal(kernels.turned_product(a, b), kernels.product(a.mT, b))


def test_relu_in_the_same_pass(onednn: None) -> None:
    """The bits are those of two passes, without gradients and with them."""
    generator = torch.Generator().manual_seed(0)
    x, w, b = (torch.randn(*shape, generator=generator) for shape in ((128, 160), (128, 160), (128,)))
    expected = ops.linear(x, w, b).clamp(min=0)
    with torch.no_grad():
        assert torch.equal(ops.linear_relu(x, w, b), expected)
    y = ops.linear_relu(x.requires_grad_(), w, b)
    assert torch.equal(y, expected)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], kernels.product((expected > 0).float(), w))


def test_same_gradient_of_a_perceptron(onednn: None) -> None:
    """The closed form and autograd, both with oneDNN, agree to 1e-5 in float32."""
    model = build("two_nn", (1, 28, 28), 10)
    params, x = initial.draw(model, 8), torch.rand(64, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    y = torch.arange(64) % 10
    assert model.gradient is not None
    expected = tree.gradient(lambda p: ops.cross_entropy(model.forward(p, model.first_buffers(), x, True)[0], y), params)
    torch.testing.assert_close(model.gradient(params, x, y).flat, expected.flat, rtol=0, atol=1e-5)
