"""Which samples a client sees, and in which order: fixed by (seed, client, round), whatever engine, method or job order."""

import torch
from torch import Tensor

from fedrepro import rng


def local_batches(
    samples: int, *, seed: int, client: int, round: int, epochs: int, batch_size: int, smallest: int = 1
) -> list[Tensor]:
    """Positions 0..samples-1 as the mini-batches of one client's round: a fresh order each epoch, the last partial batch kept.

    Returns T = epochs * ceil(samples / batch_size) index tensors [B], less those below `smallest` samples.
    """
    generator = rng.stream(seed, "batches", client, round)
    orders = (torch.from_numpy(generator.permutation(samples)) for _ in range(epochs))
    return [index_B for order in orders for index_B in order.split(batch_size) if len(index_B) >= smallest]
