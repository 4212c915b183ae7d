"""Files that are either whole or absent: atomic writes, checksums, locks, and errors in one line."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TextIO
from uuid import uuid4

from fedrepro.errors import UserError

_FULL_OR_FORBIDDEN = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the file system is read-only; mount it writable or choose another folder",
    errno.EACCES: "permission denied; make the folder writable",
    errno.EPERM: "not permitted; make the folder writable",
}
# Numbers without a point or an exponent sign, which PyYAML reads as text. At most two exponent digits: a hash may be 2039e827.
FLOAT = re.compile(r"[-+]?(\d{1,3}(\.\d*)?|\.\d+)[eE][-+]?\d{1,2}$")
# Errors of file systems without locks: NFS without its lock service, Lustre mounted without -o flock, and others.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_ABANDONED_S = 24 * 3600  # a temporary folder without a new file for so long is left of a killed process


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the error of a full, read-only or forbidden folder into a UserError that names `path` and says what to do."""
    try:
        yield
    except OSError as error:
        advice = _FULL_OR_FORBIDDEN.get(error.errno or 0)
        if advice is None:
            raise
        raise UserError(
            f"{path}: cannot write: {advice}, then run the same command again (nothing finished is lost)"
        ) from error


def write_atomic(path: Path, write: Callable[[Path], object]) -> Path:
    """Calls `write` on a temporary file beside `path`, flushes it to disk and renames it: readers see all of it or nothing."""
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid4().hex}{path.suffix}")
        try:
            write(temporary)
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    return path


def write_text(path: Path, text: str) -> Path:
    """Atomically writes UTF-8 text."""
    return write_atomic(path, lambda temporary: temporary.write_bytes(text.encode()))


def json_text(value: object, *, ascii: bool = True) -> str:
    """JSON with sorted keys, so that equal values are equal files. `ascii`: other characters are escaped."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=ascii, allow_nan=False) + "\n"


def write_json(path: Path, value: object) -> Path:
    """Atomically writes `json_text`."""
    return write_text(path, json_text(value))


def again(path: Path | str) -> str:
    """Advice for a broken file: delete it if a command wrote it, name another if a person did."""
    below = [part for part in Path(path).parts if part in ("papers", "results", "reports", "data")]  # the project's is the last
    by_a_person = Path(path).suffix != ".json" or below[-1:] == ["papers"]
    return "name a file that this command takes" if by_a_person else "delete it and run the same command again"


def read_json(path: Path) -> Any:
    """The parsed file. UserError when it is missing or is not JSON. NaN and infinity are not JSON."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} in it")

    try:
        return json.loads(Path(path).read_text(), parse_constant=refuse)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; run the step that makes it, or `dvc pull`") from error
    except ValueError as error:  # UnicodeDecodeError, too
        raise UserError(f"{path}: not valid JSON ({error}); {again(path)}") from error


