"""One metric per group: by hand, on both engines, with workers, for images and text."""

import dataclasses
from unittest import mock

import pytest
import torch

from fedrepro.engine import evaluate
from fedrepro.engine.evaluate import Groups
from fedrepro.engine.loop import train, train_together
from fedrepro.methods.compose import compose
from fedrepro.models import Model
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch
from tests import toy

NONE = Tree(Layout.of({}), torch.zeros(0))
# Predicts the class that the image, or each character, contains.
ECHO = Model(
    "echo",
    (1, 1, 1),
    3,
    Layout.of({}),
    Layout.of({}),
    lambda params, buffers, x, train: (torch.nn.functional.one_hot(x.flatten(1).squeeze(-1).long(), 3).double(), buffers),
)


def test_by_hand() -> None:
    """Group a has 3 of 4 right, b none of 1, and c has no sample. The mean is (75 + 0) / 2, the worst 0, and overall 3 of 5 are
    right. Samples are evaluated in pieces of two."""
    said, y = torch.tensor([0, 1, 2, 0, 1]), torch.tensor([0, 1, 2, 1, 2])
    groups = Groups(("a", "b", "c"), torch.tensor([0, 0, 0, 0, 1]))
    for size in (1000, 2):
        with mock.patch.object(evaluate, "BATCH", size):
            found = evaluate.evaluate(ECHO, NONE, NONE, Batch(said.view(5, 1, 1, 1).double(), y), groups)
        assert {name: value for name, value in found.items() if "accuracy" in name and "top3" not in name} == {
            "test_accuracy": 60.0,
            "test_accuracy/a": 75.0,
            "test_accuracy/b": 0.0,
            "domain_accuracy": 37.5,
            "test_group_mean_accuracy": 37.5,
            "test_worst_group_accuracy": 0.0,
        }


def test_of_text_every_character_counts() -> None:
    """Two windows of three characters: 2 of 3 are right in group a, 3 of 3 in b."""
    x, y = torch.tensor([[0, 1, 2], [2, 1, 0]]), torch.tensor([[0, 1, 1], [2, 1, 0]])
    model = dataclasses.replace(ECHO, input_shape=(3,), loss=lambda outputs, y: outputs.mean())
    found = evaluate.evaluate(model, NONE, NONE, Batch(x, y), Groups(("a", "b"), torch.tensor([0, 1])))
    assert found["test_accuracy/a"] == pytest.approx(200 / 3)
    assert (found["test_accuracy/b"], found["test_accuracy"]) == (100.0, pytest.approx(500 / 6))


@pytest.mark.parametrize("more", [0, 1])
def test_many_groups_have_no_curves_of_their_own(more: int) -> None:
    """Only their mean and the worst group remain, if there are more than MOST_GROUPS."""
    count = evaluate.MOST_GROUPS + more
    names, y = tuple(f"writer{n}" for n in range(count)), torch.zeros(count, dtype=torch.int64)
    x = (torch.arange(count) == 7).double().view(count, 1, 1, 1)
    found = evaluate.evaluate(ECHO, NONE, NONE, Batch(x, y), Groups(names, torch.arange(count)))
    assert len([name for name in found if "/" in name or name == "domain_accuracy"]) == (0 if more else count + 1)
    assert found["test_worst_group_accuracy"] == 0.0
    assert found["test_group_mean_accuracy"] == pytest.approx(100 * (count - 1) / count)


def test_engines_and_workers_record_the_same() -> None:
    """Every group has a curve beside the others, with the same numbers on all engines."""
    several = [
        dataclasses.replace(task, groups=Groups(("photo", "sketch"), torch.arange(len(task.evaluation)) % 2))
        for task in (toy.make_task(seed=seed) for seed in (8, 9))
    ]
    found = dict(train_together(several, compose("fedavg")))
    with mock.patch.object(evaluate, "BATCH", 7):  # several pieces, which workers share
        shared = train(several[0], compose("fedavg"), workers=2)
    alone = train(several[0], compose("fedavg"))
    for other in (found[0], shared):
        assert [row[:2] for row in other.progress.rows] == [row[:2] for row in alone.progress.rows]
        for metric in ("domain_accuracy", "test_accuracy/photo", "test_accuracy/sketch", "test_worst_group_accuracy"):
            assert toy.values_of(other.progress.rows, metric) == toy.values_of(alone.progress.rows, metric)
    photo, sketch, mean, worst = (
        toy.values_of(alone.progress.rows, name)
        for name in ("test_accuracy/photo", "test_accuracy/sketch", "test_group_mean_accuracy", "test_worst_group_accuracy")
    )
    assert len(photo) == 3
    assert mean == pytest.approx([(a + b) / 2 for a, b in zip(photo, sketch, strict=True)])
    assert worst == [min(pair) for pair in zip(photo, sketch, strict=True)]
    assert toy.values_of(train(toy.make_task(), compose("fedavg")).progress.rows, "test_group_mean_accuracy") == []
