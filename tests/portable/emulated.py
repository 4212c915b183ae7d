"""Portable arithmetic on processors that are not here: everything is computed under qemu too, and compared byte for byte.

Run by `make test-portable`, and not with the other tests: emulation takes minutes. Needs Debian's qemu-user.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.portable.compute import hashes

ROOT = Path(__file__).parents[2]
EMULATOR = shutil.which("qemu-x86_64")
# One of Intel's, one of AMD's, one for each of two cores; with caches of other sizes, and none with AVX-512.
PROCESSORS = ["Haswell", "EPYC-Rome"]
COMMAND = [sys.executable, "-m", "tests.portable.compute"]


# The emulator itself crashes now and then, mostly where threads start.
CRASH, TRIES = "qemu: uncaught target signal", 3


def compute(folder: Path, *before: str) -> None:
    # The settings of this process are not for its children: `arithmetic.settle` makes them anew.
    environment = {key: value for key, value in os.environ.items() if key != "FEDREPRO_ARITHMETIC"}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        done = subprocess.run([*before, *COMMAND, str(folder)], cwd=ROOT, env=environment, capture_output=True, text=True)
        if not (done.returncode < 0 and CRASH in done.stderr):
            break
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What this processor computes."""
    folder = tmp_path_factory.mktemp("here") / "files"
    compute(folder)
    return folder


@pytest.mark.parametrize("processor", PROCESSORS)
def test_same_bytes(processor: str, here: Path, tmp_path: Path) -> None:
    """Partitions, cohorts, proxy splits, initial models; models and metrics of every method after two rounds; every
    architecture after a step."""
    assert EMULATOR, "qemu-x86_64 is missing; install Debian's qemu-user"
    compute(tmp_path / "files", EMULATOR, "-cpu", processor)
    names = sorted(hashes(here))
    assert names == sorted(hashes(tmp_path / "files"))
    assert len(names) > 100
    different = [name for name in names if (here / name).read_bytes() != (tmp_path / "files" / name).read_bytes()]
    assert not different
