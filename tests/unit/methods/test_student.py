"""FedDF, FedBE and Server-FT by hand. One weight w, logits (w x, 0), so the probability of class 0 is s(w x) = 1 / (1 + e^-wx).

The clients' models are 1 and 3 with data-size weights 1/4 and 3/4, from the global weight 0.5: the student starts at 2.5.
"""

import dataclasses
import math

import numpy as np
import pytest
import torch

from fedrepro import rng
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.methods.compose import ServerState, compose
from fedrepro.methods.refine.fedbe import FedBe, draw
from fedrepro.methods.student import client_logits
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, Cohort
from tests import toy

NOTHING = Tree(Layout.of({}), torch.zeros(0))


def s(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def cohort(anchor: float = 0.5) -> Cohort:
    """A cohort with models 1 and 3, sent from `anchor`."""
    updates = Tree(toy.ONE_WEIGHT.layout, torch.tensor([[1 - anchor], [3 - anchor]], dtype=torch.float64))
    return toy.cohort(updates, [0.25, 0.75], anchor=toy.one_weight(anchor))


def rounds(text: str, count: int = 1, x: tuple[float, ...] = (1.0, 2.0), y: tuple[int, ...] = (0, 0)) -> list[float]:
    """The weight after each of `count` rounds with the cohort above and a proxy set of images x with labels y."""
    task = dataclasses.replace(toy.make_task(), model=toy.ONE_WEIGHT)
    proxy = Batch(torch.tensor(x, dtype=torch.float64).reshape(-1, 1, 1, 1), torch.tensor(y))
    method, found = compose(text), []
    state: ServerState = method.init(toy.one_weight(0.5), NOTHING)
    for _ in range(count):
        ctx = toy.server_context(task, cohort(), network=TrainingNetwork(toy.ONE_WEIGHT, NOTHING), proxy=proxy)
        state = method.apply(dataclasses.replace(state, params=toy.one_weight(0.5)), ctx)
        found.append(state.params.flat.item())
    return found


SGD = "solver=sgd, server_lr=0.1, momentum=0.5"


def pull(w: float, teacher: float) -> float:
    """d/dw of KL(s(teacher x) || s(w x)), the mean over x = 1 and x = 2. The gradient at a logit is student minus teacher."""
    return sum(x * (s(w * x) - s(teacher * x)) for x in (1, 2)) / 2


def test_feddf_two_sgd_steps_by_hand() -> None:
    """One batch per epoch. Step 1: v = g. Step 2: v = v / 2 + g at the moved weight; the teacher stays. With weight decay 0.1
    0.1 w is added to each g."""
    for decay in (0.0, 0.1):
        v = pull(2.5, 2) + decay * 2.5
        w = 2.5 - 0.1 * v
        v = v / 2 + pull(w, 2) + decay * w
        text = f"feddf({SGD}, weight_decay={decay}, server_epochs=2)"
        assert rounds(text) == pytest.approx([w - 0.1 * v], abs=1e-14)


def test_feddf_one_adam_step_by_hand() -> None:
    """Adam's first step is the rate times the sign of the gradient, here positive: 2.5 - 0.1 (its eps changes that by 1e-7)."""
    assert pull(2.5, 2) > 0.03
    assert rounds("feddf(server_lr=0.1, server_epochs=1)") == pytest.approx([2.4], abs=1e-7)


def test_feddf_ignores_the_labels() -> None:
    """FedDF's student is the same under other labels. Server-FT trains on the labels, so its weights differ."""
    assert rounds(f"feddf({SGD})", y=(0, 1)) == rounds(f"feddf({SGD})", y=(1, 0))
    assert rounds(f"server_ft({SGD})", y=(0, 1)) != rounds(f"server_ft({SGD})", y=(1, 0))


def test_fedbe_one_round_by_hand() -> None:
    """Teachers are the aggregated 2.5, the clients' 1 and 3, and one drawn model. Both clients moved up, so every unit update
    is 1 and, without noise, the drawn model is 0.5 + (0.5 + 2.5) / 2 = 2. The mean logit is 6.5/3 x without it, and 8.5/4 x
    with it."""
    for samples, teacher in ((0, 6.5 / 3), (1, 8.5 / 4), (2, 10.5 / 5)):
        found = rounds(f"fedbe({SGD}, server_epochs=1, samples={samples}, noise=0)")
        assert found == pytest.approx([2.5 - 0.1 * pull(2.5, teacher)], abs=1e-14)


def test_fedbe_with_noise_by_hand() -> None:
    """The deviation of equal unit updates is sqrt(1e-5). The drawn model is 0.5 + 1.5 (1 + 0.1 sqrt(1e-5) eps), with eps from
    the stream of (seed, round, fedbe-samples)."""
    eps = rng.stream(8, "server/fedbe-samples", 0).standard_normal()
    drawn = 0.5 + 1.5 * (1 + 0.1 * math.sqrt(1e-5) * eps)
    found = rounds(f"fedbe({SGD}, server_epochs=1)")
    assert found == pytest.approx([2.5 - 0.1 * pull(2.5, (6.5 + drawn) / 4)], abs=1e-14)
    assert abs(found[0] - (2.5 - 0.1 * pull(2.5, 8.5 / 4))) > 1e-9


def test_draw_by_hand() -> None:
    """Each tensor is drawn alone. A client that did not move a tensor counts as a zero direction.

    a: updates (3, 4) and (-4, 3), both of norm 5: unit (0.6, 0.8), (-0.8, 0.6); mean (-0.1, 0.7); mean square (0.5, 0.5);
       variance (0.49, 0.01), deviation (0.7, 0.1); nu = 5.
    b: updates 2 and 0: unit 1 and 0; mean 0.5; variance 0.5 - 0.25, deviation 0.5; nu = 1.
    c: updates (1, 0) twice: mean (1, 0), variance 0, at least 1e-5; nu = 1.
    """
    layout = Layout.of({"a": (2,), "b": (), "c": (1, 2)})
    made = dataclasses.replace(
        cohort(),
        updates=Tree(layout, torch.tensor([[3.0, 4, 2, 1, 0], [-4, 3, 0, 1, 0]], dtype=torch.float64)),
        anchor=Tree(layout, torch.tensor([10.0, 20, 30, 40, 50], dtype=torch.float64)),
    )
    eps = np.random.default_rng(5).standard_normal(5)
    mean = np.array([5 * -0.1, 5 * 0.7, 0.5, 1, 0])
    deviation = np.array([5 * 0.7, 5 * 0.1, 0.5, 1e-5**0.5, 1e-5**0.5])
    for noise in (0.0, 0.1, 1.0):
        found = draw(made, np.random.default_rng(5), noise).flat.numpy()
        np.testing.assert_allclose(found, [10, 20, 30, 40, 50] + mean + noise * deviation * eps, rtol=0, atol=1e-13)


def test_drawing_from_clients_that_did_not_move_gives_the_global_model() -> None:
    """Norms of zero give no NaN."""
    still = dataclasses.replace(cohort(), updates=Tree(toy.ONE_WEIGHT.layout, torch.zeros(2, 1, dtype=torch.float64)))
    assert draw(still, np.random.default_rng(5), 0.1).flat.item() == 0.5


@pytest.mark.parametrize(
    ("ensemble", "temperature", "expected"),
    [
        ("logits", 1.0, 3**0.5 / (3**0.5 + 1)),
        ("logits", 0.5, 3 / 4),
        ("probabilities", 1.0, 5 / 8),
        ("probabilities", 0.5, 25 / 34),
    ],
)
def test_the_ensembles_teacher_by_hand(ensemble: str, temperature: float, expected: float) -> None:
    """Two teachers, logits (ln 3, 0) and (0, 0): probabilities (3/4, 1/4) and (1/2, 1/2).

    Mean logits (ln 3 / 2, 0): odds sqrt(3) : 1, squared 3 : 1. Mean probabilities (5/8, 3/8); squared 25 : 9.
    """
    logits_TPC = torch.tensor([[[math.log(3), 0.0]], [[0.0, 0.0]]], dtype=torch.float64)
    found = FedBe(ensemble=ensemble, temperature=temperature).teacher(logits_TPC)
    torch.testing.assert_close(found, torch.tensor([[expected, 1 - expected]], dtype=torch.float64), rtol=0, atol=1e-15)


def test_a_probability_that_underflows_stays_zero() -> None:
    """Both teachers have logits 2000 apart. log 0 occurs, and the probabilities are still (1, 0) and not NaN."""
    logits_TPC = torch.tensor([[[1000.0, -1000.0]], [[1000.0, -1000.0]]])
    assert FedBe(ensemble="probabilities", temperature=0.5).teacher(logits_TPC).tolist() == [[1.0, 0.0]]


def test_server_ft_sgd_over_two_rounds_by_hand() -> None:
    """x = 1, label 0: the loss ln(1 + e^-w) has the gradient -s(-w). Weight decay is 0.1, with one step per round, both rounds
    from 2.5.

    v = -s(-2.5) + 0.25; the second round's v is the same again, or, with kept momentum, half of the first one more.
    """
    v = -s(-2.5) + 0.25
    for keep, second in (("false", v), ("true", 1.5 * v)):
        text = f"server_ft({SGD}, weight_decay=0.1, server_epochs=1, keep_momentum={keep})"
        found = rounds(text, 2, x=(1.0,), y=(0,))
        assert found == pytest.approx([2.5 - 0.1 * v, 2.5 - 0.1 * second], abs=1e-14)


def test_adam_starts_afresh_in_each_round() -> None:
    """Two rounds from the same weights take the same steps. Adam's moments restart in each round, with or without
    keep_momentum."""
    for keep in ("false", "true"):
        first, second = rounds(f"server_ft(server_epochs=3, keep_momentum={keep})", 2)
        assert first == second != 2.5


def test_server_ft_fine_tunes_for_two_epochs() -> None:
    """Server-FT takes two epochs as in FedLAW's paper. The two methods that distil take a hundred."""
    assert (
        rounds(f"server_ft({SGD})")
        == rounds(f"server_ft({SGD}, server_epochs=2)")
        != rounds(f"server_ft({SGD}, server_epochs=3)")
    )
    assert [compose(name).refines[0].server_epochs for name in ("feddf", "fedbe")] == [100, 100]  # type: ignore[attr-defined]


def test_clients_teach_in_evaluation_mode_with_their_own_statistics() -> None:
    """On a model with BatchNorm, client k's logits are those of its weights and statistics, for any batch."""
    task = toy.make_task(model=toy.norm_model())
    method = compose("fedavg")
    made, _ = SequentialEngine(task, method).run_cohort(method.init(task.params, task.buffers), 0)
    assert made is not None
    assert task.proxy is not None
    ctx = toy.server_context(task, made)
    together = client_logits(ctx)
    assert together.shape == (4, 12, 3)
    for k in range(4):
        weights, statistics = made.models.like(made.models.flat[k]), made.buffers.like(made.buffers.flat[k])
        for i in (0, 7):
            alone = task.model.forward(weights, statistics, task.proxy.x[i : i + 1], False)[0]
            torch.testing.assert_close(together[k, i : i + 1], alone, rtol=0, atol=1e-12)
    assert torch.equal(ctx.network.buffers.flat, task.buffers.flat)
