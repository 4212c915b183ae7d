"""The settings and schemes of FedLAW's other experiments, from files to a training on the embedded digits, on every engine."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedrepro.cli.drawing import draw_seeds
from fedrepro.data.arrays import arrays_folder
from fedrepro.data.prepare import prepare
from fedrepro.data.registry import load_registry
from fedrepro.engine import corrupted
from fedrepro.engine.artifacts import artifacts, definitions
from fedrepro.engine.loop import Outcome, train, train_together
from fedrepro.engine.spec import RunSpec
from fedrepro.engine.task import Inputs, Task, load_task
from fedrepro.methods.compose import compose
from tests import toy

REGISTRY = Path(__file__).parents[3] / "data/registry.yaml"
METHOD = compose(toy.part_text("fedlaw"))
SETTINGS: dict[str, dict[str, Any]] = {
    "as ever": {},
    "hybrid": {"partition": "dirichlet_hybrid"},
    "hybrid of one size": {"partition": "dirichlet_hybrid_equal(alpha_first=100, alpha_rest=0.1, first=2)"},
    "long-tailed clients": {"partition": "long_tailed(ratio=5, within='dirichlet_per_class(alpha=1)')"},
    "corrupted": {"corrupted_clients": 0.5},
    "long-tailed proxy": {"proxy": "long_tailed(ratio=10)"},
    "long-tailed proxy, balanced batches": {"proxy": "long_tailed(ratio=10)", "proxy_sampling": "balanced"},
    "late": {"participation": 0.4, "cohorts": "late", "keep_client_momentum": True},
    "drawn": {"participation": 0.4, "keep_client_momentum": True},
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the prepared digits."""
    root = tmp_path_factory.mktemp("project")
    (root / "data").mkdir()
    shutil.copyfile(REGISTRY, root / "data/registry.yaml")
    prepare("digits", (1, 8, 8), root, None)
    return root


def loaded(root: Path, name: str, seed: int = 8) -> Task:
    """The task of a setting in float64, with artifacts drawn as `fedrepro run` draws them."""
    entry = load_registry(REGISTRY)["digits"]
    changes = {"dataset": "digits", "dataset_sha": entry.sha, "input_shape": (1, 8, 8), "classes": 10, "model": "mlp"}
    changes |= {"partition": "dirichlet_per_class(alpha=1)", "clients": 6, "rounds": 2, "batch_size": 32, "local_epochs": 1}
    changes |= {"local_validation": 0.2, "proxy_per_class": 10, "proxy_batch_size": 32, "method": str(METHOD)}
    spec = RunSpec(**toy.make_spec().as_dict() | changes | SETTINGS[name])
    for kind, definition in definitions(spec, entry).items():
        draw_seeds(kind, definition, [seed], root)
    inputs = Inputs(**artifacts(spec, entry), root=root)
    assert inputs.arrays == str(arrays_folder(Path(), "digits", (1, 8, 8)))
    return load_task(spec, inputs, seed, dtype=torch.float64)


@cache
def trained(root: Path, name: str) -> Outcome:
    """The outcome at seed 8 on one engine."""
    return train(loaded(root, name), METHOD)


@pytest.mark.parametrize("name", SETTINGS)
def test_engines_and_workers_agree(name: str, project: Path) -> None:
    """Workers give the same bits, and the vectorised engine agrees to round-off with two seeds at once. Each setting changes
    the model."""
    tasks = [loaded(project, name, seed) for seed in (8, 9)]
    alone = [trained(project, name), train(tasks[1], METHOD)]
    by_workers = train(tasks[0], METHOD, workers=2)
    assert by_workers.params.flat.equal(alone[0].params.flat)
    assert by_workers.progress.rows == alone[0].progress.rows
    for position, found in train_together(tasks, METHOD):
        assert (found.params.flat - alone[position].params.flat).abs().max() < 1e-9
    if name != "as ever":
        other = trained(project, "drawn" if name == "late" else "as ever")
        assert not alone[0].params.flat.equal(other.params.flat)


def test_whose_labels_are_exchanged(project: Path) -> None:
    """The labels of three of six clients are exchanged, also in what they hold out. The test set and the proxy set keep their
    labels."""
    plain, found = (loaded(project, name) for name in ("as ever", "corrupted"))
    assert plain.proxy is not None
    assert found.proxy is not None
    swapped = corrupted.draw_class_pairs(0.5, 6, 10, 8)
    assert len(swapped) == 3
    expected = plain.train.y.clone()
    for client, (a, b) in swapped.items():
        for index in (*plain.client_index[client], *plain.held_out[client]):
            expected[index] = {a: b, b: a}.get(int(plain.train.y[index]), int(plain.train.y[index]))
    assert found.train.y.equal(expected)
    changed = torch.where(found.train.y != plain.train.y)[0]
    held_out = torch.cat([plain.held_out[client] for client in swapped])
    assert 0 < len(np.intersect1d(changed, held_out)) < len(changed)
    assert found.proxy.y.equal(plain.proxy.y)
    assert found.evaluation.y.equal(plain.evaluation.y)


def test_the_test_set_of_a_long_tailed_proxy(project: Path) -> None:
    plain, found = (loaded(project, name) for name in ("as ever", "long-tailed proxy"))
    assert found.proxy is not None
    assert found.proxy.y.bincount(minlength=10).tolist() == [10, 7, 5, 4, 3, 2, 2, 1, 1, 1]
    assert found.evaluation.x.equal(plain.evaluation.x)
