"""On an NVIDIA GPU (`make test-gpu`): every method and every model on both engines, compared with the CPU.

In float64 a round agrees to rounding; the kernels of `fedrepro.models.gpu` are not used there. In float32 low bits differ, and
sometimes one of them changes a ReLU or a maximum. tests/unit/models/test_gpu.py tests the kernels alone.
"""

import dataclasses
import os
from pathlib import Path

import pytest
import torch

from fedrepro.engine import environment
from fedrepro.engine.loop import Checkpoints, Outcome, train, train_together
from fedrepro.engine.task import Task
from fedrepro.methods.compose import compose
from fedrepro.models.names import MODELS
from fedrepro.types import Batch
from tests import toy
from tests.contract.test_engines import SEEDS, assert_close, real_task, tasks
from tests.unit.engine import test_detection

pytestmark = pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")  # torch's warning, which trainings ignore too
STACKABLE = [name for name, known in MODELS.items() if known.stackable]
SLOW_ON_A_CPU = {"resnet110", "wrn56_4", "densenet121", "fedima_alexnet"}  # not tested in float64
# Float32 tolerance: the norm of the difference over the norm of a round's update. It is ten times the difference on an H200,
# and 0.1 for all other models. Most of the difference comes from rounding that changes a ReLU or a maximum.
FLOAT32 = {"lenet": 2e-5, "resnet8": 5e-5, "resnet20": 0.05}
# With dozens of normalisations over eight images, rounding alone makes up to 0.4 of the update, so a comparison means nothing.
TOO_DEEP = {"resnet56", "resnet110", "wrn56_4", "densenet121"}
AUGMENTED = ["lenet", "mlp", "fedgh_cnn", "resnet8", "mcmahan_cifar", "resnet20_gn", "char_lstm"]


@pytest.fixture(autouse=True, scope="module")
def _prepared() -> None:
    """Prepares the process as a training on a GPU does: deterministic kernels, products in full float32. These tests need a
    GPU."""
    assert torch.cuda.is_available(), "torch finds no GPU: make test-gpu is for machines that have one"
    assert os.environ["TRITON_INTERPRET"] == "0", "start them with make test-gpu, which has Triton's kernels run on the GPU"
    environment.prepare("cuda")


def on_gpu(task: Task) -> Task:
    """The task with all its tensors on the GPU."""
    move = lambda batch: batch and Batch(batch.x.cuda(), batch.y.cuda())  # noqa: E731
    return dataclasses.replace(
        task,
        **{name: move(getattr(task, name)) for name in ("train", "evaluation", "proxy")},
        **{name: [index.cuda() for index in getattr(task, name)] for name in ("client_index", "held_out")},
        client_sizes=task.client_sizes.cuda(),
        params=task.params.like(task.params.flat.cuda()),
        buffers=task.buffers.like(task.buffers.flat.cuda()),
    )


def on_cpu(outcome: Outcome) -> Outcome:
    """The outcome with its weights and statistics on the CPU, for comparison."""
    params, buffers = (one.like(one.flat.cpu()) for one in (outcome.params, outcome.buffers))
    return dataclasses.replace(outcome, params=params, buffers=buffers)


def both_engines(text: str, several: list[Task]) -> list[tuple[Task, Outcome]]:
    """On the GPU: the vectorised engine trains all tasks together, and the sequential engine the first one."""
    there, method = [on_gpu(task) for task in several], compose(text)
    found = dict(train_together(there, method)) if several[0].model.stackable else {}
    made = [(several[place], on_cpu(outcome)) for place, outcome in found.items()]
    return [*made, (several[0], on_cpu(train(there[0], method)))]


@pytest.mark.parametrize(("text", "model"), toy.CASES)
def test_every_method_in_float64(text: str, model: str) -> None:
    """Two seeds agree with the CPU after 2 rounds: to 1e-11, or 1e-7 with BatchNorm, which divides rounding errors by small
    deviations over batches of two."""
    for task, found in both_engines(text, tasks(model, rounds=2)[:2]):
        assert_close(found, train(task, compose(text)), 1e-11 if model == "tiny" else 1e-7)


def assert_round_close(name: str, dtype: torch.dtype, tolerance: float) -> None:
    """Compares one round of a model with the CPU. `tolerance` is relative to the round's update."""
    several = [real_task(name, seed, dtype) for seed in SEEDS[:2]]
    for task, found in both_engines("fedavg", several):
        expected = train(task, compose("fedavg"))
        moved = (expected.params.flat - task.params.flat).norm()
        assert (found.params.flat - expected.params.flat).norm() < tolerance * moved
        assert (found.buffers.flat - expected.buffers.flat).norm() <= tolerance * expected.buffers.flat.norm()


@pytest.mark.parametrize("name", [name for name in STACKABLE if name not in SLOW_ON_A_CPU])
def test_every_model_in_float64(name: str) -> None:
    """One round agrees to 1e-9 of the update, or 1e-6 with BatchNorm."""
    assert_round_close(name, torch.float64, 1e-6 if MODELS[name].smallest_batch > 1 else 1e-9)


@pytest.mark.parametrize("name", [name for name in STACKABLE if name not in TOO_DEEP])
def test_every_model_in_float32(name: str) -> None:
    """One round agrees to the tolerance above."""
    assert_round_close(name, torch.float32, FLOAT32.get(name, 0.1))


@pytest.mark.parametrize("name", AUGMENTED)
@pytest.mark.parametrize("engine", ["sequential", "vectorised"])
def test_the_same_bits_twice(name: str, engine: str) -> None:
    """Two trainings of two rounds in float32 have the same bits, with augmentation if the model reads images."""
    task = on_gpu(real_task(name, 8, torch.float32))
    augment = "none" if task.model.reads_text else "crop(padding=2)+flip"
    spec = dataclasses.replace(task.spec, rounds=2, augment=augment)
    task = dataclasses.replace(task, spec=spec, cohorts=task.cohorts[[0, 0]])
    once, again = (train(task, compose("fedavg"), engine=engine) for _ in range(2))
    assert torch.equal(once.params.flat, again.params.flat)
    assert once.progress.rows == again.progress.rows


def test_a_detector() -> None:
    """A detector agrees with the CPU in float32. It cannot be stacked."""
    task = test_detection.make_task()
    found, expected = train(on_gpu(task), compose("fedavg")), train(task, compose("fedavg"))
    moved = (expected.params.flat - task.params.flat).norm()
    assert (found.params.flat.cpu() - expected.params.flat).norm() < 0.1 * moved


@pytest.mark.parametrize("text", ["feddyn", toy.part_text("fedlaw")])
def test_seeds_go_on_from_one_round(text: str, tmp_path: Path) -> None:
    """A run is killed in round 2 of the second seed. All seeds continue from their checkpoints to the same bits."""
    several, method = [on_gpu(task) for task in tasks(rounds=4, keep_client_momentum=True)], compose(text)
    whole = dict(train_together(several, method))
    checkpoints = [Checkpoints(tmp_path / f"seed{task.seed}.pt", "key", every_s=0) for task in several]
    with pytest.raises(toy.Stopped):
        dict(train_together(several, method, checkpoints=checkpoints, reports=[None, toy.stop_at(2), None]))
    resumed = dict(train_together(several, method, checkpoints=checkpoints))
    for place, expected in whole.items():
        assert torch.equal(resumed[place].params.flat, expected.params.flat)
        assert resumed[place].progress.rows == expected.progress.rows
