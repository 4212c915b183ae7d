"""Random streams by name. Nothing in fedrepro reads or seeds a global generator."""

import hashlib
from functools import lru_cache

import numpy as np


def stream(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """A generator that depends on (seed, purpose, indices) alone.

    Two streams that differ in any of the three are independent, so a result cannot depend on the order in which clients,
    rounds or methods are computed (our choice: one stream per use instead of one stream per process).
    """
    return np.random.default_rng(np.random.SeedSequence([seed, _word(purpose), *indices]))


@lru_cache
def _word(purpose: str) -> int:
    return int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "little")
