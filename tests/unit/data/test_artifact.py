"""What all drawn files share: bytes that depend on their content alone, and shares of whole numbers."""

import time

import numpy as np
import pytest

from fedrepro.data import artifact


def test_artifact_bytes_do_not_depend_on_the_clock(tmp_path, monkeypatch):
    """numpy dates every member of an npz alike."""
    arrays = {"a": np.arange(5), "b": np.zeros((2, 0))}
    first = artifact.save(tmp_path / "one.npz", arrays, {}).read_bytes()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1e6)
    assert artifact.save(tmp_path / "two.npz", arrays, {}).read_bytes() == first


@pytest.mark.parametrize(
    ("share", "count", "floor"), [(0.1, 30, 3), (0.29, 100, 29), (0.7, 10, 7), (1e-9, 10, 0), (1.0, 3, 3), (1 / 3, 3, 0)]
)
def test_floor_share(share, count, floor):
    """Read as the decimal that was written; 1/3 as a float is a little less than a third."""
    assert artifact.floor_share(share, count) == floor
