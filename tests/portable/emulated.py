"""Portable arithmetic on other processors: everything is also computed under qemu and must give the committed hashes.

Each processor takes every partition, and its share of the models and of the methods.
`make test-portable` runs these tests. The other tests leave them out, because emulation takes minutes. Needs Debian's
qemu-user.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from fedrepro.files import read_json
from tests.portable.compute import HASHES, hashes, steps

ROOT = Path(__file__).parents[2]
EMULATOR = shutil.which("qemu-x86_64")
# One Intel and one AMD processor, one for each of two cores. Their caches have other sizes, and neither has AVX-512.
PROCESSORS = ["Haswell", "EPYC-Rome"]
COMMAND = [sys.executable, "-m", "tests.portable.compute"]


# QEMU 7.2 also reads the masked lanes of a masked load (NumPy's sort has one at the end of an array), and crashes if the next
# page is not mapped. So these settings put arrays on one heap, with 64 MiB of padding at its end.
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_TOP_PAD_": str(2**26),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
}
CRASH, TRIES = "qemu: uncaught target signal", 3


def compute(folder: Path, *before: str, share: str = "0/1") -> int:
    """Continues after the last finished step if the emulator crashes, and fails if it crashes TRIES times in one step. Returns
    the number of crashes."""
    # The child processes must not inherit these settings: `arithmetic.use` makes them again.
    environment = {key: value for key, value in os.environ.items() if key != "FEDREPRO_ARITHMETIC"} | SETTINGS
    finished = crashes = tries = 0
    while True:
        command = [*before, *COMMAND, str(folder), "--share", share, "--skip", str(finished)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode == 0:
            return crashes
        told = done.stdout.count("\n")
        finished, crashes, tries = finished + told, crashes + 1, 1 if told else tries + 1
        if tries == TRIES or done.returncode > 0 or CRASH not in done.stderr:
            pytest.fail(f"after {finished} steps: {done.stderr[-3000:]}")


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Path]]:
    """Starts all emulated processors at the same time and waits for them."""
    assert EMULATOR, "qemu-x86_64 is missing; install Debian's qemu-user"

    def emulate(number: int, folder: Path) -> Path:
        compute(folder, EMULATOR, "-cpu", PROCESSORS[number], share=f"{number}/{len(PROCESSORS)}")
        return folder

    with ThreadPoolExecutor(len(PROCESSORS)) as pool:
        folders = [tmp_path_factory.mktemp(name) / "files" for name in PROCESSORS]
        return {name: pool.submit(emulate, number, folders[number]) for number, name in enumerate(PROCESSORS)}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_committed_hashes(processor: str, emulated: dict[str, Future[Path]]) -> None:
    """These files have the committed hashes: partitions, cohorts, proxy splits and initial models; models and metrics of this
    processor's methods after two rounds; its architectures after a step."""
    require_committed(emulated[processor].result())


def test_nothing_is_left_out(emulated: dict[str, Future[Path]]) -> None:
    """Every method and every architecture is assigned to a processor."""
    assert {name for there in emulated.values() for name in hashes(there.result())} == read_json(HASHES).keys()


def require_committed(folder: Path) -> None:
    found, committed = hashes(folder), read_json(HASHES)
    assert len(found) > 60
    assert [name for name in found if found[name] != committed.get(name)] == []


TOLD, FEW = 15, "0/4"
CRASHES = f"""
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
for number, line in enumerate(process.stdout):
    if number == {TOLD}:
        process.kill()
        print("{CRASH} 11", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 9)
    print(line, end="", flush=True)
"""


def test_a_crash_loses_one_step(tmp_path: Path) -> None:
    """The command is killed again and again, after a step that it has not yet reported. The reported steps are not repeated,
    and the bytes are the same."""
    crashes = compute(tmp_path / "files", sys.executable, "-c", CRASHES, share=FEW)
    assert crashes == (len(list(steps(tmp_path, FEW))) - 1) // TOLD > 0
    require_committed(tmp_path / "files")


def test_the_same_crash_every_time(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="after 0 steps"):
        compute(
            tmp_path,
            sys.executable,
            "-c",
            f"import os, sys; print('{CRASH}', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)",
        )
