"""Pachinko allocation: compared with the published algorithm of one sample at a time, its limiting cases, CIFAR-100's
superclasses."""

import math
from collections import Counter

import numpy as np
import pytest

from fedrepro.data.partition import draw, make_scheme
from fedrepro.data.partition.hierarchy import CIFAR100, superclasses
from fedrepro.data.registry import load_registry
from tests.helpers.one_line import one_line

from .conftest import REGISTRY

TEN = "0-1-2-3-4 5-6-7-8-9"
BALANCED = np.random.default_rng(3).permutation(np.arange(1000) % 10)  # ten classes of 100


def counts(scheme: str, labels: np.ndarray, clients: int, seed: int = 8) -> np.ndarray:
    """Samples of each class for each client, [n, C]."""
    classes = int(labels.max()) + 1
    return np.stack(
        [np.bincount(labels[part], minlength=classes) for part in draw(scheme, labels, classes, clients, seed).parts]
    )


def as_published(alpha: float, beta: float, families: list[list[int]], supply: list[int], clients: int, rng) -> list[list[int]]:
    """The class counts of each client by the algorithm of appendix F, step by step."""
    tree, left = {number: list(family) for number, family in enumerate(families)}, list(supply)
    found = []
    for _ in range(clients):
        over = dict(zip(tree, rng.dirichlet([alpha] * len(tree)), strict=True))
        within = {c: dict(zip(family, rng.dirichlet([beta] * len(family)), strict=True)) for c, family in tree.items()}
        mine = [0] * len(supply)
        for _ in range(sum(supply) // clients):
            weights = np.array([over[c] for c in tree])
            coarse = rng.choice(list(tree), p=weights / weights.sum())
            weights = np.array([within[coarse][y] for y in tree[coarse]])
            y = rng.choice(tree[coarse], p=weights / weights.sum())
            mine[y] += 1
            left[y] -= 1
            if not left[y]:
                tree[coarse].remove(y)
                if not tree[coarse]:
                    del tree[coarse]
        found.append(mine)
    return found


def test_the_published_algorithm() -> None:
    """In this example classes and superclasses run out of samples. Every outcome of two clients is as likely as in the
    published algorithm.

    Chi-square of two samples of equal size: mean = degrees of freedom, variance twice that.
    """
    families, supply, draws = [[0, 1], [2, 3]], [2, 6, 4, 4], 2000
    labels, rng = np.repeat(np.arange(4), supply), np.random.default_rng(1)
    rule = make_scheme("pachinko(alpha=1, beta=0.4, hierarchy='0-1 2-3')")
    ours = Counter(
        str([np.bincount(labels[part], minlength=4).tolist() for part in rule(labels, 4, 2, rng).parts]) for _ in range(draws)
    )
    published = Counter(str(as_published(1.0, 0.4, families, supply, 2, rng)) for _ in range(draws))
    pairs = [(ours[outcome], published[outcome]) for outcome in ours | published]
    common = [pair for pair in pairs if sum(pair) >= 10]
    rest = (draws - sum(a for a, _ in common), draws - sum(b for _, b in common))  # too rare to test alone
    pairs = common + [rest] * (sum(rest) > 0)
    degrees = len(pairs) - 1
    assert degrees > 40
    assert sum((a - b) ** 2 / (a + b) for a, b in pairs) < degrees + 5 * math.sqrt(2 * degrees)


def test_cifar100_of_500_clients() -> None:
    """All 50,000 samples are dealt once, 100 to each client. A client has few superclasses and most classes within one."""
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(100), 500))
    drawn = counts("pachinko(alpha=0.1, beta=10, hierarchy=cifar100)", labels, 500)
    assert (drawn.sum(1) == 100).all()
    assert (drawn.sum(0) == 500).all()
    families = superclasses("", "cifar100")
    held = np.stack([drawn[:, family].sum(1) for family in families], axis=1)
    assert 2 < np.count_nonzero(held[:300], axis=1).mean() < 10  # later clients have less to choose from
    complete = [np.count_nonzero(row[families[of.argmax()]]) == 5 for row, of in zip(drawn[:300], held[:300], strict=True)]
    assert np.mean(complete) > 0.85


def test_a_small_alpha_gives_one_superclass_after_the_other() -> None:
    """A client takes all samples of one superclass before it starts another one, even after the first class of the superclass
    has run out."""
    for seed in range(5):
        drawn = counts(f"pachinko(alpha=1e-300, beta=1e-300, hierarchy='{TEN}')", BALANCED, 2, seed)
        assert sorted(drawn.tolist()) == [[0] * 5 + [100] * 5, [100] * 5 + [0] * 5]
        drawn = counts(f"pachinko(alpha=1e-300, beta=1e300, hierarchy='{TEN}')", BALANCED, 50, seed)
        assert sorted({np.count_nonzero(row[:5]) > 0 < np.count_nonzero(row[5:]) for row in drawn}) == [False]
        assert (np.count_nonzero(drawn[:20], axis=1) >= 4).all()


def test_the_superclasses_of_cifar100() -> None:
    """Class names are as in the registry. The superclass numbers of the first 20 classes are as in the published files."""
    classes = sorted(" ".join(CIFAR100.values()).split())
    assert classes == list(load_registry(REGISTRY)["cifar100"].class_names)
    families = superclasses("", "cifar100")
    assert [len(family) for family in families] == [5] * 20
    coarse = np.zeros(100, dtype=int)
    for number, family in enumerate(families):
        coarse[family] = number
    published = [4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15]
    assert coarse[:30].tolist() == published
    assert coarse[-10:].tolist() == [18, 1, 2, 15, 6, 0, 17, 8, 14, 13]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("alpha=0, beta=1, hierarchy='0 1'", r"pachinko\(alpha=\.\.\.\) = 0\.0: must be > 0"),
        ("alpha=1, beta=0, hierarchy='0 1'", r"pachinko\(beta=\.\.\.\) = 0\.0: must be > 0"),
        ("alpha=1, beta=1", "hierarchy"),
        (
            "alpha=1, beta=1, hierarchy=cifar10",
            r"pachinko\(hierarchy=\.\.\.\) = 'cifar10': must be cifar100, or classes joined",
        ),
        ("alpha=1, beta=1, hierarchy='0-1 1-2'", "must have every class from 0 to 2 once"),
        ("alpha=1, beta=1, hierarchy='0-1 3'", "must have every class from 0 to 3 once"),
        ("alpha=1, beta=1, hierarchy=cifar100", "has 100 classes, and the data set has 10; give the data set's own"),
    ],
)
def test_refused(arguments: str, line: str) -> None:
    """A data set that does not fit the hierarchy is refused too, in one line."""
    with one_line(line):
        draw(f"pachinko({arguments})", BALANCED, 10, 5, 8)
