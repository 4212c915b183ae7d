"""The Dirichlet schemes: worked by hand, and compared with independent definitions. Seeds are fixed; bounds are 4 standard
errors."""

import math
from collections import Counter

import numpy as np
import pytest
from dealt import BALANCED, UNEVEN, counts

from fedrepro.data.partition import dirichlet_balanced, draw
from fedrepro.data.partition.dirichlet import log_weights, proportions
from fedrepro.data.partition.dirichlet_balanced import capped_counts
from fedrepro.data.partition.dirichlet_per_class import DirichletPerClass, deal
from fedrepro.data.partition.dirichlet_per_client import deal_in_turns, draw_labels, draw_turns
from fedrepro.errors import UserError

# --- dirichlet_per_class


# (shares, N_c) -> sizes
DEALT = [
    ((0.55, 0.25, 0.2), 10, [6, 2, 2]),  # 5.5 and 2.5 round to even; the last takes 10 - 8
    ((0.1, 0.1, 0.8), 7, [1, 1, 5]),  # 0.7 rounds to 1 twice
    ((0.3, 0.3, 0.3, 0.1), 5, [2, 2, 1, 0]),  # 1.5 rounds to 2 three times: the third client gets one sample, the last none
    ((0.02, 0.02, 0.96), 20, [0, 0, 20]),  # 0.4 rounds to nothing
    ((0.5, 0.5), 0, [0, 0]),
    ((1.0,), 3, [3]),
]


@pytest.mark.parametrize(("shares", "count", "sizes"), DEALT)
def test_deal_by_hand(shares, count, sizes):
    """Parts are consecutive slices of round(share * N_c). No client gets samples that do not exist, and the last takes the
    remainder."""
    order = np.arange(count)[::-1]
    parts = deal(order, np.array(shares))
    assert [len(part) for part in parts] == sizes
    assert np.concatenate(parts).tolist() == order.tolist()


@pytest.mark.parametrize("alpha", [1e308, 1.7e308])
def test_an_overflowing_draw_is_refused(alpha):
    with pytest.raises(UserError, match="too extreme to draw from"):
        draw(DirichletPerClass(alpha), BALANCED, 10, 100, 0)


# --- Dirichlet proportions


@pytest.mark.parametrize("concentration", [0.05, 1.0, 30.0])
def test_proportions_are_dirichlet(concentration):
    """The means of the largest and the first share agree with numpy's Dirichlet."""
    ours = proportions(log_weights(concentration, (4000, 10), np.random.default_rng(0)), np.array(True))
    theirs = np.random.default_rng(1).dirichlet(np.full(10, concentration), 4000)
    for statistic in (lambda shares: shares.max(axis=1), lambda shares: shares[:, 0], lambda shares: shares[:, 0] ** 2):
        one, other = statistic(ours), statistic(theirs)
        error = math.hypot(one.std(), other.std()) / math.sqrt(4000)
        assert abs(one.mean() - other.mean()) < 4 * error


def test_proportions_survive_underflow():
    """At concentration 1e-300 one share is 1 and the others are 0. Without the first, the second gets all."""
    weights = log_weights(1e-300, (3, 4), np.random.default_rng(0))
    for row in weights:
        first, second = np.argsort(row)[::-1][:2]
        assert proportions(row, np.array(True)).tolist() == [float(c == first) for c in range(4)]
        assert proportions(row, np.arange(4) != first).tolist() == [float(c == second) for c in range(4)]


# --- dirichlet_per_client


def test_draw_labels_by_hand():
    """Client 0 prefers class 0, then 1, then 2; client 1 prefers 1. Class 0 ends after two slots, class 1 after four."""
    weights = np.array([[0.0, -1e4, -2e4], [-1e4, 0.0, -2e4]])
    drawn = draw_labels(weights, np.array([2, 2, 1]), np.array([0, 0, 0, 1, 1]), np.random.default_rng(0))
    assert drawn.tolist() == [0, 0, 1, 1, 2]


