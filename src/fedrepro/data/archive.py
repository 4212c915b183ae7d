"""Archives read in place: zip or tar, packed or not, told apart by their first bytes.

An archive with a name that would leave its folder (`/x`, `../x`), a link, a device or the same name twice is refused, although
no member is ever written to the path in its name.
"""

import contextlib
import gzip
import hashlib
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from fedrepro.errors import UserError
from fedrepro.files import writing

_CHUNK = 1 << 20  # bytes read at a time
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second: an empty one
_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError,
    NotImplementedError, RuntimeError,  # zipfile: an unknown compression, a password
    UnicodeDecodeError,  # zipfile: a name that is not UTF-8 although it says so
)  # fmt: skip


def members(path: Path, accepts: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yields (name, content) of the files whose name `accepts` admits, in the archive's order; "./a/b" is called "a/b".

    UserError naming archive and member for a damaged or truncated archive, an unsafe name, or one that occurs twice.
    """
    for name, stream in _streams(path, accepts):
        yield name, b"".join(_chunks(path, name, stream))


def members_md5(path: Path, names: set[str]) -> dict[str, str]:
    """Returns the hex MD5 of those `names` that the archive holds. UserError as `members`."""
    sums = {}
    for name, stream in _streams(path, names.__contains__):
        digest = hashlib.md5(usedforsecurity=False)
        for chunk in _chunks(path, name, stream):
            digest.update(chunk)
        sums[name] = digest.hexdigest()
    return sums


@contextlib.contextmanager
def extracted(path: Path, targets: dict[str, str], folder: Path) -> Iterator[Path]:
    """Yields `folder`, which during the block holds the members in `targets` (member -> path in `folder`).

    A member called .gz whose target is not is gunzipped. Members are copied a megabyte at a time, for federated EMNIST has two
    gigabytes. Files that a killed process left in `folder` are removed first. UserError as `members`, and when one of them is
    missing.
    """
    try:
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            missing = set(targets)
            for name, stream in _streams(path, targets.__contains__):
                target = folder / targets[name]
                target.parent.mkdir(parents=True, exist_ok=True)
                packed = name.endswith(".gz") and not targets[name].endswith(".gz")
                with target.open("wb") as file:
                    file.writelines(_gunzipped(path, name, stream) if packed else _chunks(path, name, stream))
                missing.discard(name)
        if missing:
            raise UserError(f"{path}: has no member {min(missing)}; get it again from its source")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _streams(path: Path, accepts: Callable[[str], bool]) -> Iterator[tuple[str, IO[bytes]]]:
    names, name = set(), ""
    try:
        for raw_name, regular, opened in _zip(path) if _is_zip(path) else _tar(path):
            name = _safe(path, raw_name)
            if not regular:
                raise UserError(f"{path}: {name}: a link or a device, not a file; use an archive of plain files")
            if name in names:
                raise UserError(f"{path}: {name}: occurs twice; use an archive with one file of each name")
            names.add(name)
            if accepts(name):
                with opened() as stream:
                    yield name, stream
    except _DAMAGED as error:
        raise _damage(path, name, error) from error


def _chunks(path: Path, name: str, stream: IO[bytes]) -> Iterator[bytes]:
    try:
        while chunk := stream.read(_CHUNK):
            yield chunk
    except _DAMAGED as error:
        raise _damage(path, name, error) from error


def _gunzipped(path: Path, name: str, stream: IO[bytes]) -> Iterator[bytes]:
    try:
        with gzip.open(stream) as unpacked:
            while chunk := unpacked.read(_CHUNK):
                yield chunk
    except _DAMAGED as error:
        raise UserError(f"{path}: {name}: truncated, or not a gzip file ({error}); get it again from its source") from error


def _damage(path: Path, name: str, error: Exception) -> UserError:
    problem = " ".join(str(error).split()) or type(error).__name__
    where = f"{path}: {name}" if name else str(path)
    advice = f"delete {path.parent} and get it again from its source"
    return UserError(f"{where}: damaged or truncated, or neither a zip nor a tar archive ({problem}); {advice}")


# Each yields (name as written, whether a regular file, a function that opens it); folders are passed over.


def _zip(path: Path) -> Iterator[tuple[str, bool, Callable[[], IO[bytes]]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            kind = member.external_attr >> 28  # of a Unix file mode; 0 where the packer did not say
            if not member.is_dir():
                yield member.orig_filename, kind in (0, 8), lambda member=member: archive.open(member)


def _tar(path: Path) -> Iterator[tuple[str, bool, Callable[[], IO[bytes]]]]:
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.isdir():
                yield member.name, member.isreg(), lambda member=member: _opened(archive, member)
        _require_end(archive)


def _require_end(archive: tarfile.TarFile) -> None:
    """ReadError for a damaged header or a truncated file, which tarfile takes for the end. Reading to the end checks a packed
    file."""
    stream = archive.fileobj
    assert stream is not None, "it was opened from a file"
    stream.seek(archive.offset)
    if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("ends without the mark of its end, or a header is damaged")
    while stream.read(_CHUNK):
        pass


def _opened(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    stream = archive.extractfile(member)
    assert stream is not None, "a regular file has content"
    return stream


def _is_zip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) in _ZIP


def _safe(path: Path, name: str) -> str:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or not pure.parts:
        raise UserError(f"{path}: {name!r}: a name that leads out of the archive's folder; do not use this archive")
    return str(pure)
