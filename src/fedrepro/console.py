"""Writes lines to the terminal and the log file. A lost terminal must not stop a training, so lines that cannot be written are
dropped."""

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from fedrepro.files import writing

_log: Path | None = None


def log_to(path: Path | None) -> None:
    """From now on every line also goes into the file `path`, which starts empty."""
    global _log
    if path is not None:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    _log = path


def say(line: str) -> None:
    """Writes one line on stderr and in the log file."""
    _write(sys.stderr, line)
    note(line)


def show(line: str) -> None:
    """Writes one line of a result, on stdout and in the log file."""
    _write(sys.stdout, line)
    note(line)


def note(line: str) -> None:
    """Writes one line to the log file only."""
    if _log is not None:
        _append(_log, line)


def fail(line: str) -> None:
    """`say`, and also leave the line for the workflow, which repeats it as its last one ($FEDREPRO_ERRORS names the file)."""
    say(line)
    errors = os.environ.get("FEDREPRO_ERRORS")
    if errors:
        _append(Path(errors), line)


def duration(seconds: float) -> str:
    """`12.3 s`, `4 min 05 s`, `2 h 03 min`, `1,234 h`."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    if seconds >= 360_000:
        return f"{seconds / 3600:,.0f} h"
    minutes, remainder = divmod(round(seconds), 60)
    return f"{minutes} min {remainder:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def some(number: int, what: str) -> str:
    """`1 table`, `2 tables`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def aligned(rows: list[tuple[str, ...]], left: Iterable[int] = (0,)) -> list[str]:
    """Aligns the columns in `left` to the left and all others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    sides = [str.ljust if i in left else str.rjust for i in range(len(widths))]
    return ["  ".join(side(text, width) for side, text, width in zip(sides, row, widths, strict=True)).rstrip() for row in rows]


def _write(stream: TextIO | None, line: str) -> None:
    """Writes the line and its newline in one call, since trainings share a terminal. On an unbuffered stream `print` needs
    two."""
    with contextlib.suppress(OSError, ValueError):
        if stream is not None:  # a process may be started without this stream
            stream.write(line + "\n")
            stream.flush()


def _append(path: Path, line: str) -> None:
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as stream:
            stream.write(line + "\n")
