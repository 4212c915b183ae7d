"""FedLAW's hybrid partitions and its long tail: worked by hand, and compared with the schemes that they equal at their limits.
Fixed seeds."""

import numpy as np
import pytest

from fedrepro.data.long_tail import tail_size
from fedrepro.data.partition import Draw, draw
from fedrepro.data.partition.dirichlet_hybrid import DirichletHybrid
from fedrepro.data.partition.iid import Iid
from fedrepro.data.partition.long_tailed import LongTailed
from fedrepro.errors import UserError

LABELS = np.random.default_rng(3).permutation(np.arange(1200) % 10)  # ten classes of 120


def counts(scheme: str, clients: int, seed: int = 8) -> np.ndarray:
    """Samples of each class for each client, [n, 10]."""
    return np.stack([np.bincount(LABELS[part], minlength=10) for part in draw(scheme, LABELS, 10, clients, seed).parts])


class Drawn:
    """A generator for tests: permutation() keeps the order, and dirichlet() returns the given shares."""

    def __init__(self, *shares: list[float]) -> None:
        self.shares, self.asked = list(shares), list[list[float]]()

    def permutation(self, x: np.ndarray) -> np.ndarray:
        return x

    def dirichlet(self, alpha: np.ndarray) -> np.ndarray:
        self.asked.append(alpha.tolist())
        return np.array(self.shares.pop(0))


def test_hybrid_by_hand() -> None:
    """Of forty samples of a class, clients 0 and 1 keep 0.1 and 0.2. Of the other 0.7 client 2 gets a quarter, 0.175, and
    client 3 the rest."""
    rng = Drawn([0.1, 0.2, 0.3, 0.4], [0.25, 0.75])
    parts = DirichletHybrid(alpha_first=10, alpha_rest=0.1)(np.zeros(40, np.int64), 1, 4, rng).parts  # pyright: ignore[reportArgumentType]
    assert [part.tolist() for part in parts] == [[*range(4)], [*range(4, 12)], [*range(12, 19)], [*range(19, 40)]]
    assert rng.asked == [[10] * 4, [0.1] * 2]


@pytest.mark.parametrize(
    ("hybrid", "limit"),
    [
        ("dirichlet_hybrid(alpha_first=0.3, first=6)", "dirichlet_per_class(alpha=0.3)"),
        ("dirichlet_hybrid(alpha_rest=0.3, first=0)", "dirichlet_per_class(alpha=0.3)"),
        ("dirichlet_hybrid_equal(alpha_first=0.3, alpha_rest=7, first=6)", "dirichlet_per_client(beta=0.3)"),
        ("dirichlet_hybrid_equal(alpha_first=7, alpha_rest=0.3, first=0)", "dirichlet_per_client(beta=0.3)"),
    ],
)
def test_all_or_none_of_the_clients_first(hybrid: str, limit: str) -> None:
    """If all clients or none belong to the first group, the parts equal those of the plain scheme exactly."""
    for own, other in zip(*(draw(scheme, LABELS, 10, 6, 8).parts for scheme in (hybrid, limit)), strict=True):
        assert own.tolist() == other.tolist()


def test_half_of_the_clients_are_balanced() -> None:
    """With alpha 1000 and 0.01 the first ten of 20 clients have about six samples of each class. One of the others takes most
    of what is left of a class."""
    found = counts("dirichlet_hybrid(alpha_first=1000, alpha_rest=0.01)", 20)
    assert found.sum() == 1200
    assert abs(found[:10] - 6).max() <= 1
    assert (np.sort(found[10:], axis=0)[-1] > 30).all()


def test_half_of_an_odd_number_is_rounded_down() -> None:
    """Without `first`, two of five clients keep the share that alpha_first gives them."""
    own, other = (draw(f"dirichlet_hybrid({first})", LABELS, 10, 5, 8).parts for first in ("", "first=2"))
    assert [part.tolist() for part in own] == [part.tolist() for part in other]


@pytest.mark.parametrize("alpha_rest", [1000, 0.01])
def test_three_clients_of_one_size(alpha_rest: float) -> None:
    """Client 0 is balanced, with 40 of each class. The others share the remaining 80 of each: both get halves, or one gets
    most."""
    found = counts(f"dirichlet_hybrid_equal(alpha_first=1e6, alpha_rest={alpha_rest})", 3)
    assert found.sum(1).tolist() == [400] * 3
    assert (found.sum(0) == 120).all()
    assert abs(found[0] - 40).max() <= 20  # drawn one by one, with a standard deviation of 6
    apart = abs(found[1] - found[2]).sum() / found[1:].sum()
    assert apart < 0.3 if alpha_rest > 1 else apart > 0.7


