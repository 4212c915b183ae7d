"""What the server's parts store with the models of a round: attention between clients by hand, on every engine.

test_kept.py tests that kills leave no trace in it.
"""

from pathlib import Path

import pytest
import torch

from fedrepro.engine.kept import RoundModels
from fedrepro.engine.loop import train, train_together
from fedrepro.methods.compose import compose
from tests import toy
from tests.unit.engine.test_kept import ROUNDS, keeper, load

SELF = compose("igfl_c+attention(kind=self)")


def by_hand(models: dict[int, RoundModels], name: str, clients: int = toy.CLIENTS) -> torch.Tensor:
    """The mean over the rounds with both clients in the cohort, computed pair by pair from the models."""
    found = torch.full((clients, clients), torch.nan, dtype=torch.float64)
    for i in range(clients):
        for j in range(clients):
            values = []
            for one in models.values():
                updates = dict(zip(one.clients, one.updates.flat, strict=True))
                if i in updates and j in updates:
                    scores = {k: float(updates[i] @ update) for k, update in updates.items()}
                    total = sum(torch.exp(torch.tensor(score, dtype=torch.float64)) for score in scores.values())
                    weight = float(torch.exp(torch.tensor(scores[j], dtype=torch.float64)) / total)
                    values.append(scores[j] if name == "scores" else weight)
            if values:
                found[i, j] = sum(values) / len(values)
    return found


@pytest.mark.parametrize("cohorts", [toy.EVERYBODY, toy.PARTIAL])
@pytest.mark.parametrize("engine", ["sequential", "plain", "vectorised"])
def test_attention_is_the_mean_over_the_rounds_so_far(engine: str, cohorts: tuple, tmp_path: Path) -> None:
    """Over four rounds, also with sampled clients. The value is nan for two clients that were never in one cohort."""
    task = toy.make_task(rounds=ROUNDS, cohorts=cohorts)
    models = load(tmp_path, train(task, SELF, engine=engine, keeper=keeper(tmp_path, 1, 2, 3, 4)))
    for rounds in (1, 4):
        so_far = {number: one for number, one in models.items() if number <= rounds}
        assert {*models[rounds].server} == {"attention_weights", "attention_scores"}
        for name in ("weights", "scores"):
            expected = by_hand(so_far, name)
            found = models[rounds].server[f"attention_{name}"]
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-12, equal_nan=True)
    assert (by_hand(models, "weights") - by_hand({1: models[1]}, "weights")).abs().nan_to_num().max() > 1e-6


def test_following_pairs_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are more clients than are followed, training is the same and nothing is stored."""
    task = toy.make_task(rounds=ROUNDS)
    followed = train(task, SELF, keeper=keeper(tmp_path / "a", 4))
    monkeypatch.setattr("fedrepro.methods.pairs.MAX_CLIENTS", toy.CLIENTS - 1)
    without = train(task, SELF, keeper=keeper(tmp_path / "b", 4))
    assert without.progress.rows == followed.progress.rows
    assert torch.equal(without.params.flat, followed.params.flat)
    assert load(tmp_path / "a", followed)[4].server
    assert not load(tmp_path / "b", without)[4].server


def test_seeds_at_once_keep_their_own(tmp_path: Path) -> None:
    """Two seeds that train together store what each stores alone."""
    tasks, outcomes = [toy.make_task(seed=seed, rounds=2) for seed in (8, 9)], {}
    for position, outcome in train_together(tasks, SELF, keepers=[keeper(tmp_path, 2, seed=seed) for seed in (8, 9)]):
        outcomes[position] = outcome
    matrices = []
    for position, seed in enumerate((8, 9)):
        alone = train(tasks[position], SELF, keeper=keeper(tmp_path / "alone", 2, seed=seed))
        together = load(tmp_path, outcomes[position], seed)[2].server["attention_weights"]
        expected = load(tmp_path / "alone", alone, seed)[2].server["attention_weights"]
        torch.testing.assert_close(together, expected, rtol=0, atol=1e-12, equal_nan=True)
        matrices.append(together)
    assert not torch.allclose(*matrices, equal_nan=True)


def test_fedlaw_leaves_its_weights(tmp_path: Path) -> None:
    """The model after the round is gamma times the mean weighted by lambda."""
    method = compose(toy.part_text("fedlaw"))
    one = load(tmp_path, train(toy.make_task(rounds=1), method, keeper=keeper(tmp_path, 1)))[1]
    gamma, weights_K = one.server["gamma"], one.server["lambda"]
    assert (gamma.shape, weights_K.shape) == ((), (len(one.clients),))
    torch.testing.assert_close(gamma * (weights_K @ one.params.flat), one.after.params.flat, rtol=0, atol=1e-12)


def test_a_round_without_clients_leaves_nothing_of_the_round_before(tmp_path: Path) -> None:
    """Client 2 has no training data."""
    task = toy.make_task(rounds=2, cohorts=((0,), (2,)))
    models = load(tmp_path, train(task, SELF, keeper=keeper(tmp_path, 1, 2)))
    assert (bool(models[1].server), models[2].server) == (True, {})
