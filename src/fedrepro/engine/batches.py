"""The batches of a client and their order. They depend only on (seed, client, round), not on engine, method or job order."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fedrepro import rng
from fedrepro.types import Batch


def local_orders(samples: int, *, seed: int, client: int, round: int, epochs: int, purpose: str = "batches") -> np.ndarray:
    """Positions 0..samples-1 in a fresh order for each epoch of one client's round, int64 [epochs, samples]."""
    generator = rng.stream(seed, purpose, client, round)
    orders = [generator.permutation(samples) for _ in range(epochs)]
    return np.stack(orders) if epochs > 1 else orders[0][np.newaxis]


def stream_of(purpose: str, number: int) -> str:
    """The random stream for the batches number 1, 2, ... of a step. Number 1 has the name that it would have alone."""
    return purpose if number == 1 else f"{purpose}/{number}"


def side_by_side(first: Iterable[Batch], *others: Iterable[Batch]) -> Iterator[Batch]:
    """Joins the batches of each step into one, see `Batch.others`."""
    return (replace(batch, others=tuple(other_batches)) for batch, *other_batches in zip(first, *others, strict=True))


def dropout_key(seed: int, client: int, round: int) -> int:
    """The key of the dropout masks of one client's round, 63 bits."""
    return int(rng.stream(seed, "dropout", client, round).integers(2**63))


def on_device(batches: list[Tensor], device: torch.device) -> list[Tensor]:
    """Moves the index tensors [B] to `device` in one copy that does not wait. A copy per step would wait until the GPU has
    finished all work of the step before."""
    if device.type == "cpu" or not batches:
        return batches
    return list(torch.cat(batches).to(device, non_blocking=True).split([len(index_B) for index_B in batches]))


def local_batches(
    samples: int,
    *,
    seed: int,
    client: int,
    round: int,
    epochs: int,
    batch_size: int,
    smallest: int = 1,
    purpose: str = "batches",
) -> list[Tensor]:
    """`local_orders` as mini-batches. The last partial batch of an epoch is kept.

    Returns T = epochs * ceil(samples / batch_size) index tensors [B], without batches of fewer than `smallest` samples.
    """
    orders = torch.from_numpy(local_orders(samples, seed=seed, client=client, round=round, epochs=epochs, purpose=purpose))
    if smallest <= samples <= batch_size:
        return list(orders.unbind())
    return [index_B for order in orders for index_B in order.split(batch_size) if len(index_B) >= smallest]
