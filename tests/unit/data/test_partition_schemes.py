"""Shards, classes per client and log-normal sizes by hand; all schemes compared with each other; refused arguments. Fixed
seeds."""

import math
from collections import Counter

import numpy as np
import pytest
from dealt import BALANCED, UNEVEN, counts

from fedrepro.data.partition import draw
from fedrepro.data.partition.log_normal_sizes import round_to_sum
from fedrepro.data.partition.shards import deal_distinct, shard_labels
from fedrepro.errors import UserError
from tests.helpers.one_line import one_line

# --- shards


def test_shards_by_hand():
    """Sorted by label, ties in order: 1 3 | 4 0 | 5 6 | 2 7 | 8. Two clients get two shards each; 8 is left over."""
    labels = np.array([1, 0, 2, 0, 0, 1, 1, 2, 2])
    shards = [[1, 3], [0, 4], [5, 6], [2, 7]]
    seen = set()
    for seed in range(40):
        parts = [part.tolist() for part in draw("shards(per_client=2)", labels, 3, 2, seed).parts]
        pairs = [[shard for shard in shards if set(shard) <= set(part)] for part in parts]
        assert [len(pair) for pair in pairs] == [2, 2]
        assert sorted(parts[0] + parts[1]) == list(range(8))
        seen.add(tuple(parts[0]))
    assert len(seen) == 6  # every pair of the four shards


def test_shard_labels_by_hand():
    assert shard_labels(np.array([[0, 0, 1], [1, 1, 1], [1, 2, 2], [2, 4, 4]]), 5).tolist() == [0, 1, 2, 4]
    assert shard_labels(np.array([[0, 1], [1, 4]]), 5).tolist() == [0, 1]  # ties go to the smaller label


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("per_client", "clients"), [(2, 10), (5, 20), (9, 20), (2, 100), (3, 2)])
def test_distinct_labels(per_client, clients, seed):
    """Labels have unequal sizes. Every shard is dealt once, and the labels of a client's shards differ."""
    size = 1100 // (per_client * clients)
    labels = np.sort(np.tile(UNEVEN, 2))
    label = shard_labels(labels[: size * per_client * clients].reshape(-1, size), 10)
    if np.bincount(label).max() > clients:
        with pytest.raises(UserError, match=f"fills {np.bincount(label).max()} shards and there are {clients} clients"):
            deal_distinct(label, clients, np.random.default_rng(seed))
        return
    hands = deal_distinct(label, clients, np.random.default_rng(seed))
    assert sorted(hands.ravel()) == list(range(per_client * clients))
    assert all(len(set(label[hand])) == per_client for hand in hands)


def test_a_deal_of_a_seed_stays_as_it_is():
    """Published partitions were dealt so; each pair is a client's shards of four labels with three shards each."""
    hands = deal_distinct(np.repeat(np.arange(4), 3), 6, np.random.default_rng(8))
    assert np.sort(hands, axis=1).tolist() == [[8, 10], [6, 11], [5, 7], [2, 3], [1, 9], [0, 4]]


def test_distinct_deals_are_uniform():
    """Three clients, two shards of each of three labels. A client lacks one label each, 3! ways, and the two shards of a label

    go to its two owners in 2 ways: 6 * 2^3 = 48 deals. Chi-square with 47 degrees of freedom: mean 47, variance 94.
    """
    rng = np.random.default_rng(0)
    draws, label = 2400, np.array([0, 0, 1, 1, 2, 2])
    deals = Counter(str([sorted(hand) for hand in deal_distinct(label, 3, rng).tolist()]) for _ in range(draws))
    assert len(deals) == 48
    assert sum((count - draws / 48) ** 2 for count in deals.values()) / (draws / 48) < 47 + 5 * math.sqrt(94)


def test_distinct_labels_are_uniform():
    """Four clients, two shards of each of four labels: 90 tables of 0 and 1 with all row and column sums 2, all equally likely.

    Dealt only in turn, two clients always have the same pair of labels, so the test needs the exchanges. 89 degrees of freedom.
    """
    rng = np.random.default_rng(0)
    draws, label = 4500, np.repeat(np.arange(4), 2)
    tables = Counter(str(np.sort(label[deal_distinct(label, 4, rng)]).tolist()) for _ in range(draws))
    assert len(tables) == 90
    assert sum((count - draws / 90) ** 2 for count in tables.values()) / (draws / 90) < 89 + 5 * math.sqrt(2 * 89)


def test_distinct_labels_end_after_a_fixed_number_of_exchanges():
    """Eight shards give 4 * 8 * ceil(log2(9)) = 128 proposed exchanges."""

    class Counted(np.random.Generator):
        pairs = 0

        def integers(self, *arguments, **more):
            drawn = super().integers(*arguments, **more)
            Counted.pairs += len(drawn)
            return drawn

    deal_distinct(np.repeat(np.arange(4), 2), 4, Counted(np.random.PCG64(0)))
    assert Counted.pairs == 128


