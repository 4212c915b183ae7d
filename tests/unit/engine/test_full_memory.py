"""A card that holds two clients, or none: chunks get smaller, with a line, and no computed round is lost."""

import dataclasses
from pathlib import Path

import pytest
import torch

from fedrepro.engine import lockstep, vectorised
from fedrepro.engine.full_memory import one_line, train_in_chunks
from fedrepro.engine.loop import Checkpoints
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from tests import toy
from tests.contract.test_engines import assert_close, tasks, together


class Card:
    """Raises torch's error when more than `most` clients train at once, from round `first` on."""

    def __init__(self, patch: pytest.MonkeyPatch, most: int, first: int = 0) -> None:
        self.asked: list[tuple[int, int]] = []  # (round, clients)
        train = vectorised._Chunk.train

        def counted(chunk):
            round, rows = chunk.seeds[chunk.rows[0].seed].round, len(chunk.rows)
            self.asked.append((round, rows))
            if round >= first and rows > most:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
            return train(chunk)

        patch.setattr(vectorised._Chunk, "train", counted)


@pytest.fixture(autouse=True)
def _no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)


def test_half_as_many_clients_until_they_fit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Three seeds of five clients, one of which has no data, give the same results, in float64 to rounding."""
    several = tasks()
    expected, card = together("fedavg", several), Card(monkeypatch, 2)
    smaller: dict[int, int] = {}
    found = {task.seed: outcome for task, outcome in train_in_chunks("toy", several, compose("fedavg"), smaller)}
    for task, whole in zip(several, expected, strict=True):
        assert_close(found[task.seed], whole, 1e-12)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("toy: the GPU's memory is full with 10 clients at once; going on with ")
    assert said[0].endswith(" 5")
    assert said[-1].endswith(("going on with 2", "going on with 1"))
    assert smaller == dict.fromkeys((8, 9, 10), int(said[-1][-1]))
    assert max(rows for _, rows in card.asked[len(said) :]) <= 2


def test_it_goes_on_from_the_last_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is full in the third round. The two rounds before it are not trained again."""
    several, card = tasks(rounds=4), Card(monkeypatch, 2, first=2)
    saved = [Checkpoints(tmp_path / f"seed{task.seed}.pt", "key", every_s=0) for task in several]
    found = list(train_in_chunks("toy", several, compose("fedavg"), {}, checkpoints=saved, reports=[None] * 3))
    assert [outcome.progress.round for _, outcome in found] == [4, 4, 4]
    rounds = [round for round, _ in card.asked]
    assert rounds == sorted(rounds)


def test_what_smaller_chunks_do_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is full while the server works. The round is not repeated, and the line does not mention clients."""
    tried = []

    def full(*_):
        tried.append(1)
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")

    monkeypatch.setattr(lockstep, "answer", full)
    with (
        pytest.raises(UserError, match="toy: the GPU's memory is full; take a card with more, or set device: cpu"),
        one_line("toy"),
    ):
        list(train_in_chunks("toy", tasks(), compose(toy.part_text("fedlaw")), {}))
    assert tried == [1]


def test_one_seed_is_done_before_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """One seed diverged in its first round. The other two continue without it, and it is not trained again."""
    first, second, third = tasks()
    huge = dataclasses.replace(second, params=second.params.like(torch.full_like(second.params.flat, 1e200)))
    Card(monkeypatch, 2, first=2)
    smaller: dict[int, int] = {}
    trained = train_in_chunks("toy", [first, huge, third], compose("fedavg"), smaller)
    assert [(task.seed, outcome.status) for task, outcome in trained] == [(9, "diverged"), (8, "finished"), (10, "finished")]
    assert {*smaller} == {8, 10}, "only they were finished in smaller chunks"


def test_one_client_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line names the remedies: a larger card, the CPU or a smaller batch_size."""
    Card(monkeypatch, 0)
    with pytest.raises(UserError, match=r"with one client at a time; take a card with more, .* or make batch_size smaller"):
        list(train_in_chunks("toy", tasks(), compose("fedavg"), {}))


def test_memory_that_is_full_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies of the model for all clients do not fit. Half as many clients follow here, too."""
    made, sizes = vectorised._Chunk.__init__, []

    def full(chunk, seeds, rows):
        sizes.append(len(rows))
        if len(rows) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        made(chunk, seeds, rows)

    monkeypatch.setattr(vectorised._Chunk, "__init__", full)
    found = list(train_in_chunks("toy", tasks(), compose("fedavg"), {}))
    assert [outcome.status for _, outcome in found] == ["finished"] * 3
    assert max(sizes) > 5
