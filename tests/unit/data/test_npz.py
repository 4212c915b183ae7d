"""Files of drawn artifacts have the same bytes under every Python, and numpy reads them."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from fedrepro.data import npz

ARRAYS = {
    "indices": np.arange(1000, dtype=np.int64),
    "sizes_of_clients": np.array([[3, 0], [7, 2]], dtype=np.int32, order="F"),
    "empty": np.zeros((0, 4), dtype=np.float32),
}


def test_the_bytes_are_always_the_same(tmp_path: Path) -> None:
    """The sha256 was computed once. `zipfile` gives another one under Python 3.11.3 and older."""
    npz.save(tmp_path / "a.npz", ARRAYS)
    digest = hashlib.sha256((tmp_path / "a.npz").read_bytes()).hexdigest()
    assert digest == "7a604cb9ac3753f15f441c6901cd1606ec7cee0f423052eaa7dc9392a5f3cb8b"


def test_numpy_reads_what_was_saved(tmp_path: Path) -> None:
    npz.save(tmp_path / "a.npz", ARRAYS)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        assert list(found) == list(ARRAYS)
        for name, array in ARRAYS.items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)


def test_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        npz.save(tmp_path / "a.npz", {"a": np.array([{}], dtype=object)})
