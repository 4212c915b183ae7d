"""Checks whether this process computes as portable arithmetic promises, by small computations whose bits are known.

There is one hash for each kind of operation that training uses. A library, build or processor that adds in another order is
noticed before it trains anything, and not after its numbers have been published.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fedrepro import arithmetic, elementwise
from fedrepro.errors import UserError
from fedrepro.models import kernels, ops

# torch 2.13.0 with the libraries of requirements.lock.
ANSWERS = {
    "linear layers": "2b164bb8604df79d",
    "small products": "d7ad1c615be32a76",
    "functions and sums": "b1ab8af09d71f43e",
    "NumPy": "e217d9ef5fb8b099",
    "convolutions": "76884a4318dfcd04",
    "group norms": "22bd1d708aa15e0b",
}


@cache
def require() -> None:
    """In portable arithmetic: UserError that names the first kind of operation whose bits differ from the known ones.

    The known bits are those of one thread, as in a training (`environment.prepare`). Call it before oneDNN's first use in this
    process: if oneDNN is set to use AVX-512 and that gives other bits, it stays at AVX2.
    """
    if arithmetic.current() != "portable" or (arithmetic.wide() and _agrees_in_child()):
        return
    arithmetic.narrow()
    for kind, digest in compute().items():
        if digest != ANSWERS[kind]:
            raise UserError(
                f"arithmetic = portable: {kind} give other bits here than they should (torch {torch.__version__}, "
                f"{torch.backends.cpu.get_cpu_capability()}); install requirements.lock with `make env`, or set "
                "arithmetic: native in params.yaml or give --arithmetic native"
            )


def compute() -> dict[str, str]:
    """Kind of operation -> its hash, 16 hex digits."""
    functions = {
        "linear layers": _linear_layers,
        "small products": _small_products,
        "functions and sums": _functions,
        "NumPy": _numpy,
        "convolutions": _convolutions,
        "group norms": _group_norms,
    }
    return {kind: _digest(function) for kind, function in functions.items()}


def _agrees_in_child() -> bool:
    """Whether a fork of this process finds the known answers. A fork, since oneDNN's first use fixes its instructions."""
    pid = os.fork()
    if pid == 0:
        agrees = False
        try:
            agrees = compute() == ANSWERS
        finally:
            os._exit(not agrees)
    return os.waitpid(pid, 0)[1] == 0


def _digest(function: Callable[[np.random.Generator], Iterator[Tensor]]) -> str:
    digest = hashlib.sha256()
    for tensor in function(np.random.default_rng(0)):
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _random(generator: np.random.Generator, *shape: int) -> Tensor:
    return torch.from_numpy(generator.random(shape, np.float32) - np.float32(0.5))


def _linear_layers(generator: np.random.Generator) -> Iterator[Tensor]:
    for rows, terms, columns in ((24, 512, 40), (40, 784, 32), (9, 1200, 130)):
        a, b, bias = (_random(generator, *shape) for shape in ((rows, terms), (columns, terms), (columns,)))
        yield kernels.product(a, b.mT)
        yield kernels.product(a, b.mT.contiguous())
        with torch.no_grad():
            yield kernels.linear_relu(a, b, bias)


def _small_products(generator: np.random.Generator) -> Iterator[Tensor]:
    a, b, vector = (_random(generator, *shape) for shape in ((7, 33), (33, 18), (33,)))
    yield torch.mm(a, b)
    yield a @ vector
    yield F.linear(a, b.mT, vector[:18])
    yield torch.bmm(a.expand(3, 7, 33), b.expand(3, 33, 18))
    yield a.double() @ b.double()


def _functions(generator: np.random.Generator) -> Iterator[Tensor]:
    x = _random(generator, 13, 37) * 20
    yield from (x.exp(), x.abs().log(), x.tanh(), x.softmax(1), x.log_softmax(0), F.softplus(x), x.abs().rsqrt())
    yield from (elementwise.sqrt(x.abs()), elementwise.log(x.abs().double()))
    yield from (x.sum(0), x.sum(1), x.mean(), x.var(1), torch.linalg.vector_norm(x, dim=1), x.double().square().sum())


def _numpy(generator: np.random.Generator) -> Iterator[Tensor]:
    a, v = generator.random((9, 9)), generator.standard_normal(200)
    for result in (a @ a, a @ a[0], np.exp(v), np.log(np.abs(v)), generator.standard_gamma(0.3, 50), v.sum(), a.mean(axis=0)):
        yield torch.from_numpy(np.atleast_1d(result))


def _convolutions(generator: np.random.Generator) -> Iterator[Tensor]:
    for channels, out, size, stride, padding in (
        (1, 16, 5, 1, 0),
        (3, 32, 3, 1, 1),
        (32, 48, 3, 1, 1),
        (32, 32, 3, 2, 1),
        (16, 32, 5, 1, 0),
    ):
        x, w = _random(generator, 3, channels, 12, 12), _random(generator, out, channels, size, size)
        leaves = [x.requires_grad_(), w.requires_grad_()] if channels > 3 else [w.requires_grad_()]
        y = F.batch_norm(ops.conv2d(x, w, stride=stride, padding=padding), None, None, training=True)
        yield y
        yield from torch.autograd.grad(y.square().sum() + F.max_pool2d(y, 2).sum(), leaves)
        yield torch.autograd.grad(ops.conv2d(x[:1], w, stride=stride, padding=padding).square().sum(), w)[0]


def _group_norms(generator: np.random.Generator) -> Iterator[Tensor]:
    for channels, side in ((16, 32), (64, 8)):  # torch has one kernel for many places per image and one for few
        x, w, b = (_random(generator, *shape) for shape in ((3, channels, side, side), (channels,), (channels,)))
        x = x.contiguous(memory_format=torch.channels_last)
        y = ops.group_norm(x.requires_grad_(), 2, w.requires_grad_(), b.requires_grad_())
        yield y
        yield from torch.autograd.grad(y.square().sum() + y.sum(), [x, w, b])
