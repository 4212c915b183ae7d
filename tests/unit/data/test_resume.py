"""Downloads that broke off go on where they stopped, across attempts and processes; the checksum has the last word."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fedrepro.data.arrays import load_arrays
from fedrepro.data.prepare import prepare
from fedrepro.data.progress import Progress
from fedrepro.errors import UserError
from tests.helpers.published import image, tar
from tests.helpers.server import serving

from .test_download import Terminal

NAME = "own.tar"
SIDE = 320  # pixels of noise: one image is about 300 kB, more than what is read at a time


@pytest.fixture
def noise(published):
    """Four images of noise in an archive of 1.2 MB, to be had from `server` alone."""
    pixels = np.random.default_rng(0).integers(0, 256, (3, 3, SIDE, SIDE), dtype=np.uint8)
    made = {f"{split}/{label}/1.png": image(pixels[2 * (split == "test")]) for split in ("train", "test") for label in "ab"}
    published.put(NAME, tar(made, ""))
    with serving(published.folder) as server:
        published.server = server
        register(published)
        yield published


def register(published):
    content = (published.folder / NAME).read_bytes()
    entry = {"kind": "folders", "classes": 2, "class_names": ["a", "b"], "native_shape": [3, SIDE, SIDE]}
    published.register(**entry, urls=[published.server.url], files=[published.put(NAME, content)])


def get(published):
    return load_arrays(prepare("small", root=published.root))


def leftovers(published):
    return sorted(path.name for path in (published.root / "data/raw/small").iterdir())


WHOLE = ["own.tar", "sha256.json"]
PATIENCE_S = 240  # of a busy machine


@pytest.mark.parametrize("validator", ["etag", "date", "weak", None])
def test_goes_on_within_a_command(validator, noise):
    """Broken twice, the third request asks for the rest only; whatever the server says of the version."""
    server = noise.server
    server.validator = validator
    server.faults[NAME] = [("break", 300_000), ("break", 300_000)]
    get(noise)
    assert server.answers == [(200, None), (206, "bytes=300000-"), (206, "bytes=600000-")]
    assert leftovers(noise) == WHOLE


def test_goes_on_in_the_next_command(noise, capsys):
    """Every attempt broke: one line says that what arrived is kept; the next command needs the rest only."""
    server = noise.server
    server.faults[NAME] = [("break", 100_000)] * 3
    with pytest.raises(
        UserError, match=r"truncated: 300000 of \d+ bytes arrived \(3 attempts; what arrived is kept, and the same"
    ):
        get(noise)
    assert leftovers(noise) == ["own.tar.download", "own.tar.download.json"]
    server.answers.clear()
    capsys.readouterr()
    get(noise)
    assert server.answers == [(206, "bytes=300000-")]
    assert f"{server.url}{NAME}: 1.2 MB of 1.2 MB" in capsys.readouterr().err
    assert leftovers(noise) == WHOLE


def test_a_server_without_ranges_sends_all_again(noise):
    server = noise.server
    server.ranges = False
    server.faults[NAME] = [("break", 300_000)]
    get(noise)
    assert server.answers == [(200, None), (200, "bytes=300000-")]


@pytest.mark.parametrize("validator", ["etag", "date"])
def test_a_file_that_changed_comes_anew(validator, noise):
    """If-Range names the old version: the server sends all of the new one, whose checksum is right."""
    server = noise.server
    server.validator = validator
    server.faults[NAME] = [("break", 300_000)] * 3
    good = (noise.folder / NAME).read_bytes()
    (noise.folder / NAME).write_bytes(bytes(len(good) - 1) + b"\x07")
    with pytest.raises(UserError, match="what arrived is kept"):
        get(noise)
    (noise.folder / NAME).write_bytes(good)
    server.answers.clear()
    get(noise)
    assert [status for status, _ in server.answers] == [200]


def test_parts_that_do_not_fit_are_fetched_anew_once(noise):
    """Changed in between, same length, and the server says nothing of versions: the checksum notices, and all comes again."""
    server = noise.server
    server.validator = None
    good = (noise.folder / NAME).read_bytes()
    (noise.folder / NAME).write_bytes(bytes(len(good)))
    server.faults[NAME] = [("break", 300_000)] * 3
    with pytest.raises(UserError, match="what arrived is kept"):
        get(noise)
    (noise.folder / NAME).write_bytes(good)
    server.answers.clear()
    get(noise)
    assert server.answers == [(206, "bytes=900000-"), (200, None)]


def test_a_file_that_stays_wrong_is_refused(noise):
    """Fetched anew once, not for ever; nothing of it stays."""
    server = noise.server
    (noise.folder / NAME).write_bytes(bytes(900_000))
    server.faults[NAME] = [("break", 300_000)]
    with pytest.raises(UserError, match="corrupt, or not the published file"):
        get(noise)
    assert server.answers == [(200, None), (206, "bytes=300000-"), (200, None)]
    assert leftovers(noise) == []


@pytest.mark.parametrize("became", ["shorter than what arrived", "longer"])
def test_a_file_of_another_length_comes_anew(became, noise):
    """HTTP 416, or a part of a file of another length, from a server that says nothing of versions: from the start."""
    server = noise.server
    server.validator = None
    good = (noise.folder / NAME).read_bytes()
    other, arrived = (good + bytes(5000), len(good) + 3000) if became != "longer" else (good[:-1000], 300_000)
    (noise.folder / NAME).write_bytes(other)
    server.faults[NAME] = [("break", arrived), ("break", 0), ("break", 0)]
    with pytest.raises(UserError, match="what arrived is kept"):
        get(noise)
    (noise.folder / NAME).write_bytes(good)
    server.answers.clear()
    get(noise)
    assert server.answers[-1] == (200, None)
    assert len(server.answers) == (2 if became == "longer" else 1)  # a 416 carries no content


def test_another_source_does_not_go_on(noise):
    """What one address began is not continued from another, which may hold another packing; nor does its refusal discard it."""
    server = noise.server
    server.faults[NAME] = [("break", 300_000)] * 3
    with pytest.raises(UserError, match="what arrived is kept"):
        get(noise)
    with serving(noise.folder) as other:
        other.faults[NAME] = [404]
        server.answers.clear()
        server.faults[NAME] = [503] * 3
        with pytest.raises(UserError, match="HTTP 503"):
            prepare("small", root=noise.root, mirror=other.url)
        assert leftovers(noise) == ["own.tar.download", "own.tar.download.json"]
        prepare("small", root=noise.root, mirror=other.url)
        assert other.answers == [(200, None)]
    assert server.answers == []


def test_progress_counts_what_was_there(monkeypatch):
    """1 MB of 2 MB was there, 500 kB more in 1 s: 1.5 MB, 500 kB/s, 1 s left."""
    clock = iter([100.0, 101.0, 101.0])
    monkeypatch.setattr("fedrepro.data.progress.time.monotonic", lambda: next(clock))
    terminal = Terminal()
    progress = Progress("x", 2_000_000, terminal, there=1_000_000)
    progress.advance(500_000)
    assert terminal.getvalue() == "\rx: 1.5 MB of 2.0 MB, 500.0 kB/s, 1 s left\x1b[K"


def command(noise):
    """`fedrepro data small` as a process of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FEDREPRO")}
    return subprocess.Popen(
        [sys.executable, "-m", "fedrepro", "data", "small"],
        cwd=noise.root,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_process_goes_on(signal_number, noise):
    """Killed in the middle of a transfer: nothing under the final name, and the next process needs the rest only."""
    server = noise.server
    server.faults[NAME] = [("stall", 600_000)]
    child = command(noise)
    arriving = noise.root / "data/raw/small/own.tar.download"
    deadline = time.monotonic() + PATIENCE_S
    while not (arriving.exists() and arriving.stat().st_size):
        assert child.poll() is None, f"the process ended by itself: {child.communicate()}"
        assert time.monotonic() < deadline, f"nothing arrived in {PATIENCE_S} s; answers so far: {server.answers}"
        time.sleep(0.02)
    child.send_signal(signal_number)
    _, said = child.communicate(timeout=PATIENCE_S)
    assert arriving.exists(), f"what had arrived is gone: {said.decode()}"
    there = arriving.stat().st_size
    assert 0 < there <= 600_000
    assert leftovers(noise) == ["own.tar.download", "own.tar.download.json"]
    server.answers.clear()
    server.resume.set()
    again = command(noise)
    out, err = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, err.decode()
    assert out.decode().strip() == "data/arrays/small/3x320x320"
    assert server.answers == [(206, f"bytes={there}-")]
    assert leftovers(noise) == WHOLE


def test_killed_between_the_last_byte_and_the_checksum(noise):
    """All of it is there: no request at all."""
    server = noise.server
    server.faults[NAME] = [("break", 300_000)] * 3
    with pytest.raises(UserError, match="what arrived is kept"):
        get(noise)
    (noise.root / "data/raw/small/own.tar.download").write_bytes((noise.folder / NAME).read_bytes())
    server.answers.clear()
    get(noise)
    assert server.answers == []


@pytest.mark.parametrize("content", ["{", '{"source": 1}'])
def test_a_damaged_description_is_no_obstacle(content, noise):
    """What is not understood is fetched from the start."""
    server = noise.server
    server.faults[NAME] = [("break", 300_000)] * 3
    with pytest.raises(UserError, match="what arrived is kept"):
        get(noise)
    (noise.root / "data/raw/small/own.tar.download.json").write_text(content)
    server.answers.clear()
    get(noise)
    assert server.answers == [(200, None)]
