"""Lets unit tests import from tests/helpers."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "helpers"))