def test_distinct_labels_as_in_igfl():
    """Ten clients, ten equal classes, two shards each: every class is split between two clients."""
    found = counts("shards(per_client=2, distinct_labels=true)", BALANCED, 10)
    assert sorted(found.ravel()) == [0] * 80 + [50] * 20
    assert (np.count_nonzero(found, axis=1) == 2).all()


# --- classes_per_client


def test_classes_per_client_by_hand():
    """k = 1, three classes of 4, 3 and 2, four clients: client 3 shares class 0 with client 0. Classes 1 and 2 have one owner
    each."""
    labels = np.array([0, 1, 2, 0, 1, 2, 0, 1, 0])
    parts = draw("classes_per_client(k=1)", labels, 3, 4, 8).parts
    assert [len(part) for part in parts] == [2, 3, 2, 2]
    assert [sorted(set(labels[part])) for part in parts] == [[0], [1], [2], [0]]
    assert [len(part) for part in draw("classes_per_client(k=1)", labels, 3, 2, 8).parts] == [4, 3]  # class 2 has no owner


def test_an_uneven_class_favours_the_first_owners():
    """Ten clients share class 0. Its 7 samples go to the first seven of them."""
    labels = np.zeros(7 + 9, dtype=np.int64)
    labels[7:] = 1
    parts = draw("classes_per_client(k=2)", labels, 2, 10, 8).parts
    assert [np.count_nonzero(labels[part] == 0) for part in parts] == [1] * 7 + [0] * 3


# --- log_normal_sizes


@pytest.mark.parametrize(
    ("weights", "total", "sizes"),
    [
        ([1, 1, 1], 10, [4, 3, 3]),  # a tie goes to the first
        ([0.5, 0.3, 0.2], 9, [4, 3, 2]),  # 4.5, 2.7, 1.8: two are missing after rounding down, the largest remainders get them
        ([1, 0, 0], 5, [5, 0, 0]),
        ([1, 1e-9, 1e-9], 2, [2, 0, 0]),
        ([0.1, 0.1, 0.1], 9, [3, 3, 3]),
        ([1, 2] * 20, 30, [1, 1] * 10 + [0, 1] * 10),  # shares of 0.5 and 1; ten of the twenty halves round up
    ],
)
def test_round_to_sum_by_hand(weights, total, sizes):
    assert round_to_sum(np.array(weights, dtype=float), total).tolist() == sizes


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_sizes_are_log_normal(sigma):
    """The logarithms of 2000 sizes have the standard deviation sigma, and half of them lie below the median exp(mean)."""
    sizes = [
        len(part) for part in draw(f"log_normal_sizes(sigma={sigma})", np.zeros(200_000, dtype=np.int64), 1, 2000, 8).parts
    ]
    logs = np.log(sizes)
    assert sum(sizes) == 200_000
    assert abs(logs.std() - sigma) < 4 * sigma / math.sqrt(2 * 2000)
    assert abs(np.mean(logs < logs.mean()) - 0.5) < 4 * 0.5 / math.sqrt(2000)


# --- log_normal_dirichlet


def test_without_a_spread_of_sizes_all_are_equal():
    """With sigma = 0 every client has N/n samples, and the first clients one more."""
    assert counts("log_normal_dirichlet(sigma=0, alpha=0.1)", np.arange(1003) % 10, 10).sum(1).tolist() == [101] * 3 + [100] * 7


def test_the_sizes_have_the_spread():
    """The logarithms of the sizes of 500 clients with mixed classes have the standard deviation sigma."""
    logs = np.log(counts("log_normal_dirichlet(sigma=0.5, alpha=10)", np.arange(100_000) % 10, 500).sum(axis=1))
    assert abs(logs.std() - 0.5) < 4 * 0.5 / math.sqrt(2 * 500)


# --- comparisons of schemes


@pytest.mark.parametrize("clients", [1, 7, 10, 550])
def test_no_spread_is_iid(clients):
    """log_normal_sizes(sigma=0) gives exactly the parts of iid."""
    pairs = zip(*(draw(scheme, UNEVEN, 10, clients, 8).parts for scheme in ("iid", "log_normal_sizes(sigma=0)")), strict=True)
    assert all((one == other).all() for one, other in pairs)


def test_all_classes_is_an_equal_share_of_each():
    """classes_per_client(k=C), shards(s=C, distinct) and both per-class Dirichlets at alpha -> infinity agree within one
    sample."""
    assert (counts("classes_per_client(k=10)", UNEVEN, 10) == np.arange(1, 11)).all()
    assert (counts("shards(per_client=10, distinct_labels=true)", BALANCED, 10) == 10).all()
    for scheme in ("dirichlet_per_class(alpha=1e12)", "dirichlet_balanced(alpha=1e12, min_size=0)"):
        assert abs(counts(scheme, UNEVEN, 10) - np.arange(1, 11)).max() <= 1


