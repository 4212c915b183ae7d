"""How many clients fit into a chunk."""

import dataclasses

import pytest
import torch

from fedrepro.engine import memory
from fedrepro.models import build
from tests import toy


def test_what_autograd_keeps_of_a_sample() -> None:
    """16-6-3 with ReLU keeps, for each sample, the image (16), the hidden layer (6, once) and the log-probabilities (3), plus
    its label and a scalar."""
    assert 25 <= memory.saved_per_sample(toy.tiny_model()) <= 28


def test_what_a_convolution_keeps() -> None:
    """LeNet on 28x28 keeps the image, maps of 16 x 28 x 28 and 32 x 14 x 14 before pooling, the maps after it, positions of the
    maxima, and copies of the weights: between once and twice the sum of the maps."""
    maps = 28 * 28 + 16 * 28 * 28 + 32 * 14 * 14 + 16 * 14 * 14 + 32 * 7 * 7
    assert maps <= memory.saved_per_sample(build("lenet", (1, 28, 28), 10)) <= 2 * maps


@pytest.mark.parametrize("chunk_mib", [0.0, 1.0, 64.0])
def test_rows_by_hand(chunk_mib: float) -> None:
    """A row takes 8 copies of 123 weights and, for each of 6 samples of a batch, 2.5 times the kept values and the image, at 8
    bytes each. There is at least one row."""
    task = toy.make_task()
    kept = memory.saved_per_sample(task.model)
    expected = max(1, int(chunk_mib * 2**20 / (8 * (8 * 123 + 6 * (2.5 * kept + 16)))))
    assert memory.clients_per_chunk(chunk_mib, task) == expected


def test_a_device_decides_alone() -> None:
    """The budget of a CPU is a constant, so that all machines cut the same chunks. Larger batches mean fewer rows."""
    task = toy.make_task()
    assert memory.budget_mib(torch.device("cpu")) == memory.CPU_MIB
    larger = dataclasses.replace(task, spec=dataclasses.replace(task.spec, batch_size=600))
    assert memory.clients_per_chunk(None, larger) < memory.clients_per_chunk(None, task)
