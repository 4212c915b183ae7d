"""Skips tests that need a processor feature and names what this one lacks; starts new processes for arithmetic."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro import arithmetic

needs_avx2 = pytest.mark.skipif(
    bool(arithmetic.unsupported_reason()), reason=f"this processor {arithmetic.unsupported_reason()}"
)
needs_avx512 = pytest.mark.skipif(
    bool(arithmetic.unsupported_reason(wide=True)), reason=f"this processor {arithmetic.unsupported_reason(wide=True)}"
)

ROOT = Path(__file__).parents[2]


def python(code: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs a new process without the arithmetic settings of this one."""
    ours = {arithmetic.VARIABLE, *arithmetic.PORTABLE}
    environment = {key: value for key, value in os.environ.items() if key not in ours} | changes
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
