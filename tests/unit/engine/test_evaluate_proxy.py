"""The global model evaluated on the proxy set: held out from clients and from the test metrics alike."""

import dataclasses
from pathlib import Path

import pytest
import torch

from fedrepro.engine import evaluate
from fedrepro.engine.evaluate import predict
from fedrepro.engine.loop import Checkpoints, Outcome, train, train_together
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from tests import toy

FEDAVG, FEDLAW = compose("fedavg"), compose(toy.part_text("fedlaw"))
NAMES = ["proxy_accuracy", "proxy_loss", "proxy_top3_accuracy"]


def proxy_rows(outcome: Outcome) -> list[tuple[int, str, float]]:
    return [row for row in outcome.progress.rows if row[1].startswith("proxy_")]


def test_the_last_round_by_the_final_model() -> None:
    """Accuracy and mean cross-entropy of the final model on the proxy images, which are not the test images."""
    task = toy.make_task(evaluate_proxy=True)
    found = train(task, FEDAVG)
    assert task.proxy is not None
    logits = predict(task.model, found.params, found.buffers, task.proxy.x)
    last = {name: value for t, name, value in proxy_rows(found) if t == 2}
    assert list(last) == NAMES
    assert last["proxy_accuracy"] == pytest.approx(100 * (logits.argmax(1) == task.proxy.y).double().mean().item())
    assert last["proxy_loss"] == pytest.approx(torch.nn.functional.cross_entropy(logits, task.proxy.y).item())
    assert last["proxy_loss"] != toy.values_of(found.progress.rows, "test_loss")[-1]


@pytest.mark.parametrize("method", [FEDAVG, FEDLAW], ids=["fedavg", "fedlaw"])
@pytest.mark.parametrize("every", [1, 2])
def test_it_changes_nothing_else(method, every: int) -> None:
    """The same bits of the model and of every other number, evaluated in the same rounds; a method that learns on the proxy set
    records it as well."""
    without, found = (train(toy.make_task(evaluate_proxy=on, evaluate_every=every), method) for on in (False, True))
    assert found.params.flat.equal(without.params.flat)
    assert [row for row in found.progress.rows if row not in proxy_rows(found)] == without.progress.rows
    assert not proxy_rows(without)
    evaluated = [t for t, name, _ in found.progress.rows if name == "test_loss"]
    assert [(t, name) for t, name, _ in proxy_rows(found)] == [(t, name) for t in evaluated for name in NAMES]


def test_engines_agree() -> None:
    """Two seeds at once against each alone, to round-off."""
    tasks = [toy.make_task(seed=seed, evaluate_proxy=True) for seed in (8, 9)]
    for position, found in train_together(tasks, FEDAVG):
        alone = proxy_rows(train(tasks[position], FEDAVG))
        assert [row[:2] for row in proxy_rows(found)] == [row[:2] for row in alone]
        assert [row[2] for row in proxy_rows(found)] == pytest.approx([row[2] for row in alone], abs=1e-12)


def test_workers_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve proxy images in three pieces after the test set's eight, shared out among processes."""
    monkeypatch.setattr(evaluate, "BATCH", 4)
    task = toy.make_task(evaluate_proxy=True)
    alone = train(task, FEDAVG)
    for workers in (2, 3):
        assert train(task, FEDAVG, workers=workers).progress.rows == alone.progress.rows


def test_resumed_it_is_the_same(tmp_path: Path) -> None:
    """Killed after the second round and begun again from its checkpoint: the same rows, those before the kill too."""

    class Killed(Exception):
        pass

    def kill(round: int, _) -> None:
        if round == 1:
            raise Killed

    task = toy.make_task(rounds=4, evaluate_proxy=True)
    checkpoints = Checkpoints(tmp_path / "seed8.pt", "key", every_s=0)
    with pytest.raises(Killed):
        train(task, FEDAVG, checkpoints=checkpoints, report=kill)
    assert checkpoints.path.exists()
    assert proxy_rows(train(task, FEDAVG, checkpoints=checkpoints)) == proxy_rows(train(task, FEDAVG))


def test_augmentation_is_for_training() -> None:
    """The proxy loss of a run that augments is that of its final model on the images as they are."""
    task = toy.make_task(evaluate_proxy=True, augment="crop(padding=2)+flip")
    found = train(task, FEDAVG)
    assert task.proxy is not None
    logits = predict(task.model, found.params, found.buffers, task.proxy.x)
    expected = torch.nn.functional.cross_entropy(logits, task.proxy.y).item()
    assert toy.values_of(found.progress.rows, "proxy_loss")[-1] == pytest.approx(expected)


def test_without_a_proxy_set_it_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^evaluate_proxy = True: needs a proxy set; set proxy_per_class to at least 1$"):
        toy.make_spec(evaluate_proxy=True, proxy_per_class=0)


def test_off_it_leaves_no_trace_in_the_settings() -> None:
    """Runs from before the setting keep their names; on, it is part of what a run is."""
    assert "evaluate_proxy" not in toy.make_spec(evaluate_proxy=False).as_dict()
    on = toy.make_spec(evaluate_proxy=True)
    assert on.as_dict()["evaluate_proxy"] is True
    assert RunSpec(**on.as_dict()) == on
    assert dataclasses.replace(on, evaluate_proxy=False) == toy.make_spec()
