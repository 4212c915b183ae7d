"""The global model is evaluated on the clients' training samples."""

import pytest
import torch

from fedrepro.engine.evaluate import predict
from fedrepro.engine.loop import train
from fedrepro.methods.compose import compose
from tests import toy

FEDAVG = compose("fedavg")
NAMES = ["train_accuracy", "train_loss", "train_top3_accuracy"]


def test_on_all_samples_that_are_trained_on_and_no_other() -> None:
    """The final model is evaluated without held-out samples and without augmentation. Nothing else of the run changes."""
    task = toy.make_task(evaluate_train=True, evaluate_every=2, augment="crop(padding=1)+flip")
    found = train(task, FEDAVG)
    rows = [row for row in found.progress.rows if row[1].startswith("train_")]
    assert [(t, name) for t, name, _ in rows] == [(t, name) for t in (1, 2) for name in NAMES]
    index = torch.cat(task.client_index)
    assert len(index) < len(task.train)
    data = task.train.take(index)
    logits = predict(task.model, found.params, found.buffers, data.x)
    last = {name: value for t, name, value in rows if t == 2}
    assert last["train_accuracy"] == pytest.approx(100 * (logits.argmax(1) == data.y).double().mean().item())
    assert last["train_loss"] == pytest.approx(torch.nn.functional.cross_entropy(logits, data.y).item())
    without = train(toy.make_task(evaluate_every=2, augment="crop(padding=1)+flip"), FEDAVG)
    assert [row for row in found.progress.rows if row not in rows] == without.progress.rows
