"""Files are whole or absent. Locks end with their holder. A full or read-only folder is one line for the user."""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedrepro.errors import UserError
from fedrepro.files import (
    again,
    canonical_hash,
    fresh_folder,
    link,
    lock,
    read_json,
    sha256_file,
    write_atomic,
    write_json,
    write_text,
    writing,
)
from tests.helpers.one_line import one_line


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    """The writer fails half-way, and readers still see the old content."""
    path = write_text(tmp_path / "a.txt", "old")

    def half(temporary: Path) -> None:
        temporary.write_text("ne")
        raise RuntimeError("died")

    with pytest.raises(RuntimeError):
        write_atomic(path, half)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_the_writer_never_sees_the_final_name(tmp_path: Path) -> None:
    """The file is absent while it is written, and then complete. Folders are created, and the mode follows the umask."""
    path = tmp_path / "deep" / "a.txt"
    seen = []
    write_atomic(path, lambda temporary: (seen.append(path.exists()), temporary.write_text("new")))
    assert seen == [False]
    assert path.read_text() == "new"
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    assert names(path.parent) == ["a.txt"]


def test_equal_values_are_equal_files_and_hashes(tmp_path: Path) -> None:
    """The order of keys does not matter, but every value does. The hash must never change, since names of artifacts contain
    it."""
    a, b = {"x": 1, "y": [1, 2.5]}, {"y": [1, 2.5], "x": 1}
    assert sha256_file(write_json(tmp_path / "a", a)) == sha256_file(write_json(tmp_path / "b", b))
    assert canonical_hash(a) == canonical_hash(b)
    assert canonical_hash(a) != canonical_hash({"x": 1, "y": [2.5, 1]})
    assert len(canonical_hash(a, 6)) == 6
    # printf '{"x":1,"y":[1,2.5]}' | sha256sum
    assert canonical_hash(a, 16) == "f2095e97c6c4c993"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1, {"x": float("-inf")}]])
def test_json_that_others_cannot_read_is_never_written(value: object, tmp_path: Path) -> None:
    """NaN and infinity are not JSON."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", value)
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_hash(value)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "no such file"), (b"{", "not valid JSON"), (b"\xff\xfe", "not valid JSON"), (b"[NaN]", "NaN in it")],
)
def test_reading_what_is_missing_or_damaged_names_the_file(content: bytes | None, says: str, tmp_path: Path) -> None:
    """One line has the path and the problem."""
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with one_line(says) as caught:
        read_json(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("papers/fedgh/spread.json", "name"),
        ("/home/results/repro/papers/fedgh/spread.json", "name"),
        ("/home/papers/repro/results/runs/a/seed8.json", "delete"),
        ("/home/papers/repro/data/partitions/a/seed8.json", "delete"),
    ],
)
def test_only_what_a_command_wrote_is_to_be_deleted(path: str, advice: str) -> None:
    """This does not depend on the folder that the project is in."""
    assert again(path).startswith(advice)


def test_fresh_folder_replaces_as_a_whole(tmp_path: Path) -> None:
    """The new folder replaces the old one. A failure changes nothing."""
    folder = tmp_path / "seed8"
    for round in range(2):
        with fresh_folder(folder) as new:
            (new / f"{round}.txt").write_text("x")
            assert not (folder / f"{round}.txt").exists()
        assert names(folder) == [f"{round}.txt"]
    os.umask(mask := os.umask(0))
    assert folder.stat().st_mode & 0o777 == 0o777 & ~mask, "as any new folder"

    def fail_half_way() -> None:
        with fresh_folder(folder) as new:
            (new / "half.txt").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert names(folder) == ["1.txt"]
    assert names(tmp_path) == ["seed8"]


def test_a_temporary_folder_of_a_killed_process_is_deleted_after_a_day(tmp_path: Path) -> None:
    """A kill leaves a whole data set on the disk. What another process may be writing stays, and so does an old folder that was
    moved aside."""
    for name, hours in ((".arrays.killed", 25), (".arrays.busy", 23), (".arrays.before", 25), (".other.killed", 25)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "images.npy").write_text("x")
        os.utime(tmp_path / name, (when := time.time() - hours * 3600, when))
    with fresh_folder(tmp_path / "arrays"):
        assert names(tmp_path / ".arrays.before") == ["images.npy"]
    assert {".arrays.busy", ".other.killed", "arrays"} <= {*names(tmp_path)}
    assert ".arrays.killed" not in names(tmp_path)


RACE = """
import sys
import time
from pathlib import Path
from fedrepro.files import fresh_folder
for _ in range(200):
    with fresh_folder(Path(sys.argv[1])) as new:
        (new / "a.txt").write_text("whole")
