"""What would go wrong on a GPU: tensors on the wrong device, and steps that wait for a copy.

The device `meta` stands for the GPU. It holds no values, so a copy back is an error, and it cannot be mixed with the CPU.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fedrepro.cli.drawing import draw_seeds
from fedrepro.data import partition
from fedrepro.data.prepare import prepare
from fedrepro.data.registry import REGISTRY, load_registry
from fedrepro.engine import client_side
from fedrepro.engine import run as engine_run
from fedrepro.engine.artifacts import artifacts, definitions
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.run import Options
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Inputs, Task, load_task
from fedrepro.methods.compose import compose
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import Batch
from tests import toy

ROOT = Path(__file__).parents[3]


class Copies(TorchDispatchMode):
    """Counts the copies from the CPU to the device within the block: those that it waits for, and the others."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = self.others = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        to = torch.device((kwargs or {}).get("device") or "cpu")
        if func is torch.ops.aten._to_copy.default and to.type == "meta" and args[0].device.type == "cpu":
            if (kwargs or {}).get("non_blocking"):
                self.others += 1
            else:
                self.waiting += 1
        return func(*args, **(kwargs or {}))


def on_device(task: Task) -> Task:
    """Moves the training samples and their positions to the devices on which `load_task` puts them."""
    train = Batch(task.train.x.to("meta"), task.train.y.to("meta"))
    return replace(task, train=train, client_index=[index.to("meta") for index in task.client_index])


@pytest.mark.parametrize("augment", ["none", "crop(padding=1)+flip"])
def test_a_clients_batches_go_to_the_device_once(augment: str) -> None:
    """One copy serves all steps of a round, and no step waits for it."""
    task = toy.make_task(augment=augment, batch_size=2, local_epochs=3)
    there, method = on_device(task), compose("fedavg")
    assert there.augmentation is None or there.augmentation.black.device.type == "meta"
    batches = SequentialEngine(task, method)._batches(1, 0)
    assert len(batches) == 18
    with Copies() as copies:
        shapes = [batch.x.shape for batch in SequentialEngine(there, method)._training_batches(1, batches, 0)]
    assert shapes == [batch.x.shape for batch in SequentialEngine(task, method)._training_batches(1, batches, 0)]
    assert (copies.waiting, copies.others) == (0, 1 if augment == "none" else 2)


def test_own_models_batches_go_to_the_device_once() -> None:
    """One copy serves the one epoch from which a client makes its own model."""
    task = toy.make_task(batch_size=2)
    there = on_device(task)
    batches, network = client_side._batches(task, 1, 0), TrainingNetwork(task.model, task.buffers)
    with Copies() as copies:
        assert len(list(client_side._training_batches(there, 1, batches, network))) == len(batches) == 6
    assert (copies.waiting, copies.others) == (0, 1)


def test_a_step_of_dropout_copies_nothing() -> None:
    """The step's number is written on the device and not made on the CPU first. The keys are those of a tensor of numbers."""

    class Made(TorchFunctionMode):
        """Refuses calls that would copy to a GPU."""

        def __torch_function__(self, func, types, args=(), kwargs=None):
            assert func not in (torch.tensor, torch.as_tensor)
            return func(*args, **(kwargs or {}))

    keys = Keys(torch.tensor(5, device="meta"))
    with Made():
        keys.begin(3)
        keys.next()
    found, expected = Keys(torch.tensor([5, 6])), Keys(torch.tensor([5, 6]))
    found.begin(3)
    expected.begin(torch.tensor([3, 3]))
    assert torch.equal(found.next(), expected.next())


def test_positions_of_samples_are_not_copied_back(tmp_path: Path) -> None:
    """A task on a device keeps the clients' sample positions from its files in host memory."""
    (tmp_path / "data").mkdir()
    (tmp_path / REGISTRY).write_bytes((ROOT / REGISTRY).read_bytes())
    prepare("digits", root=tmp_path)
    entry = load_registry(tmp_path / REGISTRY)["digits"]
    shape = entry.native_shape
    spec = toy.make_spec(dataset="digits", dataset_sha=entry.sha, input_shape=shape, model="mlp", clients=5, proxy_per_class=1)
    for kind, definition in definitions(spec, entry).items():
        draw_seeds(kind, definition, [8], tmp_path)
    inputs = Inputs(**artifacts(spec, entry), root=tmp_path)
    task, parts = load_task(spec, inputs, 8, "meta"), partition.load(tmp_path, inputs.partition, 8)
    assert task.client_index[0].device.type == "meta"
    assert len(task.client_positions) == 5
    for client, positions in enumerate(task.client_positions):
        assert positions.dtype == np.int64
        assert np.array_equal(positions, parts.train(client))
    for found, expected in zip(load_task(spec, inputs, 8).client_index, task.client_positions, strict=True):
        assert np.array_equal(found.numpy(), expected)


def test_arithmetic_is_a_matter_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint of a GPU continues under any `arithmetic`; a checkpoint of the CPU does not."""

    def key(device: str, **changes: Any) -> str:
        run = {"run_id": "run", "method": "fedavg", "config": {"method": "fedavg", "model": "mlp", "partition": "iid"}}
        job = engine_run._Job(run, task.spec, Inputs("", "", "", "", ""), device, "vectorised", Options(), (None, None))
        return job.checkpoints(task, [8, 9], **changes).key

    task, now = toy.make_task(), "portable"
    monkeypatch.setattr(engine_run.arithmetic, "current", lambda: now)
    before: Callable[[str], str] = {device: key(device) for device in ("cpu", "cuda")}.__getitem__
    now = "native"
    assert key("cuda") == before("cuda")
    assert key("cpu") != before("cpu")
    assert before("cpu") != before("cuda")


def test_only_stacked_convolutions_in_float32_are_recorded() -> None:
    """Without convolutions, on the sequential engine or in bfloat16 the kernels of the GPU take nothing."""
    plain, images = toy.make_task(), toy.make_task()
    images = replace(images, params=Tree.from_tensors({"weight": torch.zeros(4, 1, 3, 3)}))
    assert engine_run._stacks_convolutions("vectorised", "tf32", images)
    assert not engine_run._stacks_convolutions("vectorised", "bf16", images)
    assert not engine_run._stacks_convolutions("sequential", "float32", images)
    assert not engine_run._stacks_convolutions("vectorised", "float32", plain)
