"""What a result was computed with."""

import numpy as np

from fedrepro.engine import environment


def test_memory_of_what_came_before_counts_only_where_it_cannot_be_forgotten() -> None:
    """300 MB are taken and given back: in the peak until it is forgotten, and longer only where the system cannot forget."""
    environment.forget_peak()
    before = environment.peak_rss_mib()
    np.ones(300_000_000, dtype=np.uint8)
    assert environment.peak_rss_mib() > before + 250
    forgotten = environment.forget_peak()
    assert (environment.peak_rss_mib() < before + 50) == forgotten
