"""One seed's task from objects in memory: the samples that it evaluates, and the weights of clients."""

import numpy as np
import pytest
import torch

from fedrepro.engine.evaluate import Groups
from fedrepro.engine.task import Images, SeedDraws, Task, make_task
from fedrepro.types import Batch
from tests import toy

DATA = toy.images(6, "test")


@pytest.fixture
def task() -> Task:
    """Client 0 trains on three samples, client 1 on one and holds two out. Test samples 1 and 4 are the proxy set."""
    none = np.zeros(0, np.int64)
    drawn = SeedDraws(
        train=[np.array([0, 1, 2]), np.array([3])],
        held_out=[none, np.array([4, 5])],
        sizes=np.array([3, 3]),
        cohorts=np.zeros((3, 1), np.int64),
        proxy=np.array([1, 4]),
        evaluation=np.array([0, 2, 3, 5]),
        params=toy.make_task().params,
    )
    images = Images(DATA, DATA, Groups(("a", "b"), torch.tensor([0, 1, 0, 1, 0, 1])), "")
    return make_task(toy.make_spec(clients=2, proxy_per_class=1), 8, toy.tiny_model(), images, drawn, {}, torch.float64)


def same(found: Batch | None, positions: list[int]) -> bool:
    """Whether these are the samples at these positions, with their labels."""
    return found is not None and torch.equal(found.x, DATA.x[positions]) and torch.equal(found.y, DATA.y[positions])


def test_what_is_in_the_proxy_set_is_not_evaluated(task: Task) -> None:
    """Of six test samples two are the proxy set, and the other four are evaluated."""
    assert same(task.proxy, [1, 4])
    assert same(task.evaluation, [0, 2, 3, 5])


def test_evaluated_samples_keep_their_groups(task: Task) -> None:
    """Samples 0 and 2 belong to group a, 3 and 5 to b."""
    assert task.groups is not None
    assert task.groups.group_index.tolist() == [0, 0, 1, 1]


def test_what_a_client_holds_out_counts_in_its_weight(task: Task) -> None:
    """Both clients have three samples; client 1 trains on one of them."""
    assert (task.client_sizes.tolist(), task.train_sizes) == ([3.0, 3.0], [3, 1])
