"""Kept models of chosen rounds: what they contain. Keeping changes nothing, and interruptions leave no trace."""

from pathlib import Path

import pytest
import torch

from fedrepro.engine import kept
from fedrepro.engine.kept import Keeper
from fedrepro.engine.loop import Checkpoints, Outcome, train, train_together
from fedrepro.engine.records import curves
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from tests import toy

FEDAVG = compose("fedavg")
ROUNDS = 4
ENGINES = ["sequential", "plain", "vectorised"]


def keeper(root: Path, *rounds: int, seed: int = 8, until: int | None = None) -> Keeper:
    return Keeper(root, "toy", seed, frozenset(rounds), until)


def receipt(outcome: Outcome, seed: int = 8) -> dict:
    """A receipt with only the fields that these tests read."""
    return {"run_id": "toy", "seed": seed, "curves": curves(outcome.progress.rows, outcome.progress.round)}


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def load(root: Path, outcome: Outcome, seed: int = 8) -> dict[int, kept.RoundModels]:
    """Loads every listed round."""
    kept.write_index(root, receipt(outcome, seed))
    index = kept.load_index(root, "toy", seed)["rounds"]
    return {int(number): kept.load_round(root, "toy", seed, int(number), sha256) for number, sha256 in index.items()}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["feddyn", toy.part_text("fedlaw")])
def test_keeping_changes_no_bit(text: str, engine: str, tmp_path: Path) -> None:
    """With all rounds kept, records, weights and statistics are the same as without. Each round starts where the one before
    ended."""
    task, method = toy.make_task(model=toy.norm_model(), rounds=ROUNDS), compose(text)
    without = train(task, method, engine=engine)
    outcome = train(task, method, engine=engine, keeper=keeper(tmp_path, 1, 2, 3, 4))
    assert outcome.progress.rows == without.progress.rows
    assert torch.equal(outcome.params.flat, without.params.flat)
    assert torch.equal(outcome.buffers.flat, without.buffers.flat)
    found = load(tmp_path, outcome)
    assert [*found] == [1, 2, 3, 4]
    assert torch.equal(found[1].before.params.flat, task.params.flat)
    assert torch.equal(found[4].after.params.flat, outcome.params.flat)
    assert torch.equal(found[4].after.buffers.flat, outcome.buffers.flat)
    for number in (1, 2, 3):
        assert torch.equal(found[number].after.params.flat, found[number + 1].before.params.flat)
        assert not torch.equal(found[number].after.params.flat, found[number].before.params.flat)


def test_the_clients_models_are_kept_with_ids_and_weights(tmp_path: Path) -> None:
    """Their weighted mean is FedAvg's model. Client 2 has no data. The layouts are those of the model."""
    task = toy.make_task(rounds=2)
    models = load(tmp_path, train(task, FEDAVG, keeper=keeper(tmp_path, 2)))[2]
    assert models.clients == [0, 1, 3, 4]
    assert models.weights.tolist() == pytest.approx([10 / 62, 17 / 62, 28 / 62, 7 / 62])
    mean = models.weights @ models.params.flat
    assert torch.allclose(mean, models.after.params.flat, rtol=0, atol=1e-14)
    assert models.params.layout == models.before.params.layout == task.model.layout
    assert models.params["fc1.weight"].shape == (4, 6, 16)
    assert torch.equal(models.updates.flat, models.params.flat - models.before.params.flat)


def test_a_round_without_clients_is_kept_too(tmp_path: Path) -> None:
    """If no client has data, the global model stays, and there are no clients' models."""
    task = toy.make_task(rounds=1, cohorts=toy.EMPTY)
    models = load(tmp_path, train(task, FEDAVG, keeper=keeper(tmp_path, 1)))[1]
    assert (models.clients, models.params.flat.shape) == ([], (0, 123))
    assert torch.equal(models.before.params.flat, models.after.params.flat)


def test_workers_keep_the_same_bytes(tmp_path: Path) -> None:
    """No, two and three worker processes keep the same files."""
    task = toy.make_task(rounds=ROUNDS, cohorts=toy.PARTIAL, keep_client_momentum=True)
    for name, workers in (("one", 1), ("two", 2), ("three", 3)):
        train(task, FEDAVG, workers=workers, keeper=keeper(tmp_path / name, 1, 3))
    assert files(tmp_path / "one") == files(tmp_path / "two") == files(tmp_path / "three")
    assert len(files(tmp_path / "one")) == 2


def test_seeds_at_once_keep_what_each_keeps_alone(tmp_path: Path) -> None:
    """The vectorised engine agrees in float64 to round-off with each seed alone, and engines agree with each other."""
    tasks, outcomes = [toy.make_task(seed=seed, rounds=2) for seed in (8, 9)], {}
    both = [keeper(tmp_path / "both", 1, 2, seed=seed) for seed in (8, 9)]
    for position, outcome in train_together(tasks, FEDAVG, keepers=both):
        outcomes[position] = outcome
    for position, seed in enumerate((8, 9)):
        alone = train(tasks[position], FEDAVG, keeper=keeper(tmp_path / "alone", 1, 2, seed=seed))
        here, there = load(tmp_path / "both", outcomes[position], seed), load(tmp_path / "alone", alone, seed)
        for number in (1, 2):
            assert torch.allclose(here[number].params.flat, there[number].params.flat, rtol=0, atol=1e-12)
            assert torch.allclose(here[number].after.params.flat, there[number].after.params.flat, rtol=0, atol=1e-12)


