"""FedDyn's rounds by hand, on a loss that is linear in one weight, and compared with its authors' reference code.

Client 0 (two samples) has the gradient 2 everywhere, client 1 (one sample) the gradient -1. Two local steps with a client_lr of
0.1, alpha = 0.5, no momentum, no weight decay, w = 1 at the start.
"""

import pytest
import torch

from fedrepro.engine.batches import local_batches
from fedrepro.engine.local import FORMS
from fedrepro.engine.loop import train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.methods.compose import compose
from fedrepro.models import ops
from fedrepro.tree import Tree
from tests import toy

PLAIN = {"local_epochs": 2, "batch_size": 2, "client_momentum": 0.0, "weight_decay": 0.0, "client_lr_decay": 1.0}


def weights(text: str, rounds: int, cohorts: tuple[tuple[int, ...], ...] = ((0, 1),), **changes) -> list[float]:
    """The global weight after each round."""
    tasks = [toy.linear_task(t, cohorts, **PLAIN | changes) for t in range(1, rounds + 1)]
    return [train(task, toy.linear(text)).params.flat.item() for task in tasks]


def test_two_rounds_by_hand() -> None:
    """g - h_i + 0.5 (w - w_t) on the clients; h_i <- h_i - 0.5 (w_i - w_t); h <- h - 0.5/2 sum (w_i - w_t); mean - h / 0.5.

    Round 0, w_t = 1, all states 0.
      client 0: g = 2: w = 0.8; g = 2 - 0.1 = 1.9: w = 0.61; moved -0.39, h_0 = 0.195
      client 1: g = -1: w = 1.1; g = -1 + 0.05 = -0.95: w = 1.195; moved 0.195, h_1 = -0.0975
      server: h = -0.25 (-0.39 + 0.195) = 0.04875; w = 0.9025 - 0.0975 = 0.805
    Round 1, w_t = 0.805.
      client 0: g = 2 - 0.195 = 1.805: w_t - 0.1805; g = 1.805 - 0.09025 = 1.71475; moved -0.1805 - 0.171475 = -0.351975
      client 1: g = -1 + 0.0975 = -0.9025: w_t + 0.09025; g = -0.9025 + 0.045125 = -0.857375; moved 0.1759875
      server: h = 0.04875 - 0.25 (-0.351975 + 0.1759875) = 0.092746875
              w = 0.805 + (-0.351975 + 0.1759875) / 2 - 0.18549375 = 0.5315125
    """
    assert weights("feddyn(alpha=0.5)", 2) == pytest.approx([0.805, 0.5315125], abs=1e-14)


def test_the_form_of_fedlaws_authors_by_hand() -> None:
    """The norm not squared: 0.5/2 times the sign of w - w_t, 0 where they are equal; sizes 2/3 and 1/3 in h and in the mean.

    Round 0, w_t = 1.
      client 0: g = 2: w = 0.8; g = 2 - 0.25 = 1.75: w = 0.625; moved -0.375, h_0 = 0.1875
      client 1: g = -1: w = 1.1; g = -1 + 0.25 = -0.75: w = 1.175; moved 0.175, h_1 = -0.0875
      server: mean move 2/3 * -0.375 + 1/3 * 0.175 = -0.575/3; h = 0.2875/3; w = 1 - 0.575/3 - 0.575/3 = 1.85/3
    Round 1.
      client 0: g = 2 - 0.1875 = 1.8125, then 1.5625; moved -0.3375
      client 1: g = -1 + 0.0875 = -0.9125, then -0.6625; moved 0.1575
      server: mean move -0.225 + 0.0525 = -0.1725; h = 0.2875/3 + 0.08625; w = 1.85/3 - 0.1725 - 0.575/3 - 0.1725 = 0.08
    """
    text = "feddyn(alpha=0.5, norm=plain, weighting=size)+mean(weighting=size)"
    assert weights(text, 2) == pytest.approx([1.85 / 3, 0.08], abs=1e-14)


@pytest.mark.parametrize(
    ("norm", "weighting", "first"),
    [("squared", "uniform", 0.805), ("plain", "uniform", 0.8), ("squared", "size", 0.61), ("plain", "size", 1.85 / 3)],
)
def test_norm_and_weighting_are_two_switches(norm: str, weighting: str, first: float) -> None:
    """Round 0 has the moves of the tests above: squared -0.39 and 0.195, plain -0.375 and 0.175. All states are zero and all
    clients take part, so w = 1 + 2 * (their mean): -0.0975, -0.1; or by sizes -0.195, -0.575/3."""
    text = f"feddyn(alpha=0.5, norm={norm}, weighting={weighting})+mean(weighting={weighting})"
    assert weights(text, 1) == pytest.approx([first], abs=1e-14)


def test_clipping_by_hand() -> None:
    """At 1.5 client 0 takes 1.5 instead of 2 and of 2 - 0.075 = 1.925, and moves -0.3. Client 1, below 1.5, still moves 0.195:
    w = 1 + 2 * (-0.3 + 0.195) / 2 = 0.895. The default of 10, and 0, clip nothing here."""
    assert weights("feddyn(alpha=0.5, clip=1.5)", 1) == pytest.approx([0.895], abs=1e-14)
    assert weights("feddyn(alpha=0.5, clip=0)", 2) == weights("feddyn(alpha=0.5)", 2)