def read_yaml(path: Path, missing: str = "") -> Any:
    """The parsed file, {} when it is empty. UserError when it is not YAML or does not exist; `missing` then says what to do."""
    import yaml

    try:
        return parse_yaml(Path(path).read_text()) or {}
    except FileNotFoundError as error:
        raise UserError("; ".join(filter(None, [f"{path}: no such file", missing]))) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        problem = " ".join(str(getattr(error, "problem", error)).split())
        raise UserError(f"{path}: not valid YAML{line}: {problem}") from error


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; of files and of the command line alike. yaml.YAMLError when it is not YAML."""
    import yaml

    with contextlib.suppress(yaml.YAMLError):
        return yaml.load(text, _loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # libyaml's is much faster
    return yaml.load(text, _loader(yaml.SafeLoader))  # this loader names the line of the error


@cache
def _loader(plain: Any) -> Any:
    """A YAML loader that refuses a mapping with the same key twice: the first value would be lost. `1e-3` is a number, as in
    YAML 1.2. `010`, `0x10` and `1:30` are refused: YAML 1.1 reads them in base 8, 16 and 60."""
    import yaml

    class Loader(plain):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                if isinstance(key, yaml.ScalarNode) and key.value in keys:
                    problem = f"the key {key.value!r} stands twice"
                    raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
                keys |= {key.value} if isinstance(key, yaml.ScalarNode) else set()
            return super().construct_mapping(node, deep)

        def whole_number(self, node: Any) -> int:
            if not re.fullmatch(r"[-+]?(0|[1-9][0-9_]*)", node.value):
                problem = f"{node.value}: write the number in decimal digits, without a leading zero; quote it if it is a word"
                raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
            return self.construct_yaml_int(node)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.whole_number)
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, [*"-+.0123456789"])
    return Loader


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def content_of(paths: Iterable[Path]) -> str:
    """A line with a hash of the names and contents of the files. Markers of finished jobs hold it."""
    return canonical_hash(sorted((path.name, sha256_file(path)) for path in map(Path, paths)), 16) + "\n"


def canonical_hash(value: object, length: int = 10) -> str:
    """The first `length` hex digits of the sha256 of canonical JSON: equal values, equal hash, on any machine."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def link(path: Path, target: Path) -> None:
    """Atomically replaces `target` by a hard link to `path`, or by a copy if they are on different disks."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    if target.exists() and target.samefile(path):  # a rename between two links to one file does nothing
        return
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        try:
            try:
                os.link(path, temporary)
            except OSError:
                shutil.copy2(path, temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def fresh_folder(path: Path) -> Iterator[Path]:
    """Yields a temporary folder. It replaces `path` at the end of the block, and is deleted if the block raises an error.

    The old folder is moved aside first, so a kill between the two steps loses neither folder, see `restore`. Temporary folders
    of killed processes are deleted after a day.
    """
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _delete_abandoned(path)
        temporary = path.with_name(f".{path.name}.{uuid4().hex}")
        temporary.mkdir()
        try:
            yield temporary
            _put(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _delete_abandoned(path: Path) -> None:
    for folder in set(path.parent.glob(f".{path.name}.*/")) - {_aside(path)}:
        with contextlib.suppress(FileNotFoundError):  # another process deletes it, too
            if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(folder, ignore_errors=True)


def _put(new: Path, path: Path) -> None:
    """Moves `new` to `path`. Tries again if another process creates or moves the folder at `path` between two steps."""
    aside, done = _aside(path), False
    while not done:
        try:
            if path.exists():
                shutil.rmtree(aside, ignore_errors=True)
                path.replace(aside)
            new.replace(path)
            done = True
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT) or not new.exists():
                raise
    shutil.rmtree(aside, ignore_errors=True)


def restore(path: Path) -> None:
    """Moves the old folder back after a kill between the two steps of `fresh_folder`."""
    if not path.exists() and _aside(path).exists():
        _aside(path).replace(path)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.before")


@contextlib.contextmanager
def lock(path: Path, *, busy: Callable[[str], None]) -> Iterator[None]:
    """Holds an exclusive lock on `path`, which the kernel frees when the process ends for any reason.

    `busy` is called with the holder, `123 on node7`, when another process has the lock: raise there to give up, return to wait.
    """
    with opened(path) as stream:
        if not try_lock(path, stream):
            busy(holder(stream))
            try_lock(path, stream, wait=True)
        sign(path, stream)
        yield


def opened(path: Path) -> TextIO:
    """Opens the file that a lock is taken on, and creates it if necessary."""
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+")


def try_lock(path: Path, stream: TextIO, wait: bool = False) -> bool:
    """Takes the lock on `stream`, which is held until the stream is closed. False if another process has it; `wait`: waits for
    it.

    UserError on a file system without locks. There is no substitute: a file with the holder's process id cannot distinguish a
    dead holder from a slow, suspended or remote one. Two processes that train the same run would delete each other's files.
    """
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise UserError(
            f"{path}: this file system has no locks ({error.strerror}); mount it with them (NFS: its lock service; Lustre: "
            "-o flock), or put the project on one that has them"
        ) from error
    return True


def holder(stream: TextIO) -> str:
    """The process that signed the lock file: `123 on node7`."""
    stream.seek(0)
    return stream.read().strip() or "unknown"


def sign(path: Path, stream: TextIO, doing: str = "") -> None:
    """Writes process id and host name into the lock file. The id alone would be ambiguous between machines."""
    with writing(path):
        stream.seek(0)
        stream.truncate()
        stream.write(f"{os.getpid()} on {socket.gethostname()}{doing}")
        stream.flush()
