"""Skips tests that need a processor feature and names what this one lacks; starts new processes for arithmetic."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro import arithmetic


def _needs(*, wide: bool) -> pytest.MarkDecorator:
    """Skips a test only where the processor lacks instructions, and names them: `this processor lacks avx512bw, avx512f`."""
    lacking = arithmetic.unsupported_reason(wide=wide)
    return pytest.mark.skipif(lacking != "", reason=f"this processor {lacking}")


needs_avx2, needs_avx512 = _needs(wide=False), _needs(wide=True)

ROOT = Path(__file__).parents[2]


def python(code: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs a new process without the arithmetic settings of this one."""
    ours = {arithmetic.VARIABLE, *arithmetic.PORTABLE}
    environment = {key: value for key, value in os.environ.items() if key not in ours} | changes
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
