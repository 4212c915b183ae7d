"""Progress of one download on stderr: a moving line on a terminal, a single line in a log file."""

import sys
import time
from typing import TextIO


class Progress:
    """`advance` after every block, `done` at the end.

    total_bytes: of the whole file, None when the source does not say. there: bytes from before, counted but not in the rate.
    """

    def __init__(self, label: str, total_bytes: int | None, out: TextIO | None = None, there: int = 0) -> None:
        self._label, self._total_bytes, self._out = label, total_bytes, out or sys.stderr
        self._live = self._out.isatty()
        self._bytes, self._there, self._start, self._shown = there, there, time.monotonic(), 0.0

    def advance(self, count: int) -> None:
        """Counts `count` more bytes; redraws at most ten times a second."""
        self._bytes += count
        now = time.monotonic()
        if self._live and now - self._shown >= 0.1:
            self._shown = now
            self._out.write(f"\r{self._line(now)}\x1b[K")
            self._out.flush()

    def done(self) -> None:
        """The last line stays."""
        self._out.write(f"\r{self._line(time.monotonic())}\x1b[K\n" if self._live else f"{self._line(time.monotonic())}\n")
        self._out.flush()

    def clear(self) -> None:
        """Leaves nothing of the moving line: the download failed, and what follows says why."""
        if self._live:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def _line(self, now: float) -> str:
        seconds = max(now - self._start, 1e-3)
        rate = (self._bytes - self._there) / seconds
        if not self._total_bytes:
            return f"{self._label}: {readable(self._bytes)}, {readable(rate)}/s"
        left_s = (self._total_bytes - self._bytes) / max(rate, 1.0)
        ending = f"{left_s:.0f} s left" if self._bytes < self._total_bytes else f"{seconds:.1f} s"
        return f"{self._label}: {readable(self._bytes)} of {readable(self._total_bytes)}, {readable(rate)}/s, {ending}"


def readable(count: float) -> str:
    """9912422 -> "9.9 MB" (powers of 1000)."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
