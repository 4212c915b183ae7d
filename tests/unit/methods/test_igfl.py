"""IGFL by hand: the client's correction on a loss that is linear in one weight, and attention compared with a literal double
loop.

Client 0 (two samples) has the gradient 2 everywhere, client 1 (one sample) the gradient -1. Two local steps with a client_lr of
0.1, no momentum, no weight decay, w = 1 at the start.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from fedrepro import tree
from fedrepro.engine.loop import train
from fedrepro.methods.compose import compose
from fedrepro.tree import Layout, Tree
from fedrepro.types import Cohort
from tests import toy

PLAIN = {"local_epochs": 2, "batch_size": 2, "client_momentum": 0.0, "weight_decay": 0.0, "client_lr_decay": 1.0}
KINDS = ["self", "global", "time", "time, reading=diagonal", "time, reading=rows"]


def weights(rounds: int, cohorts: tuple[tuple[int, ...], ...] = ((0, 1),), **changes: Any) -> list[float]:
    """The global weight after each round of IGFL's client side."""
    tasks = [toy.linear_task(t, cohorts, **PLAIN | changes) for t in range(1, rounds + 1)]
    return [train(task, toy.linear("igfl_c")).params.flat.item() for task in tasks]


def test_three_rounds_by_hand() -> None:
    """A step is -1.5 * 0.1 g - u / (2 * 2) + d / 2.

    Round 0, u = d = 0: client 0 moves 2 * -0.3, client 1 2 * 0.15; mean -0.15.
    Round 1, d = -0.15: client 0 2 * (-0.3 + 0.15 - 0.075) = -0.45; client 1 2 * (0.15 - 0.075 - 0.075) = 0; mean -0.225.
    Round 2, d = -0.225: client 0 2 * (-0.3 + 0.1125 - 0.1125) = -0.6; client 1 2 * (0.15 - 0 - 0.1125) = 0.075; mean -0.2625.
    """
    assert weights(3) == pytest.approx([0.85, 0.625, 0.3625], abs=1e-14)


def test_a_client_that_comes_late_has_no_past_but_follows_the_group() -> None:
    """One client per round, so |S| = 1. Round 0, client 0: 2 * -0.4. Round 1, d = -0.8, client 1 for the first time: 2 * (0.2 -
    0.4) = -0.4. Round 2, d = -0.4, client 0 again, which moved -0.8: 2 * (-0.4 + 0.4 - 0.2) = -0.4."""
    assert weights(3, ((0,), (1,), (0,))) == pytest.approx([0.2, -0.2, -0.6], abs=1e-14)


def test_the_number_of_steps_is_that_of_this_round() -> None:
    """Two epochs in round 0, one in round 1, where T = 1: client 0 -0.3 + 0.6 / 2 - 0.15 = -0.15, client 1
    0.15 - 0.3 / 2 - 0.15 = -0.15; mean -0.15."""
    assert weights(2, epochs="fewer(every=1)") == pytest.approx([0.85, 0.7], abs=1e-14)


def test_the_correction_enters_no_momentum() -> None:
    """Momentum 0.5: the solver moves client 0 by -0.2 and -0.3, client 1 by 0.1 and 0.15. The correction is -0.1 and 0.05 per
    step.

    Round 0: -0.7 and 0.35, mean -0.175. Round 1, d = -0.175: client 0 -0.5 - 0.2 + 0.7 / 2 - 0.175 = -0.525; client 1
    0.25 + 0.1 - 0.35 / 2 - 0.175 = 0; mean -0.2625.
    """
    assert weights(2, client_momentum=0.5) == pytest.approx([0.825, 0.5625], abs=1e-14)


def test_notes_of_the_clients() -> None:
    """The updates of the first test are -0.6 and 0.3, then -0.45 and 0 with d = -0.15. The cosines are 1 and 0, and the mean
    squared norm is 0.10125. Each mean has the smallest and the largest value beside it."""
    rows = train(toy.linear_task(2, **PLAIN), toy.linear("igfl_c")).progress.rows
    of = lambda name: toy.values_of(rows, name)  # noqa: E731
    assert of("update_norm_squared") == pytest.approx([(0.36 + 0.09) / 2, 0.2025 / 2], abs=1e-12)
    assert of("update_norm_squared_min") == pytest.approx([0.09, 0], abs=1e-12)
    assert of("update_norm_squared_max") == pytest.approx([0.36, 0.2025], abs=1e-12)
    assert of("movement_cosine") == pytest.approx([0, 0.5], abs=1e-12)
    assert of("movement_cosine_max") == pytest.approx([0, 1], abs=1e-12)


def cohort_of(updates_KD: np.ndarray, clients: list[int]) -> Cohort:
    """Clients of equal weight with these updates."""
    return toy.cohort(updates_KD, clients=clients, fraction=0.5, population=9)


