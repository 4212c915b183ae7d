"""The global model is evaluated on the proxy set, which neither clients nor test metrics see."""

import pytest
import torch

from fedrepro.engine import evaluate
from fedrepro.engine.evaluate import predict
from fedrepro.engine.loop import Outcome, train
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from tests import toy

FEDAVG, FEDLAW = compose("fedavg"), compose(toy.part_text("fedlaw"))
NAMES = ["proxy_accuracy", "proxy_loss", "proxy_top3_accuracy"]


def proxy_rows(outcome: Outcome) -> list[tuple[int, str, float]]:
    return [row for row in outcome.progress.rows if row[1].startswith("proxy_")]


def test_the_last_round_by_the_final_model() -> None:
    """The values are accuracy and mean cross-entropy of the final model on the proxy images, which are not the test images."""
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
    """The model and every other number have the same bits, in the same rounds. A method that learns on the proxy set records it
    too."""
    without, found = (train(toy.make_task(evaluate_proxy=on, evaluate_every=every), method) for on in (False, True))
    assert found.params.flat.equal(without.params.flat)
    assert [row for row in found.progress.rows if row not in proxy_rows(found)] == without.progress.rows
    assert not proxy_rows(without)
    evaluated = [t for t, name, _ in found.progress.rows if name == "test_loss"]
    assert [(t, name) for t, name, _ in proxy_rows(found)] == [(t, name) for t in evaluated for name in NAMES]


def test_workers_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes share twelve proxy images in three pieces, after the test set's eight."""
    monkeypatch.setattr(evaluate, "BATCH", 4)
    task = toy.make_task(evaluate_proxy=True)
    alone = train(task, FEDAVG)
    for workers in (2, 3):
        assert train(task, FEDAVG, workers=workers).progress.rows == alone.progress.rows


def test_without_a_proxy_set_it_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^evaluate_proxy = True: needs a proxy set; set proxy_per_class to at least 1$"):
        toy.make_spec(evaluate_proxy=True, proxy_per_class=0)
