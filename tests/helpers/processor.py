"""Skips tests on a processor that lacks their instructions, and names these; starts new processes for arithmetic."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro import arithmetic

AVX2 = {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"}
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512vl", "avx512dq"}


def lacking(instructions: set[str]) -> list[str]:
    """Names what Linux does not list of this processor. It does not ask `fedrepro.arithmetic`, which these tests check."""
    cpuinfo = Path("/proc/cpuinfo")
    listed = cpuinfo.read_text().partition("\nflags")[2].partition("\n")[0].split() if cpuinfo.exists() else []
    return sorted(instructions - {*listed})


def _needs(instructions: set[str]) -> pytest.MarkDecorator:
    lacks = lacking(instructions)
    return pytest.mark.skipif(bool(lacks), reason=f"this processor lacks {', '.join(lacks)}")


needs_avx2, needs_avx512 = _needs(AVX2), _needs(AVX512)

ROOT = Path(__file__).parents[2]


def python(code: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs a new process without the arithmetic settings of this one."""
    ours = {arithmetic.VARIABLE, *arithmetic.PORTABLE}
    environment = {key: value for key, value in os.environ.items() if key not in ours} | changes
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
