"""SIGTERM, by which schedulers tell of a time limit, a pre-emption or `scancel`: what a training has done is saved; it ends.

Anywhere but in a training the process ends at once: files are whole or absent, and locks die with it. A training defers the
signal while its state changes. It lets the signal interrupt the local training of clients, which takes most of the time; then
the state before that round is saved.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

EXIT_CODE = 128 + signal.SIGTERM  # as a shell tells of it


class Stopped(BaseException):
    """The process has been asked to end. Not an Exception, which much code catches and survives."""

    def __init__(self, where: str = "", resumes: bool = True) -> None:
        then = "goes on from there" if where and resumes else "goes on with what is missing"
        super().__init__(f"stopped by SIGTERM{where and ' '}{where}; the same command {then}")


@dataclass
class _State:
    wanted: bool = False  # whether the signal has come
    deferred: bool = False


_now = _State()


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """In the block SIGTERM raises `Stopped`, once. Without effect in another thread than the first, which gets no signals."""
    global _now
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _now = _State()
    before = signal.signal(signal.SIGTERM, _come)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check() -> None:
    """Raises `Stopped` where the signal has come."""
    if _now.wanted:
        raise Stopped


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """The signal waits until the end of the block; an error in the block comes before it."""
    before, _now.deferred = _now.deferred, True
    try:
        yield
    finally:
        _now.deferred = before
    if not before:
        check()


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """Inside `deferred`: here the signal does not wait."""
    before, _now.deferred = _now.deferred, False
    try:
        check()
        yield
    finally:
        _now.deferred = before


def _come(*_: Any) -> None:
    first, _now.wanted = not _now.wanted, True
    if first and not _now.deferred:
        raise Stopped
