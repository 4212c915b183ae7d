"""What all drawn files share: bytes that depend only on their content, and shares of whole numbers."""

import pytest

from fedrepro.data import artifact


@pytest.mark.parametrize(
    ("share", "count", "floor"), [(0.1, 30, 3), (0.29, 100, 29), (0.7, 10, 7), (1e-9, 10, 0), (1.0, 3, 3), (1 / 3, 3, 0)]
)
def test_floor_share(share, count, floor):
    """A share is read as the decimal that was written. 1/3 as a float is a little less than a third."""
    assert artifact.floor_share(share, count) == floor
