"""Operations with a leading client axis against a loop over clients: values and gradients, in float64."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.models import build, ops
from fedrepro.tree import Tree

K, B = 3, 4


def normal(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


LABELS = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1], [1, 0, 0, 2]])
# name -> (function of tensors with a leading client axis, those tensors)
OPS: dict[str, tuple[Callable[..., Tensor], list[Tensor]]] = {
    "linear": (ops.linear, [normal(K, B, 5), normal(K, 2, 5), normal(K, 2)]),
    "conv2d": (ops.conv2d, [normal(K, B, 2, 6, 5), normal(K, 3, 2, 3, 3), normal(K, 3)]),
    "conv2d, padded": (lambda *t: ops.conv2d(*t, padding=2), [normal(K, B, 2, 6, 5), normal(K, 3, 2, 5, 5), normal(K, 3)]),
    "max_pool2d": (lambda x: ops.max_pool2d(x, 2), [normal(K, B, 2, 6, 5)]),
    "relu": (ops.relu, [normal(K, B, 5)]),
    "flatten": (ops.flatten, [normal(K, B, 2, 3, 4)]),
    "cross_entropy": (lambda logits: ops.cross_entropy(logits, LABELS), [normal(K, B, 3)]),
}


@pytest.mark.parametrize("name", OPS)
def test_stacked_equals_a_loop_over_clients(name: str) -> None:
    """Client k's samples meet client k's weights and nobody else's; gradients too. cross_entropy sums the clients' means."""
    function, tensors = OPS[name]
    stacked = [t.clone().requires_grad_() for t in tensors]
    found = function(*stacked)
    if name == "cross_entropy":
        alone = [[t[k].clone().requires_grad_()] for t in tensors for k in range(K)]
        expected = torch.stack([ops.cross_entropy(*alone[k], LABELS[k]) for k in range(K)]).sum()
    else:
        alone = [[t[k].clone().requires_grad_() for t in tensors] for k in range(K)]
        expected = torch.stack([function(*alone[k]) for k in range(K)])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)

    weight = normal(*found.shape) if found.dim() else torch.tensor(1.0, dtype=torch.float64)
    gradients = torch.autograd.grad((found * weight).sum(), stacked)
    for k in range(K):
        by_client = torch.autograd.grad((expected * weight).sum(), alone[k], retain_graph=True)
        for gradient, one in zip(gradients, by_client, strict=True):
            torch.testing.assert_close(gradient[k], one, rtol=0, atol=1e-12)


def test_cross_entropy_by_hand() -> None:
    """Logits (0, ln 3): probabilities 1/4 and 3/4, so the losses are ln 4 and ln 4 - ln 3, their mean ln 4 - ln 3 / 2."""
    three = torch.tensor(3.0, dtype=torch.float64).log()
    logits = torch.stack([torch.zeros(2, dtype=torch.float64), three.expand(2)], dim=1)
    expected = torch.tensor(4.0, dtype=torch.float64).log() - three / 2
    torch.testing.assert_close(ops.cross_entropy(logits, torch.tensor([0, 1])), expected)


@pytest.mark.parametrize(("model", "shape"), [("mlp", (1, 4, 4)), ("lenet", (1, 8, 8))])
def test_a_whole_model_stacks(model: str, shape: tuple[int, int, int]) -> None:
    """Logits and per-client gradients of three different weight vectors at once, against one after another."""
    made = build(model, shape, 5)
    params = Tree(made.layout, 0.1 * normal(K, made.layout.size))
    x, y = normal(K, B, *shape), torch.arange(K * B).reshape(K, B) % 5
    buffers = Tree(made.buffer_layout, torch.zeros(0, dtype=torch.float64))

    def loss(p: Tree, x: Tensor, y: Tensor) -> Tensor:
        return ops.cross_entropy(made.forward(p, buffers, x, True)[0], y)

    together = tree.gradient(lambda p: loss(p, x, y), params)
    for k in range(K):
        alone = Tree(made.layout, params.flat[k])
        logits, _ = made.forward(params, buffers, x, False)
        torch.testing.assert_close(logits[k], made.forward(alone, buffers, x[k], False)[0], rtol=0, atol=1e-12)
        expected = tree.gradient(lambda p, k=k: loss(p, x[k], y[k]), alone)
        torch.testing.assert_close(together.flat[k], expected.flat, rtol=0, atol=1e-12)
