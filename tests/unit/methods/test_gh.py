"""Gradient harmonisation: compared with the literal double loop, by hand, and where it must change nothing."""

from itertools import product

import numpy as np
import pytest
import torch

from fedrepro import rng
from fedrepro.methods.transform.gh import GradientHarmonisation
from tests import toy

VARIANTS = [
    GradientHarmonisation(*choice)
    for choice in product(("copies", "in_place", "pairs"), ("other", "own"), ("random", "ascending"))
]


def harmonised(part: GradientHarmonisation, updates_KD: list[list[float]] | torch.Tensor) -> tuple[torch.Tensor, dict]:
    """The harmonised updates [K, D], and the values that the part notes."""
    ctx = toy.server_context(toy.make_task())
    cohort, _ = part(toy.cohort(updates_KD), None, ctx)
    return cohort.updates.flat, ctx.notes


def literal(part: GradientHarmonisation, updates_KD: torch.Tensor) -> torch.Tensor:
    """The double loop on vectors, as the fact sheet writes it."""
    clients, original = len(updates_KD), updates_KD.numpy()
    generator, g = rng.stream(8, "server/gh", 0), original.copy()
    for i in range(clients):
        others = np.array([j for j in range(clients) if j != i])
        for j in generator.permutation(others) if part.order == "random" else others:
            r_j = g[j] if part.against == "in_place" else original[j]
            g_i = original[i] if part.against == "pairs" else g[i]
            c = g_i @ r_j
            d = r_j @ r_j if part.denominator == "other" else g_i @ g_i
            if c < 0 and d >= 1e-12:
                g[i] = g[i] - c / d * r_j
    return torch.from_numpy(g)


@pytest.mark.parametrize("part", VARIANTS, ids=str)
@pytest.mark.parametrize("clients", [2, 7])
def test_the_gram_form_is_the_double_loop(part: GradientHarmonisation, clients: int) -> None:
    """On random updates in five dimensions, where about half of all pairs conflict, both agree to 1e-10."""
    updates = torch.from_numpy(rng.stream(1, "test", clients).normal(size=(clients, 5)))
    expected = literal(part, updates)
    assert not torch.equal(expected, updates)
    torch.testing.assert_close(harmonised(part, updates)[0], expected, rtol=0, atol=1e-10)


def test_two_opposing_clients_by_hand() -> None:
    """g_1 = (2, 0), g_2 = (-1, 1), <g_1, g_2> = -2: g_1' = (2, 0) + 2/2 (-1, 1) = (1, 1), g_2' = (-1, 1) + 2/4 (2, 0)."""
    found, notes = harmonised(GradientHarmonisation(), [[2.0, 0.0], [-1.0, 1.0]])
    assert found.tolist() == [[1.0, 1.0], [0.0, 1.0]]
    # Means: before (1/2, 1/2), after (1/2, 1): lengths 0.7071 and 1.1180.
    assert notes == {"gh_conflicts": 1.0, "gh_norm_ratio": pytest.approx((1.25 / 0.5) ** 0.5)}


@pytest.mark.parametrize("part", VARIANTS, ids=str)
@pytest.mark.parametrize("updates", [[[1.0, 0.0], [0.5, 2.0], [0.0, 1.0]], [[1.0, -3.0]], [[0.0, 0.0], [1.0, 0.0]]])
def test_without_conflict_nothing_changes(part: GradientHarmonisation, updates: list[list[float]]) -> None:
    """Agreeing clients, a single one, and one that did not move: the tensor itself is returned."""
    cohort = toy.cohort(updates)
    out, _ = part(cohort, None, toy.server_context(toy.make_task()))
    assert out.updates.flat is cohort.updates.flat


@pytest.mark.parametrize("part", VARIANTS, ids=str)
def test_clients_that_hardly_move_are_left_alone(part: GradientHarmonisation) -> None:
    """There is no division by a squared norm below 1e-12: no value is infinite, and no client is projected along such an
    update."""
    updates = torch.tensor([[1e-7, 0.0], [-1.0, 0.5], [0.0, 0.0]], dtype=torch.float64)
    found, _ = harmonised(part, updates)
    assert torch.isfinite(found).all()
    if part.denominator == "other":
        assert torch.equal(found[1], updates[1])


def test_the_order_of_the_others_matters_slightly_and_is_the_runs_own() -> None:
    """Two rounds draw two orders, and the same round draws the same one."""
    updates = torch.from_numpy(rng.stream(4, "test").normal(size=(6, 4)))

    def at(round: int) -> torch.Tensor:
        cohort, _ = GradientHarmonisation()(toy.cohort(updates), None, toy.server_context(toy.make_task(), round=round))
        return cohort.updates.flat

    assert torch.equal(at(0), at(0))
    assert not torch.equal(at(0), at(1))


def test_only_conflicting_clients_are_touched() -> None:
    """Client 2 agrees with all others, and its row keeps its bits."""
    updates = torch.tensor([[1.0, 0.1], [-1.0, 0.2], [0.0, 3.0]], dtype=torch.float64)
    found, _ = harmonised(GradientHarmonisation(), updates)
    assert torch.equal(found[2], updates[2])
    assert not torch.equal(found[:2], updates[:2])
