"""How many clients the vectorised engine holds at once, given the memory that one client needs and that the device has."""

import math

import torch
from torch import Tensor

from fedrepro.engine.task import Task
from fedrepro.models import Model
from fedrepro.tree import Tree

# Memory budget of a chunk. On a GPU it is a share of the whole memory, not of the free memory: the same machine then always
# makes the same chunks.
GPU_SHARE = 0.4
CPU_MIB = 512.0
# Copies of a client's weights while it trains: weights, velocity, gradient and its join, anchor, own state, two for formulas.
COPIES = 8
# This factor on what autograd saves per sample covers the gradients of activations and the kernels' workspace (our choice).
ACTIVATIONS = 2.5


def clients_per_chunk(chunk_mib: float | None, task: Task) -> int:
    """The most clients that fit in a chunk of `chunk_mib` MiB (None: the device's budget); at least one."""
    flat = task.params.flat
    budget = chunk_mib if chunk_mib is not None else budget_mib(flat.device)
    weights = COPIES * (task.model.parameters + task.model.buffer_layout.size)
    image_size = math.prod(task.spec.input_shape)
    numbers_per_sample = ACTIVATIONS * saved_per_sample(task.model) + image_size
    return max(1, int(budget * 2**20 / (flat.element_size() * (weights + task.spec.batch_size * numbers_per_sample))))


def budget_mib(device: torch.device) -> float:
    """Memory of one chunk in MiB."""
    if device.type == "cuda":
        return GPU_SHARE * torch.cuda.get_device_properties(device).total_memory / 2**20
    return CPU_MIB


def saved_per_sample(model: Model) -> float:
    """Numbers (of 4 bytes) that autograd keeps per sample between forward and backward pass. Measured on the CPU as what two
    more samples add, so weights in another layout or precision do not count."""
    return (_saved_numbers(model, 4) - _saved_numbers(model, 2)) / 2


def _saved_numbers(model: Model, images: int) -> float:
    saved_sizes: dict[int, float] = {}

    def note(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage().data_ptr() != params.flat.untyped_storage().data_ptr():
            saved_sizes[tensor.data_ptr()] = tensor.numel() * tensor.element_size() / 4
        return tensor

    data = model.random(images, torch.Generator().manual_seed(0))
    params = Tree(model.layout, torch.zeros(model.parameters, requires_grad=True))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        outputs, _ = model.forward(params, model.first_buffers(), data.x, True)
        model.loss(outputs, data.y)
    return sum(saved_sizes.values())
