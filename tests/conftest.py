"""Settings of every test."""

import os
import signal
import sys
from pathlib import Path

import pytest

from fedrepro import arithmetic

# As in training: one thread a process; toy models otherwise spend their time waiting for threads (70 times slower on a busy
# machine). Set before torch is imported, and inherited by the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"

# Where no bytecode may be written, each of the hundreds of processes would compile the whole package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What users get; before NumPy and torch are imported. Tests of native arithmetic start processes of their own.
arithmetic.settle("native" if arithmetic.missing() else "portable")

# Kernels for a GPU run in Triton's interpreter, on any machine; `make test-gpu` says 0, and there they run on the GPU. Triton
# asks when it is imported, which torch may do.
os.environ.setdefault("TRITON_INTERPRET", "1")

_LONGEST = ("workflow", "contract", "unit/test_portable.py", "unit/cli")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folders that take longest first: the processes that share out the files then end together."""
    places = [str(Path(__file__).parent / name) for name in _LONGEST]
    first = lambda item: next((i for i, place in enumerate(places) if str(item.path).startswith(place)), len(places))  # noqa: E731
    items.sort(key=first)


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are called in this process do not change what oneDNN may use in the tests after them."""
    monkeypatch.setattr(arithmetic, "widen", lambda *_: None)


# A shell has what it starts in the background ignore Ctrl-C, and whatever that starts too: tests would interrupt in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
