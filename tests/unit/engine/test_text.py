"""Windows of text through a run: data, tasks, both engines, evaluation and proxy set."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from fedrepro import rng
from fedrepro.cli.drawing import draw_seeds
from fedrepro.data.prepare import prepare
from fedrepro.data.registry import REGISTRY, load_registry
from fedrepro.engine import memory
from fedrepro.engine.artifacts import artifacts, definitions
from fedrepro.engine.evaluate import evaluate, pieces
from fedrepro.engine.loop import train, train_together
from fedrepro.engine.spec import RunSpec
from fedrepro.engine.task import Inputs, Task, as_text, load_task
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose
from fedrepro.models import build
from fedrepro.tree import Tree
from fedrepro.types import Batch
from tests import toy

ROOT = Path(__file__).parents[3]
SETTINGS = {
    "dataset": "synthetic_text",
    "input_shape": (80,),
    "classes": 8,
    "model": "char_lstm",
    "clients": 8,
    "proxy_per_class": 1,
    "rounds": 2,
    "local_epochs": 1,
    "batch_size": 10,
    "client_lr": 1.0,
    "client_lr_decay": 1.0,
    "weight_decay": 0.0,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the prepared text."""
    found = tmp_path_factory.mktemp("text")
    (found / "data").mkdir()
    (found / REGISTRY).write_bytes((ROOT / REGISTRY).read_bytes())
    prepare("synthetic_text", root=found)
    return found


def task_of(root: Path, seed: int = 8, dtype: torch.dtype = torch.float64, **changes) -> Task:
    """A task from files. Missing files are drawn."""
    entry = load_registry(root / REGISTRY)["synthetic_text"]
    spec = toy.make_spec(**(SETTINGS | {"dataset_sha": entry.sha} | changes))
    for kind, definition in definitions(spec, entry).items():
        draw_seeds(kind, definition, [seed], root)
    return load_task(spec, Inputs(**artifacts(spec, entry), root=root), seed, dtype=dtype)


def test_targets_are_the_text_moved_by_one() -> None:
    """After the windows abc and bca come a and b, so the targets are bca and cab."""
    found = as_text(np.array([[0, 1, 2], [1, 2, 0]], np.uint8), np.array([0, 1]), "cpu")
    assert found.x.tolist() == [[0, 1, 2], [1, 2, 0]]
    assert found.y.tolist() == [[1, 2, 0], [2, 0, 1]]
    assert found.x.dtype == found.y.dtype == torch.int64
    assert len(found) == 2


def test_accuracy_is_a_share_of_characters(root: Path) -> None:
    """A model that always predicts character 3 is right as often as 3 comes next. Its loss follows from its logits."""
    task = task_of(root)
    model, flat = task.model, torch.zeros_like(task.params.flat)
    params = Tree(model.layout, flat)
    params["fc.bias"][3] = 2.0
    found = evaluate(model, params, task.buffers, task.evaluation)
    share = float((task.evaluation.y == 3).double().mean())
    assert found["test_accuracy"] == pytest.approx(100 * share, abs=1e-9)
    assert found["test_loss"] == pytest.approx(float(np.log(7 + np.exp(2.0))) - 2 * share, abs=1e-6)