"""


def test_processes_that_write_the_same_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Two commands may prepare a data set at the same time. Both succeed, and one whole folder is left."""
    command = [sys.executable, "-c", RACE, str(tmp_path / "arrays")]
    for process in [subprocess.Popen(command) for _ in range(3)]:
        assert process.wait() == 0
    assert (tmp_path / "arrays" / "a.txt").read_text() == "whole"
    assert names(tmp_path) == ["arrays"]


def test_other_errors_keep_their_traceback(tmp_path: Path) -> None:
    """Only an error that the user can fix becomes a UserError."""
    with pytest.raises(IsADirectoryError), writing(tmp_path):
        tmp_path.write_text("x")


HOLD = """
import sys, time
from pathlib import Path
from fedrepro.files import lock
with lock(Path(sys.argv[1]), busy=lambda pid: None):
    print("held", flush=True)
    time.sleep(60)
"""


@contextlib.contextmanager
def holding(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Runs a process that holds the lock on `path`."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()


def test_a_lock_is_freed_by_kill_9(tmp_path: Path) -> None:
    """While a real process holds the lock, `busy` gets its process id and machine. After SIGKILL the lock is free at once."""
    path = tmp_path / "run.lock"
    with holding(path) as holder:

        def give_up(pid: str) -> None:
            raise UserError(f"held by {pid}")

        with pytest.raises(UserError, match=f"^held by {holder.pid} on {socket.gethostname()}$"), lock(path, busy=give_up):
            pytest.fail("two holders")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with lock(path, busy=lambda _: pytest.fail("still held")):
            assert path.read_text() == f"{os.getpid()} on {socket.gethostname()}"


def test_a_lock_can_be_waited_for(tmp_path: Path) -> None:
    """If `busy` returns instead of raising, the lock is taken once the holder is gone."""
    path = tmp_path / "run.lock"
    with holding(path) as holder, lock(path, busy=lambda _: holder.kill()):
        assert holder.wait() == -signal.SIGKILL


def refuse_locks(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes flock fail with this error, as NFS without its lock service and other file systems do."""

    def flock(*_) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.parametrize("answer", ["ENOLCK", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"])
def test_a_file_system_without_locks_is_one_line(answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line has the problem and what to do."""
    refuse_locks(getattr(errno, answer), monkeypatch)
    path = tmp_path / "run.lock"
    with pytest.raises(UserError) as caught, lock(path, busy=print):
        pytest.fail("held")
    says = str(caught.value)
    assert says.startswith(f"{path}: this file system has no locks (")
    assert "put the project on one that has them" in says
    assert "\n" not in says


LOCKLESS = """
import errno, fcntl
def flock(*_):
    raise OSError(errno.ENOLCK, "no locks")
fcntl.flock = flock
from fedrepro.workflow import session
session.claim()
"""


def test_a_workflow_without_locks_ends_with_one_line(tmp_path: Path) -> None:
    """The exit code is 2."""
    done = subprocess.run([sys.executable, "-c", LOCKLESS], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("fedrepro: error: .snakemake/fedrepro.lock: this file system has no locks (")
    assert "put the project on one that has them" in done.stderr
    assert done.stderr.count("\n") == 1
    assert names(tmp_path / ".snakemake") == ["fedrepro.lock"]


def test_other_errors_of_locks_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an error that the user can fix becomes a line."""
    refuse_locks(errno.EIO, monkeypatch)
    with pytest.raises(OSError, match=r"^\[Errno 5\]"), lock(tmp_path / "run.lock", busy=print):
        pytest.fail("held")


# Runs in its own mount namespace: a tmpfs of 64 kB, or the same made read-only. Prints one line of JSON for each attempt.
def test_a_link_takes_the_place_of_what_is_there(tmp_path: Path) -> None:
    """The link replaces an existing link to the same file, and another file. Nothing else is left."""
    source, target = tmp_path / "model.pt", tmp_path / "store" / "model.pt"
    source.write_bytes(b"new")
    for _ in range(2):
        link(source, target)
        assert target.samefile(source)
    target.unlink()
    target.write_bytes(b"old")
    link(source, target)
    assert target.read_bytes() == b"new"
    assert [path.name for path in target.parent.iterdir()] == ["model.pt"]


def test_a_copy_that_fails_leaves_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that was there stays."""
    write_text(tmp_path / "a", "new")
    write_text(tmp_path / "store" / "a", "old")

    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    def break_off(source: Path, target: Path) -> None:
        target.write_text("n")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(shutil, "copy2", break_off)
    with pytest.raises(UserError, match="the disk is full"):
        link(tmp_path / "a", tmp_path / "store" / "a")
    assert names(tmp_path / "store") == ["a"]
    assert (tmp_path / "store" / "a").read_text() == "old"


SMALL_DISK = """
import json, sys
from pathlib import Path
import torch
from fedrepro.console import log_to
from fedrepro.engine import checkpoint, results
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.loop import Outcome
from fedrepro.errors import UserError
from fedrepro.files import lock, write_json
from fedrepro.methods.compose import compose
from fedrepro.models import initial
from fedrepro.tree import Tree

root = Path(sys.argv[1])
params = Tree.from_tensors({"w": torch.randn(100_000)})
state = compose("fedavg").init(params, Tree.from_tensors({}))
progress = Progress(1, [(0, "test_accuracy", 1.0)], 0.0, 1, "")
evidence = {"seed": 8, "environment": {}, "cost": {}}
attempts = {
    "json": lambda: write_json(root / "a.json", "x" * 100_000),
    "checkpoint": lambda: checkpoint.save(root / "a.pt", "key", state, {}, progress),
    "initial model": lambda: initial.create(initial.definition("lenet", (1, 28, 28), 10), 8, root),
    "results": lambda: results.write_seed(root, "run", evidence, Outcome(params, Tree.from_tensors({}), progress, "finished")),
}
if sys.argv[2] == "ro":
    attempts |= {"lock": lambda: lock(root / "a.lock", busy=print).__enter__(), "log": lambda: log_to(root / "a.log")}
for name, attempt in attempts.items():
    try:
        attempt()
        error = "no error"
    except BaseException as caught:
        error = f"{type(caught).__name__}: {caught}"
    print(json.dumps([name, error, sorted(p.name for p in root.rglob("*") if p.is_file())]))
"""


@pytest.mark.parametrize(("mode", "says"), [("rw", "the disk is full; free some space"), ("ro", "read-only")])
def test_a_full_or_read_only_disk_is_one_line(mode: str, says: str, tmp_path: Path) -> None:
    """For every kind of file that training writes, the line has the path, the reason and what to do. No partial file stays."""
    if shutil.which("unshare") is None:
        pytest.skip("no `unshare` to mount a small disk with")
    if os.geteuid() != 0:
        pytest.skip("not root: cannot mount a small disk in a namespace of its own")
    disk, script = tmp_path / "disk", tmp_path / "script.py"
    disk.mkdir()
    script.write_text(SMALL_DISK)
    remount = f"mount -o remount,ro {disk}" if mode == "ro" else "true"
    command = f"mount -t tmpfs -o size=64k tmpfs {disk} && {remount} && exec {sys.executable} {script} {disk} {mode}"
    done = subprocess.run(["unshare", "-m", "bash", "-c", command], capture_output=True, text=True, timeout=120)
    if done.stderr.startswith("unshare: ") or "mount" in done.stderr:
        pytest.skip(f"this machine does not let root mount: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    attempts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(attempts) == (4 if mode == "rw" else 6)
    for name, error, left in attempts:
        assert error.startswith("UserError: "), (name, error)
        assert says in error, (name, error)
        assert str(disk) in error, (name, error)
        assert "\n" not in error, (name, error)
        assert left == [], name
