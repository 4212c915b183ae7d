"""Bytes from an address or a local file to a file on disk, tried again where that may help, resumed where it broke off.

What has arrived of `<path>` is described by `<path>.json`: the address, its length and the validator (a strong ETag, else
Last-Modified) that the server gave. With `If-Range` a server sends the rest only of the same version, else the whole anew
(RFC 9110, section 13.1.5). Without a validator the parts may not fit together: the checksum, which the caller knows, decides.
"""

import http
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any, BinaryIO

from fedrepro.data.progress import Progress
from fedrepro.errors import UserError
from fedrepro.files import read_json, write_json, writing

BACK_OFF_S = (1.0, 3.0, 9.0)  # pauses before the second, third and fourth attempt
TIMEOUT_S = 30.0  # for connecting, and between two blocks
_BLOCK = 1 << 18
_PASSING_STATUS = {408, 425, 429, 500, 502, 503, 504}


class BadSource(Exception):
    """This source will not do; the next one may. The message becomes part of the user's line."""


class Absent(BadSource):
    """The source has no such file: nothing to warn about when the next one has it."""


class _Passing(Exception):
    """Worth another attempt at the same source."""


def is_url(text: str) -> bool:
    """Whether `text` is an http(s) address; else it is a local path."""
    return text.startswith(("http://", "https://"))


def transfer(source: str, path: Path, verifiable: bool = True) -> bool:
    """Brings all of `source` to `path`. True when part of it was there before, from an earlier attempt or process.

    verifiable: whether the caller can tell that two parts are of one version; if not, a download goes on only where the server
    itself vouches for that. Raises BadSource, and keeps what has arrived for a later call; UserError when `path` cannot be
    written.
    """
    try:
        return _transfer(source, path, verifiable)
    except UserError:
        discard(path)  # what it occupies may be what the disk lacks
        raise


def discard(path: Path) -> None:
    """Forgets what has arrived at `path`."""
    path.unlink(missing_ok=True)
    _state_path(path).unlink(missing_ok=True)


def _transfer(source: str, path: Path, verifiable: bool) -> bool:
    if not is_url(source):
        _copy(source, path)
        return False
    problem = None
    for pause_s in (0.0, *BACK_OFF_S):
        time.sleep(pause_s)
        try:
            return _receive(source, path, verifiable)
        except _Passing as error:
            problem = error
    kept = "; what arrived is kept, and the same command goes on from there" if _arrived(source, path, verifiable)[0] else ""
    raise BadSource(f"{problem} ({1 + len(BACK_OFF_S)} attempts{kept})") from problem


def _copy(source: str, path: Path) -> None:
    with _open_file(Path(source)) as stream:
        _state_path(path).unlink(missing_ok=True)  # it would describe another file
        try:
            _pump(source, stream, path, 0, os.fstat(stream.fileno()).st_size)
        except _Passing as error:
            raise BadSource(str(error)) from error


def _open_file(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise Absent("no such file") from error
    except OSError as error:
        raise BadSource(f"cannot be read ({error.strerror})") from error


def _receive(source: str, path: Path, verifiable: bool) -> bool:
    offset, state = _arrived(source, path, verifiable)
    if offset and offset == state["total_bytes"]:  # killed between the last byte and the checksum
        return True
    with _open_address(source, path, offset, state["validator"]) as response:
        start, total_bytes = _extent(response, path, offset, state["total_bytes"])
        if not start:
            with writing(path):
                path.open("wb").close()  # emptied before it is described anew
            write_json(_state_path(path), {"source": source, "validator": _validator(response), "total_bytes": total_bytes})
        _pump(source, response, path, start, total_bytes)
    return start > 0


def _pump(source: str, stream: IO[bytes], path: Path, start: int, total_bytes: int | None) -> None:
    """Appends `stream` to the `start` bytes at `path`."""
    progress, arrived = Progress(source, total_bytes, there=start), start
    with writing(path), path.open("ab" if start else "wb") as out:
        try:
            while block := _read(stream, arrived):
                out.write(block)
                arrived += len(block)
                progress.advance(len(block))
            if total_bytes is not None and arrived != total_bytes:
                raise _Passing(f"truncated: {arrived} of {total_bytes} bytes arrived")
        except _Passing:
            progress.clear()
            raise
    progress.done()


def _read(stream: IO[bytes], arrived: int) -> bytes:
    try:
        return stream.read(_BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _Passing(f"broke off after {arrived} bytes ({error})") from error


def _open_address(source: str, path: Path, offset: int, validator: str | None) -> http.client.HTTPResponse:
    headers = {"User-Agent": "fedrepro"}
    if offset:
        headers |= {"Range": f"bytes={offset}-"} | ({"If-Range": validator} if validator else {})
    try:
        return urllib.request.urlopen(urllib.request.Request(source, headers=headers), timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and offset:
            discard(path)  # the file has become shorter: from the start
            raise _Passing(f"HTTP {error.code} {error.reason}") from error
        kind = _Passing if error.code in _PASSING_STATUS else Absent if error.code in (404, 410) else BadSource
        raise kind(f"HTTP {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Passing(str(getattr(error, "reason", error)) or type(error).__name__) from error


def _extent(response: http.client.HTTPResponse, path: Path, offset: int, known_bytes: int | None) -> tuple[int, int | None]:
    """(where the response's first byte belongs, length of the whole file if known)."""
    if response.status != http.HTTPStatus.PARTIAL_CONTENT:  # no support for ranges, or another version: the whole file
        return 0, response.length
    match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", response.headers.get("Content-Range", ""))
    total_bytes = int(match[3]) if match and match[3] != "*" else None
    if not match or int(match[1]) != offset or (known_bytes and total_bytes and total_bytes != known_bytes):
        discard(path)
        raise _Passing("the server sent another part than asked for, or the file changed")
    return offset, total_bytes or known_bytes


def _validator(response: http.client.HTTPResponse) -> str | None:
    """What If-Range may carry: a strong ETag, else the date of the last change."""
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else response.headers.get("Last-Modified")


def _arrived(source: str, path: Path, verifiable: bool) -> tuple[int, dict[str, Any]]:
    """(bytes of `source` at `path`, what its server said of the file); 0 where nothing usable is there."""
    nothing = 0, {"validator": None, "total_bytes": None}
    try:
        state = read_json(_state_path(path))
        ours = state["source"] == source and "total_bytes" in state and (state["validator"] is not None or verifiable)
        return (path.stat().st_size, state) if ours else nothing
    except (UserError, OSError, TypeError, KeyError):
        return nothing


def _state_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
