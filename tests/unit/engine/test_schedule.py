"""Learning rates by hand, their names, and how often a run is evaluated."""

import math
import re
from pathlib import Path

import pytest
import torch

from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.cohort import Clients
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.loop import Checkpoints, train, train_together
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.vectorised import VectorisedEngine, run_together
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash
from fedrepro.methods.compose import compose
from tests import toy
from tests.helpers.one_line import one_line


def rates(schedule: str, rounds: int, **changes) -> list[float]:
    """client_lr of every round, starting at 0.1 with a decay of 0.9."""
    spec = toy.make_spec(schedule=schedule, rounds=rounds, client_lr=0.1, client_lr_decay=0.9, **changes)
    return [spec.client_lr_at(round) for round in range(rounds)]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("exponential", [0.1, 0.09, 0.081, 0.0729]),
        ("exponential(factor=0.5)", [0.1, 0.05, 0.025, 0.0125]),
        ("constant", [0.1, 0.1, 0.1, 0.1]),
        ("constant(value=0.3)", [0.3, 0.3, 0.3, 0.3]),
        ("cosine", [0.1, 0.05 * (1 + math.sqrt(0.5)), 0.05, 0.05 * (1 - math.sqrt(0.5))]),
        ("cosine(half=false)", [0.2, 0.1 * (1 + math.sqrt(0.5)), 0.1, 0.1 * (1 - math.sqrt(0.5))]),
        ("cyclic(period=4, lowest=0.02)", [0.1, 0.06, 0.02, 0.06, 0.1, 0.06]),
        ("stage(every=2, factor=0.5)", [0.1, 0.1, 0.05, 0.05, 0.025]),
        # A late phase starts at the current rate: 0.1 * 0.9^2 = 0.081.
        ("exponential+exponential(start=2, factor=0.5)", [0.1, 0.09, 0.081, 0.0405]),
        ("exponential+cyclic(start=2, period=2, lowest=0.001)", [0.1, 0.09, 0.081, 0.001, 0.081]),
        ("exponential+constant(start=1, value=0.01)+stage(start=3, every=1)", [0.1, 0.01, 0.01, 0.01, 0.005]),
        # A late cosine falls over the remaining rounds: two; and four, two of which have passed when the next phase begins.
        ("exponential+cosine(start=2)", [0.1, 0.09, 0.081, 0.0405]),
        ("constant+cosine(start=1)+constant(start=3)", [0.1, 0.1, 0.05 * (1 + math.sqrt(0.5)), 0.05, 0.05]),
    ],
)
def test_by_hand(schedule: str, expected: list[float]) -> None:
    """The first rounds have these rates."""
    assert rates(schedule, len(expected)) == pytest.approx(expected, abs=1e-15)


def test_the_default_is_todays_decay_to_the_bit_and_names_no_run() -> None:
    """The rate is client_lr * client_lr_decay ** round. Spelt out or not, it is not part of a run's identity."""
    spec = toy.make_spec(client_lr=0.07, client_lr_decay=0.993, rounds=300)
    assert all(spec.client_lr_at(t) == 0.07 * 0.993**t for t in range(300))
    for spelt in ("exponential()", "exponential(start=0)", "exponential"):
        again = toy.make_spec(client_lr=0.07, client_lr_decay=0.993, rounds=300, schedule=spelt, evaluate_every=1)
        assert canonical_hash(again.as_dict()) == canonical_hash(spec.as_dict())
    assert not {"schedule", "evaluate_every"} & spec.as_dict().keys()
    other = toy.make_spec(schedule="cosine", evaluate_every=2)
    assert other.as_dict()["schedule"] == "cosine(start=0, half=true)"
    assert toy.RunSpec(**other.as_dict()) == other


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ("cosin", "unknown schedule 'cosin'; did you mean 'cosine'?"),
        ("cyclic(period=1)", "cyclic: period = 1: must be at least 2"),
        ("constant(start=3)", "the first must start at 0"),
        ("exponential+constant", "each other after the one before"),
        ("stage(factor=0.0)", "stage: factor = 0.0: must be greater than 0"),
    ],
)
def test_mistakes_are_one_line(schedule: str, says: str) -> None:
    """The line says what is wrong and what is allowed."""
    with one_line() as caught:
        toy.make_spec(schedule=schedule)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ("constant", [5] * 6),
        ("stage(every=2)", [5, 5, 2, 2, 1, 1, 1]),  # 5, 2.5, 1.25, 0.6: rounded down, at least 1
        ("fewer(every=1, by=2)", [5, 3, 1, 1]),
        ("constant+fewer(start=2, every=2)", [5, 5, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 1]),
        ("constant(value=3.0)+fewer(start=2, every=1)", [3, 3, 3, 2, 1, 1]),
    ],
)
def test_epochs_by_hand(epochs: str, expected: list[int]) -> None:
    """The epochs start at five. The default is not part of a run's identity."""
    spec = toy.make_spec(epochs=epochs, local_epochs=5, rounds=len(expected))
    assert [spec.local_epochs_at(round) for round in range(len(expected))] == expected
    assert ("epochs" in spec.as_dict()) == (epochs != "constant")
    assert toy.RunSpec(**spec.as_dict()) == spec