def test_windows_are_evaluated_a_tenth_at_a_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows are evaluated in pieces of 5, the last of them smaller. The metrics are the same, except for the last bits of the
    loss."""
    task = task_of(root)
    whole = evaluate(task.model, task.params, task.buffers, task.evaluation)
    monkeypatch.setattr("fedrepro.engine.evaluate.BATCH", 50)
    full, left = divmod(len(task.evaluation), 5)
    assert [len(piece.data) for piece in pieces(task.evaluation)] == full * [5] + [left]
    assert left > 0
    for key, value in evaluate(task.model, task.params, task.buffers, task.evaluation).items():
        assert value == pytest.approx(whole[key], rel=1e-12)


def toy_text(seed: int, **changes) -> Task:
    """The toy clients with windows of six characters out of three. 0, 1, 2 follow each other three times out of four."""
    generator, base = rng.stream(0, "toy/text"), toy.make_task(seed=seed, model=build("char_lstm", (6,), 3), **changes)

    def text(count: int) -> Batch:
        moves = np.where(generator.random((count, 7)) < 0.75, 1, generator.integers(3, size=(count, 7)))
        said = (moves.cumsum(1) % 3).astype(np.uint8)
        return as_text(said[:, :-1], said[:, -1].astype(np.int64), "cpu")

    return dataclasses.replace(base, train=text(len(base.train)), evaluation=text(30), proxy=text(12))


@pytest.mark.parametrize("text", ["feddyn+gh", toy.part_text("fedlaw"), toy.part_text("feddf")])
def test_engines_agree(text: str) -> None:
    """The sequential, plain and vectorised engine agree, also for methods that learn on the proxy set: float64, 1e-9 (Adam
    divides by small gradients). Workers change no bit."""
    tasks = [toy_text(seed) for seed in (8, 9)]
    found = dict(train_together(tasks, compose(text)))
    for i, task in enumerate(tasks):
        expected = train(task, compose(text))
        assert expected.status == "finished"
        for other in (found[i], train(task, compose(text), engine="plain")):
            torch.testing.assert_close(other.params.flat, expected.params.flat, rtol=0, atol=1e-9)
            assert [row[:2] for row in other.progress.rows] == [row[:2] for row in expected.progress.rows]
    workers = train(tasks[1], compose(text), workers=2)
    assert torch.equal(workers.params.flat, expected.params.flat)


def test_it_learns() -> None:
    """The most frequent next character is right 75 + 25/3 times out of 100. After 12 rounds the accuracy is above 75 %, after
    the first below 60 %."""
    rows = train(toy_text(8, rounds=12, client_lr=0.1), compose("fedavg")).progress.rows
    first, *_, last = toy.values_of(rows, "test_accuracy")
    assert first < 60
    assert last > 75


def test_a_run_from_files(root: Path) -> None:
    """Partition by class and proxy set use the character after the window. One round is trained."""
    task = task_of(root, partition="dirichlet_per_class(alpha=1)", local_validation=0.9, rounds=1, batch_size=40)
    assert task.proxy is not None
    assert task.proxy.y[:, -1].sort().values.tolist() == list(range(8))
    assert train(task, compose("fedavg")).status == "finished"


def test_the_memory_estimate_of_a_recurrence(root: Path) -> None:
    """The estimate per sample is at least what the recurrence keeps: gates, cells, their tanh and the states at 80 places."""
    model = build("char_lstm", (80,), 8)
    assert 80 * 7 * 64 <= memory.saved_per_sample(model) <= 2 * 80 * 7 * 64


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"normalise": "centred"}, "normalise = 'centred': text has no pixels to be scaled; set it to unit"),
        ({"augment": "flip"}, r"augment = 'flip\(\)|augment = 'flip': changes images, and this is text; set it to none"),
    ],
)
def test_settings_of_images_are_refused(changes: dict, line: str) -> None:
    """One line names the setting."""
    with pytest.raises(UserError, match=line):
        RunSpec(**(toy.make_spec(**SETTINGS).__dict__ | changes))


def test_windows_keep_their_length(root: Path) -> None:
    """Another shape of the same text is refused, and so are characters that the registry does not know."""
    with pytest.raises(UserError, match="synthetic_text: windows of text have their length, 80, and no other shape; use 80"):
        prepare("synthetic_text", (1, 28, 28), root)
    registry = root / REGISTRY
    entries = yaml.safe_load(registry.read_text())
    for shape, line in (([1, 80, 80], "native_shape: text is"), ([80, 80], "native_shape: text is")):
        entries["synthetic_text"]["native_shape"] = shape
        (root / "other.yaml").write_text(yaml.safe_dump(entries))
        with pytest.raises(UserError, match=line):
            load_registry(root / "other.yaml")