@pytest.mark.parametrize(
    ("ratio", "classes", "count", "sizes"),
    [
        (10, 3, 100, [100, 31, 10]),  # 100, 31.6, 10
        (5, 5, 1000, [1000, 668, 447, 299, 200]),  # 5^(-1/4) is 0.6687, 5^(-1/2) 0.4472, 5^(-3/4) 0.2991
        (10, 10, 10, [10, 7, 5, 4, 3, 2, 2, 1, 1, 1]),  # 10^(1 - c/9): 7.74, 5.99, 4.64, 3.59, 2.78, 2.15, 1.67, 1.29, 1
        (1, 4, 7, [7, 7, 7, 7]),
        (10, 1, 7, [7]),
    ],
)
def test_tail_by_hand(ratio: float, classes: int, count: int, sizes: list[int]) -> None:
    assert [tail_size(count, c, classes, ratio) for c in range(classes)] == sizes


def test_a_tail_is_not_cut_by_rounding() -> None:
    """The last class can have every whole number of samples: 49 * (1 / 49) is below 1 in floating point."""
    assert all(tail_size(ratio * k, 9, 10, ratio) == k for ratio in range(1, 100) for k in (1, 3, 7))


def test_long_tail_by_hand() -> None:
    """Two classes of six and four samples and ratio 2 leave six and two, and `iid` deals them."""
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0, 0])
    drawn = [np.concatenate(draw("long_tailed(ratio=2, within=iid)", labels, 2, 3, seed).parts) for seed in range(20)]
    assert all(np.bincount(labels[taken]).tolist() == [6, 2] for taken in drawn)
    assert len({tuple(np.sort(taken)) for taken in drawn}) == 6  # every pair of the four
    assert [len(part) for part in draw("long_tailed(ratio=2, within=iid)", labels, 2, 8, 8).parts] == [1] * 8


def test_a_long_tail_counts_the_redraws_of_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner scheme reports a redraw for each sample that it gets. At ratio 1 it gets all 1,200."""
    monkeypatch.setattr(Iid, "__call__", lambda _self, labels, *_: Draw([np.arange(len(labels))], len(labels)))
    assert draw("long_tailed(ratio=1, within=iid)", LABELS, 10, 1, 8).redraws == 1200


def test_the_scheme_within() -> None:
    """The inner scheme gets only the samples that the long tail keeps. With k = 1 each client gets one class."""
    found = counts("long_tailed(ratio=4, within='classes_per_client(k=1)')", 10)
    assert np.diag(found).tolist() == [tail_size(120, c, 10, 4) for c in range(10)]
    assert found.sum() == np.trace(found)


@pytest.mark.parametrize(
    ("scheme", "clients", "line"),
    [
        ("dirichlet_hybrid(alpha_rest=0)", 4, r"dirichlet_hybrid\(alpha_rest=...\) = 0.0: must be finite and > 0"),
        ("dirichlet_hybrid(first=5)", 4, r"dirichlet_hybrid\(first=...\) = 5: there are 4 clients; use 4 at most"),
        ("dirichlet_hybrid(alpha_first=1e308)", 100, r"dirichlet_hybrid\(alpha_first=1e\+308\): too extreme to draw from"),
        ("dirichlet_hybrid_equal(alpha_first=1, alpha_rest=0)", 3, r"alpha_rest=...\) = 0.0: must be > 0"),
        ("dirichlet_hybrid_equal(alpha_first=1, alpha_rest=1, first=4)", 3, "= 4: there are 3 clients; use 3 at most"),
        ("long_tailed(ratio=0.5)", 4, r"long_tailed\(ratio=...\) = 0.5: must be finite and at least 1"),
        ("long_tailed(within=by_group)", 4, "'by_group': must be one scheme that knows no groups"),
        ("long_tailed(ratio=1e9, within=iid)", 300, "clients = 300: long_tailed leaves 133 training samples; use 133 at most"),
    ],
)
def test_refused(scheme: str, clients: int, line: str) -> None:
    with pytest.raises(UserError, match=line):
        draw(scheme, LABELS, 10, clients, 8)


def test_the_name_has_the_inner_scheme_in_full() -> None:
    """The default arguments are the ratio of FedLAW's Table 7 and its IID."""
    assert (LongTailed().ratio, LongTailed().within) == (5, "dirichlet_per_class(alpha=100.0)")
