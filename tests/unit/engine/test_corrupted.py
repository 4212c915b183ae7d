"""Clients with exchanged labels: which clients, classes and samples, and what is refused."""

import numpy as np
import pytest
import torch

from fedrepro.engine import corrupted
from fedrepro.errors import UserError
from fedrepro.types import Batch
from tests import toy


def test_exchange_by_hand() -> None:
    """Client 0 has positions 0, 2 and 4, client 1 the others. Classes 1 and 3 of client 0 are exchanged, and the original
    labels are not modified."""
    y = torch.tensor([1, 1, 3, 3, 0, 2])
    data = Batch(torch.zeros(6, 1), y)
    found = corrupted.exchange_labels(data, [np.array([0, 2, 4]), np.array([1, 3, 5])], {0: (1, 3)})
    assert found.y.tolist() == [3, 1, 1, 3, 0, 2]
    assert y.tolist() == [1, 1, 3, 3, 0, 2]
    assert found.x is data.x


def test_who_and_which_classes() -> None:
    """floor(share * 20) clients are corrupted, for the share as it is written. A larger share adds clients, and the others keep
    their pairs."""
    half, most, all_of_them = (corrupted.draw_class_pairs(share, 20, 10, 8) for share in (0.5, 0.75, 1.0))
    assert [len(found) for found in (half, most, all_of_them, corrupted.draw_class_pairs(0.29, 100, 10, 8))] == [10, 15, 20, 29]
    assert len(corrupted.draw_class_pairs(0.39, 10, 10, 8)) == 3  # 3.9 is rounded down
    assert half.items() < most.items() < all_of_them.items()
    assert sorted(all_of_them) == list(range(20))
    assert all(a != b and {a, b} <= set(range(10)) for a, b in all_of_them.values())
    assert len(set(map(frozenset, all_of_them.values()))) > 10
    assert half.keys() != corrupted.draw_class_pairs(0.5, 20, 10, 9).keys()


def test_clients_and_pairs_are_uniform() -> None:
    """Over 2,000 seeds of 2 of 4 clients, each client is drawn 1,000 +- 22 times, and each pair of 3 classes 4,000 / 3 +- 30
    times. The test allows five deviations."""
    found = [corrupted.draw_class_pairs(0.5, 4, 3, seed) for seed in range(2000)]
    clients = np.bincount([client for one in found for client in one], minlength=4)
    left_out = np.bincount([3 - a - b for one in found for a, b in one.values()], minlength=3)
    assert abs(clients - 1000).max() < 5 * 22.4
    assert abs(left_out - 4000 / 3).max() < 5 * 29.9


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"corrupted_clients": 1.5}, "corrupted_clients = 1.5: must be at least 0 and at most 1"),
        ({"corrupted_clients": 0.19}, "corrupted_clients = 0.19: is less than one of 5 clients; raise it, or set it to 0"),
        (
            {"corrupted_clients": 0.5, "input_shape": (80,)},
            "corrupted_clients = 0.5: exchanges class labels, and this is text; set it",
        ),
        (
            {"corrupted_clients": 0.5, "classes": 1},
            "corrupted_clients = 0.5: exchanges two classes, and there is one; set it to 0",
        ),
    ],
)
def test_settings_that_are_refused(changes: dict, line: str) -> None:
    with pytest.raises(UserError, match=f"^{line}"):
        toy.make_spec(**changes)


def test_boxes_are_refused() -> None:
    boxes = Batch(torch.zeros(2, 1), torch.zeros(2, 1, 5))
    with pytest.raises(UserError, match=r"^corrupted_clients: exchanges class labels, and this data set has boxes"):
        corrupted.exchange_labels(boxes, [np.arange(2)], {0: (0, 1)})
