"""Named random streams."""

import hashlib

import numpy as np
import pytest

from fedrepro import rng


def first(*arguments) -> float:
    return float(rng.stream(*arguments).random())


def test_a_stream_depends_on_its_arguments_alone() -> None:
    """The same arguments give the same numbers, whatever else was drawn. The numbers must never change."""
    before = first(8, "partition")
    first(9, "partition")
    np.random.default_rng(0).random()
    assert first(8, "partition") == before
    # NumPy guarantees the bit stream of PCG64 seeded by SeedSequence; a change here would silently redraw every partition.
    words = rng.stream(8, "partition").bit_generator.random_raw(2).tolist()
    assert words == [11481114307783893677, 10471367283805573843]


@pytest.mark.parametrize("seed", [0, 8, 2**32 - 1, 2**32, 2**40 + 5])
def test_a_stream_is_numpys_own(seed: int) -> None:
    """Our words equal those that SeedSequence makes of the numbers, also for a seed of more than one word."""
    purpose = int.from_bytes(hashlib.sha256(b"batches").digest()[:8], "little")
    own = np.random.default_rng(np.random.SeedSequence([seed, purpose, 3, 0]))
    assert rng.stream(seed, "batches", 3, 0).bit_generator.random_raw(4).tolist() == own.bit_generator.random_raw(4).tolist()


def test_no_index_is_the_index_zero() -> None:
    """A stream without an index equals the stream with index 0. No other spellings coincide, so each purpose has a fixed number
    of indices."""
    assert first(8, "batches") == first(8, "batches", 0)
    assert first(2**32, "batches") != first(2**32, "batches", 0)


@pytest.mark.parametrize(
    "other", [(9, "batches", 1, 2), (8, "batch", 1, 2), (8, "batches", 2, 1), (8, "batches", 1), (8, "batches", 1, 2, 0)]
)
def test_any_difference_makes_another_stream(other: tuple) -> None:
    """Seed, purpose, indices, their order and their number all matter."""
    assert first(8, "batches", 1, 2) != first(*other)