def test_draw_labels_renormalises():
    """Clients take turns with q_0 = (.8, .2) and q_1 = (.3, .7); of four samples one is of class 1. It falls to slot

    0: .2;  1: .8 * .7 = .56;  2: .8 * .3 * .2 = .048;  3, being the last: .8 * .3 * .8 = .192.
    """
    weights, supply, clients = np.log([[0.8, 0.2], [0.3, 0.7]]), np.array([3, 1]), np.array([0, 1, 0, 1])
    rng = np.random.default_rng(0)
    draws = 8000
    slots = Counter(int(np.argmax(draw_labels(weights, supply, clients, rng))) for _ in range(draws))
    for slot, share in enumerate([0.2, 0.56, 0.048, 0.192]):
        assert abs(slots[slot] / draws - share) < 4 * math.sqrt(share * (1 - share) / draws)


def test_turns_by_hand():
    """Two clients of two slots: 0011 needs client 0 twice, 1/4; 0101 and 0110 are 1/8 each; and the same for client 1."""
    rng = np.random.default_rng(0)
    orders = Counter("".join(map(str, draw_turns(np.array([2, 2]), rng))) for _ in range(8000))
    expected = {"0011": 1 / 4, "1100": 1 / 4, "0101": 1 / 8, "0110": 1 / 8, "1001": 1 / 8, "1010": 1 / 8}
    assert orders.keys() == expected.keys()
    for order, share in expected.items():
        assert abs(orders[order] / 8000 - share) < 4 * math.sqrt(share * (1 - share) / 8000)


def test_turns_of_clients_of_unequal_size():
    """Client 0 has one slot, client 1 three, client 2 none. Client 0 is first in half of the draws, second in a quarter."""
    rng = np.random.default_rng(0)
    orders = Counter("".join(map(str, draw_turns(np.array([1, 3, 0]), rng))) for _ in range(8000))
    expected = {"0111": 1 / 2, "1011": 1 / 4, "1101": 1 / 8, "1110": 1 / 8}
    assert orders.keys() == expected.keys()
    for order, share in expected.items():
        assert abs(orders[order] / 8000 - share) < 4 * math.sqrt(share * (1 - share) / 8000)


def test_a_number_that_rounds_up_stays_with_its_client():
    """Client 4 draws 1 - 2^-53. Its sum with 4 rounds to 5, where client 5 begins, but client 4 gets its own last class."""

    class Once:
        def __init__(self):
            self.numbers = [1 - 2**-53]

        def random(self, size):
            return np.full(size, self.numbers.pop())

    for supply, last in (([1, 1, 1], 2), ([1, 1, 0], 1)):
        assert draw_labels(np.zeros((6, 3)), np.array(supply), np.array([4]), Once()).tolist() == [last]


@pytest.mark.parametrize("beta", [0.01, 0.1, 1.0, 100.0])
def test_mix_is_dirichlet_while_supply_lasts(beta):
    """The largest class of a client is compared with numpy: a multinomial of 50 samples from Dir(beta)."""
    clients, size = 2000, 50
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(clients), size)
    drawn = draw_labels(log_weights(beta, (clients, 10), rng), np.full(10, clients * size), owner, rng)
    ours = np.bincount(owner * 10 + drawn, minlength=clients * 10).reshape(clients, 10).max(axis=1) / size
    other = np.random.default_rng(1)
    theirs = other.multinomial(size, other.dirichlet(np.full(10, beta), clients)).max(axis=1) / size
    assert abs(ours.mean() - theirs.mean()) < 4 * math.hypot(ours.std(), theirs.std()) / math.sqrt(clients)


@pytest.mark.parametrize(("clients", "size"), [(1, 550), (3, 183), (550, 1), (300, 1)])
def test_per_client_sizes(clients, size):
    """Each client has floor(550 / n) samples. The remainder is left out."""
    assert (counts("dirichlet_per_client(beta=0.05)", UNEVEN, clients).sum(axis=1) == size).all()


def test_per_client_limits():
    """beta -> infinity is near IID. With beta -> 0, and no class preferred by two clients, each client has one class."""
    assert abs(counts("dirichlet_per_client(beta=1e9)", BALANCED, 5) - 20).max() < 20  # binomial of mean 20, deviation 4.2
    weights = np.where(np.eye(10), 0.0, -1e300)[::-1]
    drawn = draw_labels(weights, np.full(10, 100), np.repeat(np.arange(10), 100), np.random.default_rng(0))
    assert (drawn == np.repeat(np.arange(10)[::-1], 100)).all()


