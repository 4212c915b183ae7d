"""Settings for every test."""

import os
import signal
import sys
from pathlib import Path

import pytest

from fedrepro import arithmetic

# As in training: one thread per process. Otherwise toy models spend their time waiting for threads (70 times slower on a busy
# machine). This is set before torch is imported, and the processes that tests start inherit it.
os.environ["OMP_NUM_THREADS"] = "1"

# If no bytecode can be written, each of the hundreds of processes would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The arithmetic that users get, set before NumPy and torch are imported. Tests of native arithmetic start new processes.
arithmetic.use("auto")

# GPU kernels run in Triton's interpreter on any machine. `make test-gpu` sets 0, and there they run on the GPU. Triton reads
# this when it is imported, which torch may do.
os.environ.setdefault("TRITON_INTERPRET", "1")

_LONGEST = ("workflow", "contract", "unit/test_portable.py", "unit/cli")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the slowest folders first, so that the processes that share the files end at about the same time."""
    places = [str(Path(__file__).parent / name) for name in _LONGEST]
    first = lambda item: next((i for i, place in enumerate(places) if str(item.path).startswith(place)), len(places))  # noqa: E731
    items.sort(key=first)


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command called in this process must not change oneDNN's instruction set for later tests."""
    monkeypatch.setattr(arithmetic, "widen", lambda *_: None)


# A shell makes its background processes and their children ignore Ctrl-C, so tests could not interrupt them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
