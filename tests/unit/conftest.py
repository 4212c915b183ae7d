"""Lets unit tests import what lies in tests/helpers."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "helpers"))
