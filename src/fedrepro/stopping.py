"""SIGTERM, which schedulers send for a time limit, a pre-emption or `scancel`: a training saves its state and ends.

Outside a training the process ends at once: files are written atomically, and the kernel frees the locks. A training defers the
signal while its state changes. The signal may interrupt the local training of clients, which takes most of the time; then the
state before that round is saved.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

EXIT_CODE = 128 + signal.SIGTERM  # as a shell reports it


class Stopped(BaseException):
    """SIGTERM has arrived. Not a subclass of Exception, since much code catches those and continues."""

    def __init__(self, where: str = "", resumes: bool = True) -> None:
        next_step = "goes on from there" if where and resumes else "goes on with what is missing"
        super().__init__(f"stopped by SIGTERM{where and ' '}{where}; the same command {next_step}")


@dataclass
class _State:
    wanted: bool = False  # whether the signal has come
    deferred: bool = False


_now = _State()


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Within the block SIGTERM raises `Stopped`, once. No effect outside the main thread: others get no signals."""
    global _now
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _now = _State()
    previous_handler = signal.signal(signal.SIGTERM, _come)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


def check() -> None:
    """Raises `Stopped` if the signal has come."""
    if _now.wanted:
        raise Stopped


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Makes the signal wait until the end of the block. An error in the block comes first."""
    was_deferred, _now.deferred = _now.deferred, True
    try:
        yield
    finally:
        _now.deferred = was_deferred
    if not was_deferred:
        check()


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """For use inside `deferred`: within this block the signal does not wait."""
    was_deferred, _now.deferred = _now.deferred, False
    try:
        check()
        yield
    finally:
        _now.deferred = was_deferred


def _come(*_: Any) -> None:
    is_first, _now.wanted = not _now.wanted, True
    if is_first and not _now.deferred:
        raise Stopped
