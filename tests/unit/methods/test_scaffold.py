"""SCAFFOLD's rounds by hand, on a loss that is linear in one weight.

Client 0 (two samples) has the gradient 2 everywhere, client 1 (one sample) the gradient -1. Two local steps with a client_lr of
0.1, no momentum, no weight decay, w = 1 at the start.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch

from fedrepro import tree
from fedrepro.engine.loop import train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.engine.vectorised import VectorisedEngine
from fedrepro.methods.compose import compose
from fedrepro.models import build, initial
from fedrepro.tree import Tree
from fedrepro.types import Batch
from tests import toy

PLAIN = {"local_epochs": 2, "batch_size": 2, "client_momentum": 0.0, "weight_decay": 0.0, "client_lr_decay": 1.0}
ENGINES = pytest.mark.parametrize("engine", [SequentialEngine, VectorisedEngine])
BOTH = pytest.mark.parametrize("option", [1, 2])


def weights(option: int, rounds: int, cohorts: tuple[tuple[int, ...], ...] = ((0, 1),), **changes: Any) -> list[float]:
    """The global weight after each round."""
    tasks = [toy.linear_task(t, cohorts, **PLAIN | changes) for t in range(1, rounds + 1)]
    return [train(task, toy.linear(f"scaffold(option={option})")).params.flat.item() for task in tasks]


@BOTH
def test_full_participation_by_hand(option: int) -> None:
    """Round 0: moves -0.4 and 0.2; c_0 = 0.4 / 0.2 = 2, c_1 = -1, c = 0.5. Round 1: both descend along 0.5: -0.1 each, and c_0
    = 2 - 0.5 + 0.5, c_1 = -1 - 0.5 + 0.5 keep their values. Round 2 is as round 1."""
    assert weights(option, 3) == pytest.approx([0.9, 0.8, 0.7], abs=1e-14)


@BOTH
def test_partial_participation_by_hand(option: int) -> None:
    """c changes by the sum over the cohort divided by the number of all clients, which is two.

    Round 0, client 0: -0.4; c_0 = 2, c = 2 / 2 = 1.
    Round 1, client 1 for the first time: -1 - 0 + 1 = 0: it stays; c_1 = 0 - 1 + 0 = -1; c = 1 - 1 / 2 = 0.5.
    Round 2, client 0 again: 2 - 2 + 0.5 = 0.5: -0.1.
    """
    assert weights(option, 3, ((0,), (1,), (0,))) == pytest.approx([0.6, 0.6, 0.5], abs=1e-14)


@BOTH
def test_a_decaying_rate_leaves_the_control_variates_alone(option: int) -> None:
    """client_lr 0.1, 0.05, 0.025; c = 0.5 from round 1 on: -0.1, then 2 * 0.05 * 0.5, then 2 * 0.025 * 0.5."""
    assert weights(option, 3, client_lr_decay=0.5) == pytest.approx([0.9, 0.85, 0.825], abs=1e-14)


@BOTH
def test_momentum_makes_steps_longer_and_not_gradients(option: int) -> None:
    """Momentum 0.5: two steps are worth 1 + 1.5 = 2.5. Round 0: -0.5 and 0.25, mean -0.125; c_0 = 0.5 / 0.25 = 2, c = 0.5.
    Round 1: both -0.1 * 2.5 * 0.5 = -0.125."""
    assert weights(option, 2, client_momentum=0.5) == pytest.approx([0.875, 0.75], abs=1e-14)


def controls(text: str, engine: type, task: Task) -> torch.Tensor:
    """c_i of every client of the first cohort after its first round, [K, D]."""
    method = toy.linear(text) if task.model is toy.ONE_WEIGHT else compose(text)
    cohort, _ = engine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
    assert cohort is not None
    assert cohort.messages is not None
    return cohort.messages.flat


def test_option_1_counts_samples_and_not_batches() -> None:
    """Samples are 2, 2 and 5 in batches of two: (2 * 2 + 1 * 5) / 3 = 3, where the mean of the batches would be (2 + 5) / 2 =
    3.5. Two epochs see each sample twice. Another client has one sample, -1."""
    task = toy.linear_task(1, **PLAIN)
    x = torch.tensor([2.0, 2.0, 5.0, -1.0], dtype=torch.float64).reshape(4, 1, 1, 1)
    data = Batch(x, torch.zeros(4, dtype=torch.int64))
    orders = [torch.tensor(one) for one in ([0, 1, 2], [3])]
    task = replace(task, train=data, evaluation=data, client_index=orders, client_sizes=torch.tensor([3.0, 1.0]).double())
    assert controls("scaffold(option=1)", SequentialEngine, task).flatten().tolist() == pytest.approx([3.0, -1.0], abs=1e-14)


@ENGINES
def test_option_1_is_the_whole_gradient_whatever_the_batches(engine: type) -> None:
    """For every client it is the gradient by autograd, in batches of 6 with smaller last ones."""
    task = toy.make_task(batch_size=6, cohorts=((0, 1, 3),))
    for k, found in zip((0, 1, 3), controls("scaffold(option=1)", engine, task), strict=True):
        data = task.train.take(task.client_index[k])
        loss = lambda p, data=data: task.model.loss(task.model.forward(p, task.buffers, data.x, True)[0], data.y)  # noqa: E731
        torch.testing.assert_close(found, tree.gradient(loss, task.params).flat, rtol=0, atol=1e-14)


@ENGINES
def test_option_1_of_text(engine: type) -> None:
    """Windows have an axis of characters, but samples are windows."""
    model = build("char_lstm", (5,), 7)
    data = model.random(7, torch.Generator().manual_seed(0))
    params = initial.draw(model, 8)
    params = params.like(params.flat.double())
    sizes = torch.tensor([5.0, 2.0], dtype=torch.float64)
    task = replace(
        toy.linear_task(1, **PLAIN),
        model=model,
        train=data,
        evaluation=data,
        client_index=[torch.arange(5), torch.arange(5, 7)],
        held_out=[torch.arange(0)] * 2,
        client_sizes=sizes,
        params=params,
        buffers=Tree(model.buffer_layout, torch.zeros(0, dtype=torch.float64)),
    )
    for rows, found in zip(task.client_index, controls("scaffold(option=1)", engine, task), strict=True):
        own = data.take(rows)
        loss = lambda p, own=own: model.loss(model.forward(p, task.buffers, own.x, True)[0], own.y)  # noqa: E731
        torch.testing.assert_close(found, tree.gradient(loss, params).flat, rtol=0, atol=1e-13)


def test_option_1_moves_running_statistics_once_a_batch() -> None:
    """The statistics are those of option 2 in the first round, where both take the same steps."""
    task = toy.make_task(model=toy.norm_model(), rounds=1)
    one, two = (train(task, compose(f"scaffold(option={option})")) for option in (1, 2))
    torch.testing.assert_close(one.params.flat, two.params.flat, rtol=0, atol=1e-14)
    torch.testing.assert_close(one.buffers.flat, two.buffers.flat, rtol=0, atol=1e-14)


def test_what_travels() -> None:
    """One control variate in each direction, beside the model."""
    assert compose("scaffold").traffic(100, 0) == (200, 200)
    assert compose("igfl").traffic(100, 0) == (100, 200)
