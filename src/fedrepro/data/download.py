"""Published files, fetched once and verified: from a mirror if there is one, else from the registry's addresses.

A file passes through `<target>.download` (as it arrives) and `<target>.partial` (unpacked), and gets its name only when its
checksum is right; so a file under its own name is good. Its sha256 is recorded in `data/raw/<dataset>/sha256.json` at the first
good download and holds ever after, also against a source that later serves something else.
"""

import contextlib
import gzip
import hashlib
import http.client
import os
import shutil
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Self

from fedrepro.data.progress import Progress
from fedrepro.errors import UserError
from fedrepro.files import lock, read_json, sha256_file, write_json, writing

if TYPE_CHECKING:
    from fedrepro.data.registry import SourceFile

RAW = Path("data/raw")
LOCKS = Path("data/.locks")  # not among the raw files, whose folder is versioned by content
RECORD = "sha256.json"
MIRROR_VARIABLE = "FEDREPRO_MIRROR"
BACK_OFF_S = (1.0, 3.0, 9.0)  # pauses before the second, third and fourth attempt
TIMEOUT_S = 30.0  # for connecting, and between two blocks
_BLOCK = 1 << 18
_PASSING_STATUS = {408, 425, 429, 500, 502, 503, 504}


class _BadSource(Exception):
    """This source will not do; the next one may. The message becomes part of the user's line."""


class _Absent(_BadSource):
    """The source has no such file: nothing to warn about when the next one has it."""


class _Passing(Exception):
    """Worth another attempt at the same source."""


class Fetcher:
    """Fetches the files of one data set into `root/data/raw/<dataset>`, which it locks while it is open (`with`)."""

    def __init__(self, dataset: str, urls: Sequence[str], root: Path, mirror: str | None = None) -> None:
        self.dataset, self.folder = dataset, Path(root) / RAW / dataset
        self._lock = Path(root) / LOCKS / f"{dataset}.lock"
        self._urls = urls
        self._mirror = mirror or os.environ.get(MIRROR_VARIABLE) or None
        self._stack = contextlib.ExitStack()
        if self._mirror and not _is_url(self._mirror) and not Path(self._mirror).expanduser().is_dir():
            advice = f"give a folder or an http(s) address, or unset {MIRROR_VARIABLE}"
            raise UserError(f"mirror {self._mirror!r}: no such folder; {advice}")

    def __enter__(self) -> Self:
        # Two shapes of one data set may be prepared at the same time; the second waits and then finds the files.
        self._stack.enter_context(lock(self._lock, busy=self._wait))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def fetch(self, file: "SourceFile", target: str, unpack: bool) -> str:
        """Puts the (gunzipped, if `unpack`) content of `file` at `folder/target`; returns its hex sha256.

        A file that is there is verified and kept. UserError in one line, naming the file and every source tried.
        """
        path = self.folder / target
        if path.exists():
            return self._verify_present(file, path, target, unpack)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        refusals: list[tuple[str, _BadSource]] = []
        for source in self._sources(file.name):
            try:
                sha256 = self._fetch_from(source, file, path, target, unpack)
            except _BadSource as reason:
                refusals.append((source, reason))
                continue
            for refused, reason in refusals:
                if not isinstance(reason, _Absent):
                    print(f"{self.dataset}: {refused}: {reason}; took {source} instead", file=sys.stderr)
            return sha256
        tried = "; ".join(f"{source}: {reason}" for source, reason in refusals) or "no source is known"
        advice = f"check the connection, or put {file.name} in a folder and set {MIRROR_VARIABLE} to that folder"
        raise UserError(f"{self.dataset}: cannot get {file.name}: {tried}; {advice}")

    def _sources(self, name: str) -> Iterator[str]:
        if self._mirror:
            base = self._mirror if _is_url(self._mirror) else str(Path(self._mirror).expanduser())
            yield f"{base.rstrip('/')}/{self.dataset}/{name}"
            yield f"{base.rstrip('/')}/{name}"
        yield from (f"{url}{name}" for url in self._urls)

    def _fetch_from(self, source: str, file: "SourceFile", path: Path, target: str, unpack: bool) -> str:
        arriving, partial = (path.with_name(f"{path.name}.{ending}") for ending in ("download", "partial"))
        try:
            _attempt(source, arriving)
            with writing(partial):
                _unpack(arriving, partial) if unpack else arriving.replace(partial)
            found, expected, what = _checksums(file, arriving, partial, unpack)
            if found != expected:
                raise _BadSource(f"corrupt, or not the published file (md5 of {what} {found}, expected {expected})")
            sha256 = sha256_file(partial)
            self._record(target, sha256)
            with writing(path):
                partial.replace(path)
            return sha256
        finally:  # a resumed download would keep `arriving` when the connection broke, and only then
            arriving.unlink(missing_ok=True)
            partial.unlink(missing_ok=True)

    def _verify_present(self, file: "SourceFile", path: Path, target: str, unpack: bool) -> str:
        sha256, recorded = sha256_file(path), self._records().get(target)
        if recorded is None:  # put there by hand
            expected = file.unpacked_md5 if unpack else file.md5
            if expected is None or _md5(path) != expected:
                raise UserError(f"{path}: not fetched by fedrepro and not verifiable; delete it and run the same command again")
            self._record(target, sha256)
        elif recorded != sha256:
            raise UserError(f"{path}: changed since it was downloaded; delete it and run the same command again")
        return sha256

    def _records(self) -> dict[str, str]:
        path = self.folder / RECORD
        return read_json(path) if path.exists() else {}

    def _record(self, target: str, sha256: str) -> None:
        records = self._records()
        if records.get(target, sha256) != sha256:
            raise _BadSource(f"not what was first downloaded ({self.folder / RECORD}; delete that file to start afresh)")
        if target not in records:
            write_json(self.folder / RECORD, {**records, target: sha256})

    def _wait(self, holder: str) -> None:
        print(f"{self.dataset}: process {holder} is fetching this data set; waiting for it", file=sys.stderr)