# --- dirichlet_first_come


def test_first_come_keeps_its_mix():
    """Ten clients of 100 samples, ten classes, beta -> 0: a client has one class if no earlier client preferred it, and the
    last client takes the rest. If clients take turns, those that share a class run out of it at the same moment."""
    first_come, in_turns = (
        counts(f"{name}(beta=1e-9)", BALANCED, 10) for name in ("dirichlet_first_come", "dirichlet_per_client")
    )
    assert (first_come.sum(axis=1) == 100).all()
    assert first_come[0].max() == 100
    assert (first_come > 0).sum(axis=1).tolist() == [1] * 10  # each class is as large as a client
    assert (in_turns > 0).sum() > 10


def test_first_come_leaves_the_rest_to_the_last():
    """Client 0 strongly prefers class 1 and gets all five of its samples. Client 1 prefers class 1 too and gets the samples of
    classes 0 and 2."""
    labels = np.array([0, 0, 1, 1, 1, 1, 1, 2, 2, 2])
    weights = np.array([[-1e300, 0.0, -1e300], [-1e300, 0.0, -1e300]])
    parts = deal_in_turns(weights, labels, np.repeat([0, 1], 5), np.random.default_rng(0)).parts
    assert [np.bincount(labels[part], minlength=3).tolist() for part in parts] == [[0, 5, 0], [2, 0, 3]]


def test_which_samples_of_a_class_is_drawn_too():
    """Two clients of 50 take their samples of one class one after the other. Each gets about half of the first 50."""
    first, _ = draw("dirichlet_first_come(beta=1)", np.zeros(100, np.int64), 1, 2, 8).parts
    assert 15 <= (first < 50).sum() <= 35  # hypergeometric: 25 +- 2.5


# --- dirichlet_balanced

CAPPED = [
    # N/n = 5. floor(.9 * 4) = 3, the rest 1; floor(.5 * 6) = 3, the rest 3.
    ([[0.9, 0.1], [0.5, 0.5]], [4, 6], [[3, 1], [3, 3]]),
    # floor(.9 * 6) = 5: client 0 is full, so all of class 1 goes to client 1.
    ([[0.9, 0.1], [0.99, 0.01]], [6, 4], [[5, 1], [0, 4]]),
    # N/n = 3. Client 1 is full; the others share class 2 as .2 : .3, floor(.4 * 4) = 1. An empty class changes nothing.
    ([[0, 1, 0], [0.3, 0.3, 0.4], [0.2, 0.5, 0.3]], [5, 0, 4], [[0, 5, 0], [0, 0, 0], [1, 0, 3]]),
    # Cumulative proportions are floored, not each one: .3, .6, 1 of 5 are 1.5, 3, 5.
    ([[0.3, 0.3, 0.4]], [5], [[1, 2, 2]]),
    # The only client that is not full has the smallest possible share.
    ([[1, 0], [1, 0]], [5, 5], [[5, 0], [0, 5]]),
]


@pytest.mark.parametrize(("shares", "class_sizes", "expected"), CAPPED)
def test_capped_counts_by_hand(shares, class_sizes, expected):
    """Two equal draws at once, to check that they stay separate."""
    weights = np.log(np.maximum(shares, 1e-300))
    found = capped_counts(np.stack([weights, weights]), np.array(class_sizes))
    assert found.tolist() == [expected, expected]


def one_balanced_draw(labels, clients, alpha, rng):
    """Client sizes of one draw by the definition, sample by sample."""
    parts = [[] for _ in range(clients)]
    for c in range(10):
        members = np.flatnonzero(labels == c)
        shares = rng.dirichlet([alpha] * clients) * [len(part) < len(labels) / clients for part in parts]
        position = 0
        for i, part in enumerate(parts):
            end = int(sum(shares[: i + 1]) / sum(shares) * len(members))
            part.extend(members[position:end])
            position = end
    return sorted(map(len, parts))