def test_clipping_keeps_the_direction() -> None:
    """One step on 123 weights with a client_lr of 0.1, clipped at 0.01: each client moves 0.001 along the unclipped step."""
    task = toy.make_task(local_epochs=1, batch_size=100, client_momentum=0.0, weight_decay=0.0)

    def moves(text: str) -> torch.Tensor:
        method = compose(text)
        cohort, _ = SequentialEngine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
        assert cohort is not None
        return cohort.updates.flat

    free, clipped = moves("feddyn(clip=0)"), moves("feddyn(clip=0.01)")
    length = torch.linalg.vector_norm(free, dim=1, keepdim=True)
    assert length.min() > 0.001
    torch.testing.assert_close(clipped, 0.001 * free / length, rtol=0, atol=1e-15)


def test_partial_participation_by_hand() -> None:
    """h moves by |S|/n = 1/2 of the cohort's mean move; a client's h_i waits until its next round.

    Round 0, client 0 alone: moved -0.39, h_0 = 0.195; h = -0.25 * -0.39 = 0.0975; w = 1 - 0.39 - 0.195 = 0.415
    Round 1, client 1 alone, h_1 still 0: moved 0.195; h = 0.0975 - 0.04875 = 0.04875; w = 0.415 + 0.195 - 0.0975 = 0.5125
    Round 2, client 0 with h_0 = 0.195: moved -0.351975; h = 0.04875 + 0.08799375 = 0.13674375
             w = 0.5125 - 0.351975 - 0.2734875 = -0.1129625
    """
    found = weights("feddyn(alpha=0.5)", 3, cohorts=((0,), (1,)))
    assert found == pytest.approx([0.415, 0.5125, -0.1129625], abs=1e-14)


def test_by_size_the_cohort_counts_whole() -> None:
    """FedLAW's authors normalise over the cohort: client 0 alone changes h by 0.5 * 0.375 = 0.1875, w = 1 - 0.375 - 0.375."""
    text = "feddyn(alpha=0.5, norm=plain, weighting=size)+mean(weighting=size)"
    assert weights(text, 1, cohorts=((0,),)) == pytest.approx([0.25], abs=1e-14)


@pytest.mark.parametrize("engine", FORMS)
def test_momentum_works_on_the_whole_direction(engine: str) -> None:
    """Momentum 0.5: v = 2, w = 0.8; v = 1 + 2 - 0.1 = 2.9, w = 0.51: client 0 alone moves -0.49; w = 1 - 0.49 - 0.245."""
    task = toy.linear_task(1, ((0,),), **PLAIN | {"client_momentum": 0.5})
    outcome = train(task, toy.linear("feddyn(alpha=0.5)"), engine=engine)
    assert outcome.params.flat.item() == pytest.approx(0.265, abs=1e-14)


def test_same_trajectory_as_the_reference_bookkeeping() -> None:
    """v_i = -h_i / alpha, from 0: the loss CE + alpha <w, v_i - w_t> with weight decay raised by alpha;
    v_i <- v_i + (w_i - w_t); w <- mean over the cohort of w_i + mean over clients with data of v_i. No clipping, float64."""
    task, alpha = toy.make_task(rounds=6, cohorts=toy.PARTIAL), 0.3
    spec, w_t = task.spec, task.params.flat
    v = {client: torch.zeros_like(w_t) for client in range(len(task.client_index)) if task.trains(client)}
    for t in range(spec.rounds):
        models = []
        for client in (c for c in task.cohorts[t].tolist() if c in v):
            data, w, velocity = task.train.take(task.client_index[client]), w_t.clone(), torch.zeros_like(w_t)
            order = {"seed": task.seed, "client": client, "round": t, "epochs": spec.local_epochs}
            for index_B in local_batches(len(data), **order, batch_size=spec.batch_size):
                batch, leaf = data.take(index_B), w.clone().requires_grad_()
                logits = task.model.forward(Tree(task.model.layout, leaf), task.buffers, batch.x, True)[0]
                loss = ops.cross_entropy(logits, batch.y) + alpha * torch.dot(leaf, v[client] - w_t)
                (g,) = torch.autograd.grad(loss, leaf)
                velocity = spec.client_momentum * velocity + g + (spec.weight_decay + alpha) * w
                w = w - spec.client_lr_at(t) * velocity
            v[client] = v[client] + w - w_t
            models.append(w)
        if models:
            w_t = torch.stack(models).mean(0) + torch.stack(list(v.values())).mean(0)
    found = train(task, compose(f"feddyn(alpha={alpha}, clip=0)")).params.flat
    torch.testing.assert_close(found, w_t, rtol=0, atol=1e-12)
    assert (found - train(task, compose("mean(weighting=uniform)")).params.flat).abs().max() > 1e-3