REFUSED = [
    ("dirichlet_per_client(beta=0)", 5, r"dirichlet_per_client\(beta=\.\.\.\) = 0\.0: must be > 0, from 1e-300 to 1e300"),
    ("dirichlet_per_client(beta=1e301)", 5, "must be > 0, from"),
    ("dirichlet_balanced(alpha=1, min_size=-1)", 5, r"min_size=\.\.\.\) = -1: must be >= 0"),
    (
        "dirichlet_balanced(alpha=1, min_size=201)",
        5,
        "= 201: 5 clients of that size need more than the 1000 .*; use 200 at most",
    ),
    (
        "dirichlet_balanced(alpha=1e-9, max_redraws=70)",
        50,
        "in 71 draws the smallest client got 0 samples at best; .* above 70",
    ),
    ("shards(per_client=0)", 5, r"shards\(per_client=\.\.\.\) = 0: must be a whole number >= 1"),
    ("shards(per_client=201)", 5, "= 201: with 5 clients that is 1005 shards of 1000 samples; use 200 at most"),
    (
        "shards(per_client=11, distinct_labels=true)",
        5,
        "= 11: distinct_labels is true and there are only 10 classes; use 10 at most",
    ),
    ("classes_per_client(k=0)", 5, r"classes_per_client\(k=\.\.\.\) = 0: must be a whole number >= 1"),
    ("classes_per_client(k=11)", 5, r"classes_per_client\(k=\.\.\.\) = 11: there are only 10 classes"),
    ("log_normal_sizes(sigma=-0.1)", 5, r"log_normal_sizes\(sigma=\.\.\.\) = -0\.1: must be >= 0"),
    ("log_normal_dirichlet(sigma=-1, alpha=1)", 5, r"log_normal_dirichlet\(sigma=\.\.\.\) = -1\.0: must be >= 0"),
    ("log_normal_dirichlet(sigma=1, alpha=0)", 5, r"log_normal_dirichlet\(alpha=\.\.\.\) = 0\.0: must be > 0"),
]


@pytest.mark.parametrize(("scheme", "clients", "line"), REFUSED)
def test_refused_in_one_line(scheme, clients, line):
    with one_line(line):
        draw(scheme, BALANCED, 10, clients, 8)


@pytest.mark.parametrize(
    "scheme",
    [
        *(f"dirichlet_per_client(beta={beta})" for beta in (1e-300, 1e300)),
        *(f"dirichlet_balanced(alpha={alpha}, min_size=0)" for alpha in (1e-300, 1e300)),
        *(f"log_normal_sizes(sigma={sigma})" for sigma in (1e-300, 1e300)),
        *(f"log_normal_dirichlet(sigma={sigma}, alpha={alpha})" for sigma in (1e-300, 1e300) for alpha in (1e-300, 1e300)),
    ],
)
def test_extremes_are_drawn_without_a_warning(scheme):
    """At the ends of the allowed range all samples are dealt, and nothing overflows."""
    assert counts(scheme, BALANCED, 20).sum() == 1000


# --- label_sets


def test_label_sets_by_hand():
    """Class 0 goes to clients 0 and 1 (two and one of three samples), class 1 to client 1, and class 2 to no client."""
    labels = np.array([2, 0, 1, 0, 1, 0])
    parts = draw("label_sets(sets='0 0-1')", labels, 3, 2, 8).parts
    assert [sorted(labels[part].tolist()) for part in parts] == [[0, 0], [0, 1, 1]]
    drawn = {tuple(draw("label_sets(sets='0 0-1')", labels, 3, 2, seed).parts[0].tolist()) for seed in range(20)}
    assert len(drawn) > 1


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ("0-a", "must be classes joined by - and clients by a blank"),
        ("", "must be classes joined by - and clients by a blank"),
        ("0-1 1-2 0-2", "it has 3 sets and the run 2 clients; set clients to 3"),
        ("0-3 1", "there are only the classes 0 to 2"),
    ],
)
def test_label_sets_that_do_not_fit(sets, message):
    with pytest.raises(UserError, match=message):
        draw(f"label_sets(sets='{sets}')", np.array([0, 1, 2]), 3, 2, 8)


def test_with_ten_shards_a_client_still_has_four_to_nine_of_ten_classes():
    """FedIMA's Table 8 and papers/changes.yaml say so of CIFAR-10 among 100 clients, at the project's seeds."""
    labels = np.repeat(np.arange(10), 5000)
    parts = [part for seed in (8, 9, 10) for part in draw("shards(per_client=10)", labels, 10, 100, seed).parts]
    classes = [len(np.unique(labels[part])) for part in parts]
    assert (min(classes), max(classes)) == (4, 9)