def literally(kind: str, updates: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The aggregated update, computed by a double loop over clients."""
    clients = range(len(updates))
    queries = {"self": updates, "global": [updates.mean(0)]}.get(kind, before)
    total = np.zeros(updates.shape[1])
    if kind == "time":  # client j's own past, normalised over j
        scores = [math.exp(before[j] @ updates[j]) for j in clients]
        return sum((scores[j] / sum(scores) * updates[j] for j in clients), total)
    if kind.endswith("diagonal"):
        for j in clients:
            scores = [math.exp(before[j] @ updates[other]) for other in clients]
            total += scores[j] / sum(scores) * updates[j]
        return total
    for query in queries:
        scores = [math.exp(query @ updates[j]) for j in clients]
        for j in clients:
            total += scores[j] / sum(scores) * updates[j] / len(queries)
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_the_literal_double_loop(kind: str) -> None:
    """Two rounds have different cohorts. Client 2 is new in the second."""
    draw, ctx = np.random.default_rng(3), toy.server_context(toy.make_task())
    part = compose(f"attention(kind={kind})").aggregate
    first, second = draw.normal(0, 0.5, (2, 3, 40))
    x = cohort_of(first, [1, 4, 7])
    found, state = part(x, part.init(x.anchor), ctx)
    np.testing.assert_allclose(found.flat, literally(kind, first, np.zeros((3, 40))), rtol=0, atol=1e-13)
    found, _ = part(cohort_of(second, [1, 2, 7]), state, ctx)
    before = np.stack([first[0], np.zeros(40), first[2]])
    np.testing.assert_allclose(found.flat, literally(kind, second, before), rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_updates_are_averaged(kind: str) -> None:
    """In this case no client attends to one more than to another."""
    x, ctx = cohort_of(np.tile(np.linspace(-1, 1, 6), (4, 1)), [0, 1, 2, 3]), toy.server_context(toy.make_task())
    part = compose(f"attention(kind={kind})").aggregate
    state = part.init(x.anchor)
    for _ in range(2):
        found, state = part(x, state, ctx)
        torch.testing.assert_close(found.flat, x.updates.flat[0], rtol=0, atol=1e-15)
        assert ctx.notes["attention_entropy"] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_how_weights_add_up(kind: str) -> None:
    """They add up to 1, except in the literal form of the formula, whose step is shorter or longer."""
    draw, ctx = np.random.default_rng(5), toy.server_context(toy.make_task())
    part = compose(f"attention(kind={kind})").aggregate
    x = cohort_of(draw.normal(0, 1, (3, 8)), [0, 1, 2])
    state = part(x, part.init(x.anchor), ctx)[1]
    part(cohort_of(draw.normal(0, 1, (3, 8)), [0, 1, 2]), state, ctx)
    assert (ctx.notes["attention_sum"] == pytest.approx(1, abs=1e-12)) == ("diagonal" not in kind)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_far_beyond_what_exp_can_hold(kind: str) -> None:
    """Norms of 100 give scores of 10,000."""
    draw, ctx = np.random.default_rng(7), toy.server_context(toy.make_task())
    part = compose(f"attention(kind={kind})").aggregate
    x = cohort_of(100 * draw.normal(0, 1, (3, 8)), [0, 1, 2])
    found, _ = part(x, part(x, part.init(x.anchor), ctx)[1], ctx)
    assert torch.isfinite(found.flat).all()
    assert math.isfinite(ctx.notes["attention_entropy"])


def test_long_orthogonal_updates_attend_to_themselves() -> None:
    """Each row of the softmax picks its own client, so self-attention is the mean."""
    x, ctx = cohort_of(30 * np.eye(3), [0, 1, 2]), toy.server_context(toy.make_task())
    part = compose("attention(kind=self)").aggregate
    found, _ = part(x, part.init(x.anchor), ctx)
    torch.testing.assert_close(found.flat, torch.full((3,), 10.0, dtype=torch.float64), rtol=0, atol=1e-12)
    assert ctx.notes["attention_entropy"] == pytest.approx(0, abs=1e-12)
    assert ctx.notes["attention_cosine"] == pytest.approx(1 / math.sqrt(3), abs=1e-12)


def test_global_attention_prefers_what_reaches_far_along_the_mean() -> None:
    """Updates (2, 0), (0, 1): mean (1, 0.5), scores 2 and 0.5; weights 1 / (1 + exp(-1.5)) and the rest."""
    x, ctx = cohort_of(np.array([[2.0, 0.0], [0.0, 1.0]]), [0, 1]), toy.server_context(toy.make_task())
    part = compose("attention(kind=global)").aggregate
    found, _ = part(x, part.init(x.anchor), ctx)
    first = 1 / (1 + math.exp(-1.5))
    assert found.flat.tolist() == pytest.approx([2 * first, 1 - first], abs=1e-14)
    assert ctx.notes["attention_max"] == pytest.approx(first, abs=1e-14)


def test_the_gram_matrix_is_that_of_the_inner_products() -> None:
    """It agrees for two cohorts with vectors longer than one piece."""
    a, b = (tree.stack([Tree(Layout.of({"w": (40_000,)}), torch.randn(40_000)) for _ in range(n)]) for n in (2, 3))
    torch.testing.assert_close(tree.inner(a, b), a.flat.double() @ b.flat.double().mT, rtol=0, atol=1e-9)
    assert torch.equal(tree.gram(a), tree.inner(a, a))


def test_without_both_parts_it_is_fedavg() -> None:
    """The paper's claim IG-10: it is the same method, and so the same run."""
    fedavg = compose("mean(weighting=uniform)+mean_buffers(weighting=uniform)")
    assert str(dataclasses.replace(compose("igfl"), client=fedavg.client, aggregate=fedavg.aggregate)) == str(fedavg)
