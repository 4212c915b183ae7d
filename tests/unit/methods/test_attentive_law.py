"""Attentive LAW over rounds: weights that add up per client, and the stop at the critical point."""

import dataclasses
import math

import pytest
import torch

from fedrepro.engine.sequential import SequentialEngine
from fedrepro.methods.aggregate.early_stopped_law import coherence
from fedrepro.methods.compose import compose, for_rounds
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, Cohort
from tests import toy

SIZES = torch.tensor([0.25, 0.75], dtype=torch.float64)


def sent(*updates: list[float], weights: torch.Tensor = SIZES) -> Cohort:
    """The cohort of clients 1, 3, 5, ... of ten, with updates of a model of zeros."""
    flat = torch.tensor(updates, dtype=torch.float64)
    layout, one = Layout.of({"w": (flat.shape[1],)}), torch.ones(len(flat), dtype=torch.float64)
    anchor, buffers = Tree(layout, torch.zeros_like(flat[0])), Tree(Layout.of({}), flat[:, :0])
    return Cohort([*range(1, 2 * len(flat), 2)], Tree(layout, flat), weights, one, one, 1.0, 10, anchor, buffers)


@pytest.mark.parametrize(
    "text", ["attentive_law(server_epochs=4, server_lr=0.05)", "early_stopped_law(stop=2, server_epochs=4)"]
)
def test_weights_add_up_by_client(text: str) -> None:
    """Three cohorts have two of five clients, one of which has no data. Each round's weights are summed per client in a loop.
    After the stop they are the data sizes."""
    task, method = toy.make_task(cohorts=toy.PARTIAL), compose(text)
    runner, state = SequentialEngine(task, method), toy.first_state(task, method)
    total, times = [0.0] * toy.CLIENTS, [0] * toy.CLIENTS
    for round in range(3):
        cohort, _ = runner.run_cohort(state, round)
        assert cohort is not None
        ctx = toy.server_context(task, cohort, round)
        state = method.apply(state, ctx)
        for client, weight in zip(cohort.clients, ctx.diagnostics["lambda"].tolist(), strict=True):
            total[client], times[client] = total[client] + weight, times[client] + 1
        assert ctx.diagnostics["lambda_sum"].tolist() == pytest.approx(total, abs=1e-15)
        assert ctx.diagnostics["lambda_rounds"].tolist() == times
        learned = text.startswith("attentive") or round < 2
        assert torch.equal(ctx.diagnostics["lambda"], cohort.weights) == (not learned or len(cohort.clients) == 1)
    assert sum(total) == pytest.approx(3, abs=1e-14)


def test_coherence_by_hand() -> None:
    """p = (0.5, 0.3, 0.2); cosines 1/sqrt(2), -1 and -1/sqrt(2), each pair twice. A client that does not move has cosine 0, and
    a single client has no pairs."""
    weights = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    expected = 2 * (0.15 / math.sqrt(2) - 0.10 - 0.06 / math.sqrt(2))
    assert coherence(sent([1, 0], [2, 2], [-5, 0], weights=weights)) == pytest.approx(expected, abs=1e-15)
    assert coherence(sent([1, 0], [0, 0], [-5, 0], weights=weights)) == pytest.approx(-0.2, abs=1e-15)
    assert coherence(sent([3, 4], weights=weights[:1])) == 0


def test_it_stops_where_coherence_ends_and_stays_stopped() -> None:
    """One weight, two clients: the same direction twice, opposite ones, the same again. 2 * 3/16 = 0.375, then -0.375. From
    then on nothing is measured or learned, and the update is the mean by data size."""
    task, part = dataclasses.replace(toy.make_task(rounds=4), model=toy.ONE_WEIGHT), compose("early_stopped_law").aggregate
    state, noted, updates = part.init(toy.one_weight(0.0)), [], [(1, 2), (1, 3), (1, -3), (1, 2)]
    proxy = Batch(torch.ones(2, 1, 1, 1, dtype=torch.float64), torch.zeros(2, dtype=torch.int64))
    for round, (first, second) in enumerate(updates):
        cohort = sent([first], [second])
        ctx = toy.server_context(task, cohort, round, proxy=proxy)
        update, state = part(cohort, state, ctx)
        noted.append((ctx.notes["stopped"], ctx.notes.get("coherence")))
        moved_away = abs(update.flat.item() - (first + 3 * second) / 4) > 1e-6
        assert moved_away == (round < 2)
        assert state["stopped"] == (round >= 2)
    assert noted == [(0, pytest.approx(0.375)), (0, pytest.approx(0.375)), (1, pytest.approx(-0.375)), (1, None)]


def test_a_client_alone_stops_nothing() -> None:
    """A single client has no pair, so no coherence is measured and learning does not stop."""
    task, part = toy.make_task(), compose("early_stopped_law(server_epochs=0)").aggregate
    ctx = toy.server_context(task)
    _, state = part(sent([1.0], weights=SIZES[:1] * 4), part.init(task.params), ctx)
    assert state["stopped"] is False
    assert "coherence" not in ctx.notes


@pytest.mark.parametrize(("stop", "expected"), [("2", [0, 0, 1, 1]), ("0.3", [0, 0, 1, 1]), ("4", [0] * 4), ("0", [1] * 4)])
def test_a_round_or_a_share_of_them(stop: str, expected: list[int]) -> None:
    """`stop` is a round of four, or a share that is rounded up, 0.3 x 4 to 2. With it coherence is not measured."""
    task, part = toy.make_task(rounds=4), compose(f"early_stopped_law(stop={stop}, server_epochs=0)").aggregate
    state, found = part.init(task.params), []
    for round in range(4):
        ctx = toy.server_context(task, round=round)
        _, state = part(sent([1.0], [-1.0]), state, ctx)
        found.append(ctx.notes["stopped"])
        assert "coherence" not in ctx.notes
    assert found == expected


@pytest.mark.parametrize(("stop", "expected"), [("100", "10"), ("0.5", "0.5"), ("coherence", "coherence")])
def test_in_a_shorter_run_a_round_is_the_same_share(stop: str, expected: str) -> None:
    """Round 100 of 200 is round 10 of 20."""
    assert f"stop={expected})" in str(for_rounds(compose(f"early_stopped_law(stop={stop})"), 20, lambda _: 200))