def test_a_clients_rule_is_told_the_epochs_of_its_round() -> None:
    """There are two epochs, and from round 1 one less with each round, so one in round 2."""
    task, method = toy.make_task(epochs="constant+fewer(start=1, every=1)"), compose("fedavg")
    clients, state = Clients(task, method), toy.first_state(task, method)
    network = TrainingNetwork(task.model, task.buffers)
    assert [clients.context(0, state, round, network, 1, 1).local_epochs for round in range(3)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"epochs": "cosine"}, "epochs = 'cosine': cosine is not for this setting; use constant, fewer, stage"),
        ({"epochs": "fever"}, "epochs = 'fever': unknown schedule 'fever'; did you mean 'fewer'?"),
        ({"epochs": "fewer(by=0)"}, "fewer: by = 0: must be at least 1"),
        (
            {"schedule": "fewer"},
            "schedule = 'fewer': fewer is not for this setting; use constant, cosine, cyclic, exponential, stage",
        ),
    ],
)
def test_what_is_for_epochs_and_what_for_rates(changes: dict, says: str) -> None:
    with pytest.raises(UserError, match=re.escape(says)):
        toy.make_spec(**changes)


@pytest.mark.parametrize(("text", "model"), [("fedavg", "norm"), ("fedprox(mu=0.5)+fednova", "tiny")])
def test_engines_agree_on_epochs(text: str, model: str, tmp_path: Path) -> None:
    """3, 2, 1, 1 epochs with crops agree in float64 to 1e-12 (1e-8 with BatchNorm), also if seeds continue from a checkpoint.
    Workers change no bit."""
    more = {"epochs": "fewer(every=1)", "local_epochs": 3, "rounds": 4, "augment": "flip"}
    several, atol = (
        [toy.make_task(seed=s, model=toy.MODELS[model](), **more) for s in (8, 9)],
        1e-12 if model == "tiny" else 1e-8,
    )
    whole = dict(train_together(several, compose(text)))
    checkpoints = [Checkpoints(tmp_path / f"seed{task.seed}.pt", "key", every_s=0) for task in several]

    def kill(round: int, progress: Progress) -> None:
        if round == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dict(train_together(several, compose(text), checkpoints=checkpoints, reports=[None, kill]))
    resumed = dict(train_together(several, compose(text), checkpoints=checkpoints))
    for i, task in enumerate(several):
        alone = train(task, compose(text))
        assert alone.progress.samples == 7 * sum(task.train_sizes)
        for found in (whole[i], resumed[i], train(task, compose(text), engine="plain")):
            assert found.progress.samples == alone.progress.samples
            torch.testing.assert_close(found.params.flat, alone.params.flat, rtol=0, atol=atol)
        assert torch.equal(train(task, compose(text), workers=2).params.flat, alone.params.flat)


def test_seeds_of_different_rounds_side_by_side() -> None:
    """In one call, three epochs of one seed and one of another give the same as each alone."""
    several = [toy.make_task(seed=s, epochs="fewer(every=1)", local_epochs=3, rounds=4, augment="flip") for s in (8, 9)]
    method, rounds = compose("fedavg"), [0, 2]
    states = [method.init(task.params, task.buffers) for task in several]
    found = run_together([VectorisedEngine(task, method) for task in several], states, rounds)
    for task, state, round, (cohort, samples) in zip(several, states, rounds, found, strict=True):
        alone, seen = SequentialEngine(task, method).run_cohort(state, round)
        assert cohort is not None
        assert alone is not None
        assert samples == seen == (3, 2, 1, 1)[round] * sum(task.train_sizes)
        torch.testing.assert_close(cohort.updates.flat, alone.updates.flat, rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
def test_a_run_trains_at_these_rates(engine: str) -> None:
    """With `Linear` on client 0, without momentum and decay, each of a round's two steps goes down by 2 * client_lr."""
    task = toy.linear_task(
        4, ((0,),), schedule="cyclic(period=2, lowest=0.01)", client_momentum=0.0, weight_decay=0.0, client_lr_decay=1.0
    )
    outcome = train(task, toy.linear("fedavg"), engine=engine)
    assert toy.values_of(outcome.progress.rows, "client_lr") == pytest.approx([0.1, 0.01, 0.1, 0.01])
    assert outcome.params.flat.item() == pytest.approx(1 - 4 * (0.1 + 0.01 + 0.1 + 0.01), abs=1e-14)


def test_evaluated_every_few_rounds_and_at_the_end() -> None:
    """In rounds 1, 3 and 4 of 0 to 4 the numbers are the same, and so are the weights and the notes of every round."""
    every, some = (train(toy.make_task(rounds=5, evaluate_every=n), compose("fedavg")) for n in (1, 2))
    assert some.params.flat.equal(every.params.flat)
    for name in ("test_accuracy", "test_loss"):
        expected = [(t, value) for t, key, value in every.progress.rows if key == name and t in (1, 3, 4)]
        assert [(t, value) for t, key, value in some.progress.rows if key == name] == expected
    assert len(toy.values_of(some.progress.rows, "update_norm")) == 5


def test_divergence_is_noticed_between_evaluations() -> None:
    """Weights that overflow in round 0 end the run there, with an evaluation for the record."""
    task = toy.make_task(rounds=9, evaluate_every=5, client_lr=1e300)
    outcome = train(task, compose("fedavg"))
    assert outcome.status == "diverged"
    assert outcome.progress.round == 1
    assert toy.values_of(outcome.progress.rows, "test_loss")
