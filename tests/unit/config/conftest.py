"""A fixture with a small paper to edit."""

from pathlib import Path

import pytest
from small_papers import Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)
