"""Random streams by name. Nothing in fedrepro reads or seeds a global generator."""

import hashlib
from functools import lru_cache

import numpy as np


def stream(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """A generator that depends on (seed, purpose, indices) alone.

    Two streams that differ in any of the three are independent, with one exception: with a seed below 2**32, no index is the
    same as the index 0 alone. So each purpose has a fixed number of indices. A result cannot depend on the order in which
    clients, rounds or methods are computed (our choice: one stream per use instead of one stream per process). Indices must be
    below 2**32.
    """
    # The words that SeedSequence itself makes of [seed, purpose, *indices], at half the cost: a run may have many tiny clients.
    return np.random.default_rng(np.random.SeedSequence(np.array([*_words(seed, purpose), *indices], np.uint32)))


@lru_cache
def _words(seed: int, purpose: str) -> tuple[int, ...]:
    """32-bit words of both numbers, lowest first, without leading zeros."""
    numbers = seed, int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "little")
    return tuple(n >> 32 * i & 0xFFFFFFFF for n in numbers for i in range(max(1, -(-n.bit_length() // 32))))