@pytest.mark.parametrize("text", ["fedavg", "igfl_c+attention(kind=self)"])
@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
@pytest.mark.parametrize("every_s", [0.0, 1e9])
def test_kill_and_resume_keep_the_same_bytes(text: str, engine: str, every_s: float, tmp_path: Path) -> None:
    """The run is killed in round 3, with checkpoints after every round and without any. The files are those of an undisturbed
    run, also if the server's parts store means over the rounds in them."""
    task, method = toy.make_task(rounds=ROUNDS, cohorts=toy.PARTIAL), compose(text)
    outcome = train(task, method, engine=engine, keeper=keeper(tmp_path / "whole", 1, 3, 4))
    checkpoints = Checkpoints(tmp_path / "seed8.pt", "k", every_s)

    how = {"engine": engine, "checkpoints": checkpoints}
    with pytest.raises(toy.Stopped):
        train(task, method, **how, report=toy.stop_at(2), keeper=keeper(tmp_path / "killed", 1, 3, 4))
    assert len(files(tmp_path / "killed")) == 1
    again = train(task, method, **how, keeper=keeper(tmp_path / "killed", 1, 3, 4))
    assert again.progress.rows == outcome.progress.rows
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_a_training_for_models_alone_stops_early_and_gives_the_same_ones(tmp_path: Path) -> None:
    """The schedule depends on the number of rounds and remains that of the whole run."""
    task = toy.make_task(rounds=ROUNDS, schedule="cosine", evaluate_every=3)
    whole = train(task, FEDAVG, keeper=keeper(tmp_path / "whole", 2))
    early = train(task, FEDAVG, keeper=keeper(tmp_path / "early", 2, until=2))
    assert (whole.progress.round, early.progress.round) == (4, 2)
    assert early.progress.rows == [row for row in whole.progress.rows if row[0] < 2]
    assert files(tmp_path / "whole") == files(tmp_path / "early")


def test_what_is_missing(tmp_path: Path) -> None:
    """Missing rounds are those without a file, with a damaged one, or with one of another training. Rounds that a diverged seed
    does not have are never missing."""
    outcome = train(toy.make_task(rounds=ROUNDS), FEDAVG, keeper=keeper(tmp_path, 1, 2, 3))
    mine = receipt(outcome)
    assert kept.missing(tmp_path, mine, [1, 2, 3, 4]) == [4]
    assert kept.missing(tmp_path, mine, [3, 99]) == []
    path = kept.round_path(tmp_path, "toy", 8, 2)
    path.write_bytes(path.read_bytes()[:40])
    assert kept.missing(tmp_path, mine, [1, 2, 3]) == [2]
    train(toy.make_task(rounds=ROUNDS, client_lr=0.11), FEDAVG, keeper=keeper(tmp_path, 3))
    assert kept.missing(tmp_path, mine, [1, 2, 3]) == [2, 3]
    more = mine | {"curves": {key: one for key, one in mine["curves"].items() if key != "test_top3_accuracy"}}
    assert kept.missing(tmp_path, more, [1]) == []  # a receipt of an older version that recorded less
    first = kept.round_path(tmp_path, "toy", 8, 1)
    first.with_stem("round1 copy").write_bytes(first.read_bytes())
    kept.write_index(tmp_path, mine)
    assert [*kept.load_index(tmp_path, "toy", 8)["rounds"]] == ["1"]


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    """If one bit of a weight changes, the sha256 differs from the list."""
    outcome = train(toy.make_task(rounds=1), FEDAVG, keeper=keeper(tmp_path, 1))
    kept.write_index(tmp_path, receipt(outcome))
    path = kept.round_path(tmp_path, "toy", 8, 1)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    sha256 = kept.load_index(tmp_path, "toy", 8)["rounds"]["1"]
    with pytest.raises(UserError, match="another sha256"):
        kept.load_round(tmp_path, "toy", 8, 1, sha256)


def test_the_first_number_that_differs() -> None:
    """The values of one round are compared. A metric in only one of them is no difference, nor is a number that is not finite
    in both."""
    known = {"curves": {"round": [0, 1], "loss": [0.5, None], "old": [1.0, 1.0]}}
    rows = [(0, "loss", 0.5), (0, "new", 3.0), (1, "loss", float("inf"))]
    assert kept.first_difference(known, rows[:2], 0) == ""
    assert kept.first_difference(known, rows, 1) == ""
    assert kept.first_difference(known, [(0, "loss", 0.25)], 0) == "loss of round 1 is 0.25, was 0.5"
    assert "missing" in kept.first_difference(known, [(2, "loss", 0.25)], 2)


def test_diverging_rounds_are_kept_as_they_are(tmp_path: Path) -> None:
    """Weights that are not numbers are kept as the models of that round. Later rounds do not exist."""
    outcome = train(toy.make_task(rounds=9, client_lr=1e300), FEDAVG, keeper=keeper(tmp_path, *range(1, 10)))
    assert outcome.status == "diverged"
    found = load(tmp_path, outcome)
    assert [*found] == [*range(1, outcome.progress.round + 1)]
    assert kept.missing(tmp_path, receipt(outcome), range(1, 10)) == []
