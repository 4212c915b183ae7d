"""Operations with a leading client axis compared with a loop over clients: values and gradients, in float64."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fedrepro.models import ops

K, B = 3, 4


def normal(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


LABELS = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1], [1, 0, 0, 2]])


def running(like: Tensor) -> tuple[Tensor, Tensor]:
    """The same mean and variance for every channel and client."""
    return torch.full_like(like, 0.3).detach(), torch.full_like(like, 2.0).detach()


# name -> (function of tensors with a leading client axis, those tensors)
OPS: dict[str, tuple[Callable[..., Tensor], list[Tensor]]] = {
    "linear": (ops.linear, [normal(K, B, 5), normal(K, 2, 5), normal(K, 2)]),
    "linear_relu": (ops.linear_relu, [normal(K, B, 5), normal(K, 2, 5), normal(K, 2)]),
    "conv2d": (ops.conv2d, [normal(K, B, 2, 6, 5), normal(K, 3, 2, 3, 3), normal(K, 3)]),
    "conv2d, padded": (lambda *t: ops.conv2d(*t, padding=2), [normal(K, B, 2, 6, 5), normal(K, 3, 2, 5, 5), normal(K, 3)]),
    "conv2d, strided, no bias": (
        lambda x, w: ops.conv2d(x, w, stride=2, padding=1),
        [normal(K, B, 2, 6, 5), normal(K, 3, 2, 3, 3)],
    ),
    "conv2d, 1x1, strided": (lambda x, w: ops.conv2d(x, w, stride=2), [normal(K, B, 2, 6, 5), normal(K, 3, 2, 1, 1)]),
    "batch_norm, train": (
        lambda x, w, b: ops.batch_norm(x, w, b, *running(w), True)[0],
        [normal(K, B, 2, 3, 5), normal(K, 2), normal(K, 2)],
    ),
    "batch_norm, eval": (
        lambda x, w, b: ops.batch_norm(x, w, b, *running(w), False)[0],
        [normal(K, B, 2, 3, 5), normal(K, 2), normal(K, 2)],
    ),
    "group_norm": (lambda *t: ops.group_norm(t[0], 2, *t[1:]), [normal(K, B, 4, 3, 5), normal(K, 4), normal(K, 4)]),
    "max_pool2d": (lambda x: ops.max_pool2d(x, 2), [normal(K, B, 2, 6, 5)]),
    "relu": (ops.relu, [normal(K, B, 5)]),
    "flatten": (ops.flatten, [normal(K, B, 2, 3, 4)]),
    "cross_entropy": (lambda logits: ops.cross_entropy(logits, LABELS), [normal(K, B, 3)]),
}


@pytest.mark.parametrize("name", OPS)
def test_stacked_equals_a_loop_over_clients(name: str) -> None:
    """Client k's samples use only client k's weights, and so do gradients. cross_entropy sums the clients' means."""
    function, tensors = OPS[name]
    stacked = [t.clone().requires_grad_() for t in tensors]
    found = function(*stacked)
    if name == "cross_entropy":
        alone = [[t[k].clone().requires_grad_()] for t in tensors for k in range(K)]
        expected = torch.stack([ops.cross_entropy(alone[k][0], LABELS[k]) for k in range(K)]).sum()
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
    """Logits (0, ln 3) have probabilities 1/4 and 3/4, so the losses are ln 4 and ln 4 - ln 3, and their mean is ln 4 - ln 3 /
    2."""
    three = torch.tensor(3.0, dtype=torch.float64).log()
    logits = torch.stack([torch.zeros(2, dtype=torch.float64), three.expand(2)], dim=1)
    expected = torch.tensor(4.0, dtype=torch.float64).log() - three / 2
    torch.testing.assert_close(ops.cross_entropy(logits, torch.tensor([0, 1])), expected)


def test_batch_norm_by_hand() -> None:
    """One channel, values 1 and 3, mean 2, variance 1, unbiased variance 2; weight 2, bias 5; running statistics (0.5, 1).

    Training: (1 - 2) / sqrt(1 + 1e-5) * 2 + 5; statistics 0.9 * 0.5 + 0.1 * 2 = 0.65 and 0.9 + 0.1 * 2 = 1.1.
    Evaluation: (1 - 0.5) / sqrt(1 + 1e-5) * 2 + 5, (3 - 0.5) ...; the statistics as they were.
    """
    x, one = torch.tensor([1.0, 3.0], dtype=torch.float64).reshape(2, 1, 1, 1), torch.ones(1, dtype=torch.float64)
    weight, bias, mean, var = 2 * one, 5 * one, 0.5 * one, one.clone()
    root = (1 + 1e-5) ** 0.5
    for train, expected, after in ((True, (-2, 2), (0.65, 1.1)), (False, (1, 5), (0.5, 1.0))):
        y, new_mean, new_var = ops.batch_norm(x, weight, bias, mean, var, train)
        torch.testing.assert_close(y.flatten(), 5 + torch.tensor(expected, dtype=torch.float64) / root, rtol=0, atol=1e-14)
        assert (new_mean.item(), new_var.item()) == pytest.approx(after, abs=1e-15)
        assert (mean.item(), var.item()) == (0.5, 1.0)


def test_a_convolution_does_not_mind_the_layout_in_memory() -> None:
    """Channels last or first, contiguous or not: the values are the same."""
    x, weight, bias = normal(B, 3, 6, 5), normal(4, 3, 3, 3), normal(4)
    expected = torch.nn.functional.conv2d(x, weight, bias)
    for image in (x, x.contiguous(memory_format=torch.channels_last), x.transpose(2, 3).contiguous().transpose(2, 3)):
        torch.testing.assert_close(ops.conv2d(image, weight, bias), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("channels", [1, 3, 16])
def test_a_convolution_gives_its_channels_last(channels: int) -> None:
    """This holds on a CPU, also for grey images, whose layout is ambiguous. Pooling and ReLU are several times as fast on
    it."""
    x, weight = normal(B, channels, 12, 12).float(), normal(32, channels, 5, 5).float().requires_grad_()
    y = ops.conv2d(x, weight, normal(32).float())
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert ops.max_pool2d(y, 2).is_contiguous(memory_format=torch.channels_last)
    convolutions = (ops.conv2d, torch.nn.functional.conv2d)
    found, expected = (torch.autograd.grad(conv(x, weight).square().sum(), weight)[0] for conv in convolutions)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-2)
