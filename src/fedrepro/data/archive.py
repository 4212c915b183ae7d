"""Archives read in place: zip or tar, packed or not, told apart by their first bytes.

An archive with a name that would leave its folder (`/x`, `../x`), a link, a device or the same name twice is refused, though
nothing is ever written to where a member says.
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

from fedrepro.errors import UserError
from fedrepro.files import writing

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second: an empty one
_DAMAGED = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError,
    NotImplementedError, RuntimeError,  # zipfile: an unknown compression, a password
)  # fmt: skip


def members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the files whose name is `wanted`, in the archive's order; "./a/b" is called "a/b".

    UserError naming archive and member for a damaged or truncated archive, an unsafe name, or one that occurs twice.
    """
    seen, name = set(), ""
    try:
        for raw_name, regular, content in _zip(path) if _is_zip(path) else _tar(path):
            name = _safe(path, raw_name)
            if not regular:
                raise UserError(f"{path}: {name}: a link or a device, not a file; use an archive of plain files")
            if name in seen:
                raise UserError(f"{path}: {name}: occurs twice; use an archive with one file of each name")
            seen.add(name)
            if wanted(name):
                yield name, content()
    except _DAMAGED as error:
        what = " ".join(str(error).split()) or type(error).__name__
        where = f"{path}: {name}" if name else str(path)
        advice = f"delete {path.parent} and get it again from its source"
        raise UserError(f"{where}: damaged or truncated, or neither a zip nor a tar archive ({what}); {advice}") from error


def members_md5(path: Path, names: set[str]) -> dict[str, str]:
    """Hex MD5 of those of `names` that the archive holds. UserError as `members`."""
    return {
        name: hashlib.md5(content, usedforsecurity=False).hexdigest() for name, content in members(path, names.__contains__)
    }


@contextlib.contextmanager
def extracted(path: Path, targets: dict[str, str], folder: Path) -> Iterator[Path]:
    """`folder`, holding for the length of the block the members that `targets` names (member -> path in `folder`).

    A member called .gz whose target is not is gunzipped. What a killed process left in `folder` is removed first. UserError as
    `members`, and when the archive lacks one of them.
    """
    try:
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            missing = set(targets)
            for name, content in members(path, targets.__contains__):
                target = folder / targets[name]
                target.parent.mkdir(parents=True, exist_ok=True)
                packed = name.endswith(".gz") and not targets[name].endswith(".gz")
                target.write_bytes(_gunzip(path, name, content) if packed else content)
                missing.discard(name)
        if missing:
            raise UserError(f"{path}: has no member {min(missing)}; get it again from its source")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _gunzip(path: Path, name: str, content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path}: {name}: truncated, or not a gzip file ({error}); get it again from its source") from error


# Each yields (name as written, whether a regular file, a function that reads it); folders are passed over.


def _zip(path: Path) -> Iterator[tuple[str, bool, Callable[[], bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            kind = member.external_attr >> 28  # of a Unix file mode; 0 where the packer did not say
            if not member.is_dir():
                yield member.orig_filename, kind in (0, 8), lambda member=member: archive.read(member)


def _tar(path: Path) -> Iterator[tuple[str, bool, Callable[[], bytes]]]:
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.isdir():
                yield member.name, member.isreg(), lambda member=member: _read(archive, member)


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    content = stream.read() if stream else b""
    if len(content) != member.size:
        raise EOFError(f"{len(content)} of {member.size} bytes")
    return content


def _is_zip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) in _ZIP


def _safe(path: Path, name: str) -> str:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or not pure.parts:
        raise UserError(f"{path}: {name!r}: a name that leads out of the archive's folder; do not use this archive")
    return str(pure)
