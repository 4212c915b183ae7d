"""Downloads an address, or copies a local file, to a file on disk, with a progress bar and repeated attempts."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from fedrepro.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from requests import RequestException

BACK_OFF_S = (1.0, 3.0, 9.0)  # pauses before the second, third and fourth attempt
TIMEOUT_S = 30.0  # for connecting, and between two blocks
_BLOCK = 1 << 18
_PASSING_STATUS = {408, 425, 429, 500, 502, 503, 504}


class BadSource(Exception):
    """This source failed; the next one may work. The message becomes part of the UserError."""


class Absent(BadSource):
    """The source has no such file: no warning if the next source has it."""


class _Passing(Exception):
    """A temporary failure: the same source is tried again."""


def is_url(text: str) -> bool:
    """Whether `text` is an http(s) address; else it is a local path."""
    return text.startswith(("http://", "https://"))


def transfer(source: str, path: Path) -> None:
    """Copies all of `source` to `path`. BadSource if that fails; UserError when `path` cannot be written."""
    if not is_url(source):
        with _opened(Path(source)) as stream:
            return _save(source, iter(lambda: stream.read(_BLOCK), b""), path, os.fstat(stream.fileno()).st_size)
    problem = None
    for pause_s in (0.0, *BACK_OFF_S):
        time.sleep(pause_s)
        try:
            return _receive(source, path)
        except _Passing as error:
            problem = error
    raise BadSource(f"{problem} ({1 + len(BACK_OFF_S)} attempts)") from problem


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise Absent("no such file") from error
    except OSError as error:
        raise BadSource(f"cannot be read ({error.strerror})") from error


def _receive(source: str, path: Path) -> None:
    import requests  # importing it takes 0.2 s, which only downloads need
    from urllib3.exceptions import HTTPError

    # Neither server nor library may repack the file: its checksum is that of the bytes as published.
    headers = {"User-Agent": "fedrepro", "Accept-Encoding": "identity"}
    try:
        with requests.get(source, headers=headers, stream=True, timeout=TIMEOUT_S) as response:
            if not response.ok:
                status = response.status_code
                kind = _Passing if status in _PASSING_STATUS else Absent if status in (404, 410) else BadSource
                raise kind(f"HTTP {status} {response.reason}")
            length = response.headers.get("Content-Length", "")
            total_bytes = int(length) if length.isdecimal() else None
            _save(source, response.raw.stream(_BLOCK, decode_content=False), path, total_bytes)
    except HTTPError as error:
        if not path.exists():  # the address, which requests passes on unchecked
            raise BadSource(str(error)) from error
        raise _Passing(f"truncated: broke off after {path.stat().st_size} bytes") from error
    except requests.RequestException as error:
        raise _Passing(_why(error)) from error


def _save(source: str, blocks: "Iterable[bytes]", path: Path, total_bytes: int | None) -> None:
    """Writes `blocks` to `path`. Shows rate and time left on a terminal, otherwise one line at the end."""
    from tqdm import tqdm

    units = {"unit": "B", "unit_scale": True, "leave": sys.stderr.isatty()}
    with writing(path), tqdm(total=total_bytes, desc=source, disable=None, **units) as bar:
        begun = time.monotonic()
        try:
            with path.open("wb") as out:
                for block in blocks:
                    out.write(block)
                    bar.update(len(block))
        except OSError:
            path.unlink(missing_ok=True)  # the partial file may be what fills the disk
            raise
    if bar.disable:
        size, seconds = path.stat().st_size, max(time.monotonic() - begun, 1e-3)
        print(f"{source}: {tqdm.format_sizeof(size, 'B')}, {tqdm.format_sizeof(size / seconds, 'B/s')}", file=sys.stderr)


def _why(error: "RequestException") -> str:
    """`[Errno 111] Connection refused`, without the text that requests and urllib3 put around it."""
    reason = getattr(error.args[0] if error.args else None, "reason", error)
    return str(reason).rpartition(">: ")[2] or type(error).__name__
