"""What a result was computed with."""

from pathlib import Path

import numpy as np
import pytest

from fedrepro.engine import environment


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux can forget a peak")
def test_memory_of_what_came_before_does_not_count() -> None:
    """300 MB are taken and given back: in the peak until it is forgotten, and not after."""
    environment.forget_peak()
    before = environment.peak_rss_mib()
    np.ones(300_000_000, dtype=np.uint8)
    assert environment.peak_rss_mib() > before + 250
    environment.forget_peak()
    assert environment.peak_rss_mib() < before + 50
