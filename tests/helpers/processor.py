"""Skips tests that need a processor feature and names what this one lacks; starts new processes for arithmetic."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro import arithmetic


def _needs(instructions: str, *, wide: bool) -> pytest.MarkDecorator:
    """Skips a test on a processor without the instructions: `needs AVX-512; this processor lacks avx512bw, avx512f`."""
    missing = arithmetic.unsupported_reason(wide=wide)
    return pytest.mark.skipif(missing != "", reason=f"needs {instructions}; this processor {missing}")


needs_avx2, needs_avx512 = _needs("AVX2", wide=False), _needs("AVX-512", wide=True)

ROOT = Path(__file__).parents[2]


def python(code: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs a new process without the arithmetic settings of this one."""
    ours = {arithmetic.VARIABLE, *arithmetic.PORTABLE}
    environment = {key: value for key, value in os.environ.items() if key not in ours} | changes
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