def _attempt(source: str, arriving: Path) -> None:
    """Copies `source` to `arriving`, trying again after errors that may pass."""
    problem = None
    for pause_s in (0.0, *BACK_OFF_S):
        time.sleep(pause_s)
        try:
            return _copy(source, arriving)
        except _Passing as error:
            problem = error
    raise _BadSource(f"{problem} ({1 + len(BACK_OFF_S)} attempts)") from problem


def _copy(source: str, arriving: Path) -> None:
    with _open(source) as (stream, total_bytes), writing(arriving), arriving.open("wb") as out:
        progress = Progress(source, total_bytes)
        received = 0
        try:
            while block := _read(stream, received):
                out.write(block)
                received += len(block)
                progress.advance(len(block))
            if total_bytes is not None and received != total_bytes:
                raise _Passing(f"truncated: {received} of {total_bytes} bytes arrived")
        except _Passing:
            progress.clear()
            raise
        progress.done()


def _read(stream: IO[bytes], received: int) -> bytes:
    try:
        return stream.read(_BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _Passing(f"broke off after {received} bytes ({error})") from error


@contextlib.contextmanager
def _open(source: str) -> Iterator[tuple[IO[bytes], int | None]]:
    """A stream and its length in bytes, if that is known."""
    if _is_url(source):
        with _open_address(source) as response:
            yield response, response.length  # http.client's, from Content-Length
    else:
        with _open_file(Path(source)) as stream:
            yield stream, os.fstat(stream.fileno()).st_size


def _open_file(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise _Absent("no such file") from error
    except OSError as error:
        raise _BadSource(f"cannot be read ({error.strerror})") from error


def _open_address(address: str) -> http.client.HTTPResponse:
    request = urllib.request.Request(address, headers={"User-Agent": "fedrepro"})
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        kind = _Passing if error.code in _PASSING_STATUS else _Absent if error.code in (404, 410) else _BadSource
        raise kind(f"HTTP {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Passing(str(getattr(error, "reason", error)) or type(error).__name__) from error


def _unpack(packed: Path, unpacked: Path) -> None:
    try:
        with gzip.open(packed) as stream, unpacked.open("wb") as out:
            shutil.copyfileobj(stream, out, _BLOCK)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _BadSource(f"truncated, or not a gzip file ({error})") from error


def _checksums(file: "SourceFile", packed: Path, unpacked: Path, unpack: bool) -> tuple[str, str, str]:
    """(found, expected, what of): of the content where it is known, so that a mirror may pack it anew."""
    if unpack and file.unpacked_md5:
        return _md5(unpacked), file.unpacked_md5, "its content"
    return _md5(packed if unpack else unpacked), str(file.md5), "the file"


def _md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))