def test_balanced_against_the_definition():
    """The smallest and the largest client have the same mean size as in a plain version that moves single samples."""
    rng = np.random.default_rng(0)
    theirs = np.array([one_balanced_draw(UNEVEN, 6, 0.5, rng) for _ in range(600)])
    ours = np.sort([counts("dirichlet_balanced(alpha=0.5, min_size=0)", UNEVEN, 6, s).sum(axis=1) for s in range(600)], axis=1)
    for i in (0, -1):
        error = math.hypot(ours[:, i].std(), theirs[:, i].std()) / math.sqrt(600)
        assert abs(ours[:, i].mean() - theirs[:, i].mean()) < 4 * error


def test_balanced_repeats_until_the_minimum():
    """`redraws` is the smallest bound that suffices, and the bound does not change what is drawn."""
    labels, scheme = BALANCED, "dirichlet_balanced(alpha=0.05, min_size=50, max_redraws={})"
    drawn = draw(scheme.format(5000), labels, 10, 12, 8)
    assert drawn.redraws > 64  # more than one batch
    assert min(map(len, drawn.parts)) >= 50
    again = draw(scheme.format(drawn.redraws), labels, 10, 12, 8)
    assert [part.tolist() for part in again.parts] == [part.tolist() for part in drawn.parts]
    with pytest.raises(UserError, match=f"in {drawn.redraws} draws the smallest client got [0-9]+ samples at best; use fewer"):
        draw(scheme.format(drawn.redraws - 1), labels, 10, 12, 8)


def test_a_smallest_client_of_exactly_the_minimum_will_do():
    """The smallest client of a draw may have more than the minimum. With its size as the new minimum, the same draw is
    accepted."""
    scheme = "dirichlet_balanced(alpha=0.05, min_size={})"
    for least in (20, 40, 50):
        drawn = draw(scheme.format(least), BALANCED, 10, 12, 8)
        again = draw(scheme.format(min(map(len, drawn.parts))), BALANCED, 10, 12, 8)
        assert again.redraws == drawn.redraws > 0
        assert [part.tolist() for part in again.parts] == [part.tolist() for part in drawn.parts]


def test_balanced_draws_which_samples_of_a_class():
    """The first of two clients gets about half of the first 50 of 100 samples of one class."""
    first, second = draw("dirichlet_balanced(alpha=1e9)", np.zeros(100, np.int64), 1, 2, 8).parts
    assert abs(len(first) - len(second)) <= 2
    assert 15 <= (first < 50).sum() <= 35  # hypergeometric: 25 +- 2.5


def test_balanced_takes_the_first_draw_that_will_do(monkeypatch):
    """In four draws the smaller of two clients gets 0, 1, 2 and 3 samples. With a minimum of 2 the scheme takes the third
    draw."""
    batches = iter([[0], [1], [2, 3]])  # [draws] -> [draws, one class, two clients]
    monkeypatch.setattr(
        dirichlet_balanced, "capped_counts", lambda *_: np.array([[[least, 10 - least]] for least in next(batches)])
    )
    drawn = draw("dirichlet_balanced(alpha=1, min_size=2)", np.zeros(10, dtype=np.int64), 1, 2, 8)
    assert [len(part) for part in drawn.parts] == [2, 8]
    assert drawn.redraws == 2


def test_balanced_allows_a_minimum_of_all_samples():
    """A single client may have a minimum of all ten samples."""
    assert len(draw("dirichlet_balanced(alpha=1, min_size=10)", np.zeros(10, dtype=np.int64), 1, 1, 8).parts[0]) == 10


# --- dirichlet_unmapped


def test_unmapped_is_the_other_scheme_on_shuffled_labels():
    """The parts are those of dirichlet_per_client on the labels, which the same stream shuffles first."""
    from fedrepro import rng
    from fedrepro.data.partition.dirichlet_per_client import DirichletPerClient

    labels = np.arange(60) % 3
    stream = rng.stream(8, "partition")
    expected = DirichletPerClient(0.5)(labels[stream.permutation(60)], 3, 4, stream).parts
    found = draw("dirichlet_unmapped", labels, 3, 4, 8).parts
    assert [part.tolist() for part in found] == [np.sort(part).tolist() for part in expected]
    assert [len(part) for part in found] == [15] * 4
