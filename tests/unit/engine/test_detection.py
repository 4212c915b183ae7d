"""Federated training of the detector on drawn faces, with the same loop, engines and client rules as for classifiers."""

import dataclasses
from functools import cache

import numpy as np
import pytest
import torch

from fedrepro.data import synthetic_faces
from fedrepro.data.boxes import packed
from fedrepro.engine import results
from fedrepro.engine.evaluate import evaluate
from fedrepro.engine.loop import train
from fedrepro.engine.task import Task, as_batch
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.models import build, initial
from fedrepro.types import Batch
from tests import toy

CLIENTS, EACH = 3, 16


@cache
def faces(first: int, count: int) -> Batch:
    """Drawn images and their boxes, in float32."""
    drawn = [synthetic_faces.draw(first + number) for number in range(count)]
    boxes = packed([rows for _, rows in drawn], synthetic_faces.MOST_FACES)
    return as_batch(np.stack([pixels for pixels, _ in drawn]), boxes, [0.5], [0.5], "cpu", torch.float32)


def make_task(**changes) -> Task:
    """Three clients with 16 images each, and 24 test images."""
    settings = {"clients": CLIENTS, "rounds": 1, "local_epochs": 1, "batch_size": 8, "client_lr": 0.05, "client_momentum": 0.0}
    shape = {"model": "grid_detector", "input_shape": (3, 64, 64), "classes": 1, "client_lr_decay": 1.0, "weight_decay": 0.0}
    spec = toy.make_spec(**{**settings, **shape, **changes})
    model = build("grid_detector", (3, 64, 64), 1)
    return dataclasses.replace(
        toy.make_task(),
        spec=spec,
        model=model,
        train=faces(0, CLIENTS * EACH),
        client_index=[torch.arange(k * EACH, (k + 1) * EACH) for k in range(CLIENTS)],
        client_sizes=torch.full((CLIENTS,), float(EACH)),
        cohorts=torch.arange(CLIENTS).repeat(spec.rounds, 1),
        evaluation=faces(400, 24),
        proxy=None,
        params=initial.draw(model, 8),
        buffers=model.first_buffers(),
    )


def test_one_round_lowers_the_loss_and_records_the_metric() -> None:
    """The first round of FedAvg ends below the initial model's loss. It records mAP50 and no accuracy."""
    task = make_task()
    before = evaluate(task.model, task.params, task.buffers, task.evaluation)["test_loss"]
    rows = train(task, compose("fedavg")).progress.rows
    assert toy.values_of(rows, "test_loss")[0] < 0.8 * before
    assert {name for _, name, _ in rows} == {"client_lr", "test_loss", "test_map50", "update_norm"}
    assert all(0 <= value <= 1 for value in toy.values_of(rows, "test_map50"))


def test_forms_agree() -> None:
    """The readable and the tuned form agree in float32, although no client rule has code for boxes."""
    found = [train(make_task(), compose("feddyn"), engine=name).params.flat for name in ("plain", "sequential")]
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)


def test_evidence_names_the_metric() -> None:
    """Last and best mAP50 replace last and best accuracy."""
    task = make_task(rounds=2)
    run = {"run_id": "faces", "method": "fedavg", "method_label": "fedavg", "config": task.spec.as_dict()}
    found = results.evidence(task.spec, run, 8, train(task, compose("fedavg")), {}, {}, {})
    curve = found["curves"]["test_map50"]
    assert found["summary"].keys() == {"last_test_map50", "best_test_map50", "test_loss"}
    assert found["summary"]["last_test_map50"] == curve[-1]
    assert found["summary"]["best_test_map50"] == max(curve)


def test_divergence_is_recorded() -> None:
    """A model with weights that are not finite has no detections: mAP50 is 0, without an error."""
    outcome = train(make_task(rounds=4, client_lr=1e30), compose("fedavg"))
    assert outcome.status == "diverged"
    assert toy.values_of(outcome.progress.rows, "test_map50")[-1] == 0


def test_what_learns_on_a_proxy_set_is_refused() -> None:
    """The error is one line, also with a proxy set of faces."""
    task = dataclasses.replace(make_task(), proxy=faces(400, 4))
    with pytest.raises(
        UserError, match=r"learns on a proxy set of class labels, but grid_detector detects boxes; leave it out"
    ):
        train(task, compose("fedlaw"))
