"""Downloads from a local server and folders: what arrives, what is refused, and that no partial file stays."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import yaml

from fedrepro.data import idx
from fedrepro.data.arrays import load_arrays
from fedrepro.data.download import Fetcher
from fedrepro.data.prepare import prepare
from fedrepro.data.registry import load_registry
from fedrepro.errors import UserError
from tests.helpers.one_line import one_line
from tests.helpers.published import idx as idx_file

from .conftest import NAMES, flip_a_byte

FIRST = f"{NAMES[0]}.gz"
RAW = "data/raw/tiny"


def stored(tiny):
    """Files below the data set's raw folder, by relative path."""
    folder = tiny.root / RAW
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


ALL = sorted([f"MNIST/raw/{name}" for name in NAMES] + ["sha256.json"])


def refused(tiny, line, **arguments):
    """`prepare` fails with one line and leaves no array and no part of a file."""
    with one_line(line) as caught:
        prepare("tiny", root=tiny.root, **arguments)
    assert not (tiny.root / "data/arrays").exists()
    assert not [name for name in stored(tiny) if name.endswith((".partial", ".download"))]
    return str(caught.value)


def test_idx_from_a_server(tiny, server, capsys):
    """A data set goes from the registry's address to arrays. The log has one line per file, and a second run requests
    nothing."""
    tiny.register(server.url)
    arrays = load_arrays(prepare("tiny", root=tiny.root))
    assert (arrays.train_images[:, 0] == tiny.images).all()
    assert arrays.train_images.shape == (6, 1, 5, 4)
    assert arrays.train_labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert arrays.test_images.shape == (3, 1, 5, 4)
    assert arrays.manifest["statistics"] == {"mean": [0.5], "std": [0.25]}
    assert stored(tiny) == ALL
    record = json.loads((tiny.root / RAW / "sha256.json").read_text())
    assert arrays.manifest["source"]["files"] == record
    assert len(record) == 4
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("tiny: channel 0")]
    assert len(lines) == 4
    assert lines[0].startswith(f"{server.url}{FIRST}: ")
    assert "B/s" in lines[0]
    shutil.rmtree(tiny.root / "data/.locks")
    prepare("tiny", (3, 10, 8), tiny.root)
    assert set(server.requests.values()) == {1}
    assert not (tiny.root / "data/.locks").exists(), "raw files that are there may lie in a read-only folder"


@pytest.mark.parametrize("layout", ["by data set", "flat"])
@pytest.mark.parametrize("through", ["argument", "environment"])
@pytest.mark.parametrize("where", ["folder", "server"])
def test_mirror_first(layout, through, where, tiny, server, monkeypatch):
    """<mirror>/<dataset>/<name>, then <mirror>/<name>, come before any address of the registry."""
    tiny.register("http://127.0.0.1:9/")  # no server listens there
    if layout == "by data set":
        (tiny.folder / "tiny").mkdir()
        for name in tiny.contents:
            (tiny.folder / name).rename(tiny.folder / "tiny" / name)
    mirror = str(tiny.folder) if where == "folder" else server.url
    if through == "environment":
        monkeypatch.setenv("FEDREPRO_MIRROR", mirror)
    prepare("tiny", root=tiny.root, mirror=mirror if through == "argument" else None)
    assert stored(tiny) == ALL


def test_falls_through_to_the_registry(tiny, server, tmp_path, capsys):
    """A mirror that lacks the file prints no warning."""
    tiny.register(server.url)
    (tmp_path / "empty").mkdir()
    prepare("tiny", root=tiny.root, mirror=str(tmp_path / "empty"))
    assert stored(tiny) == ALL
    assert "instead" not in capsys.readouterr().err


def test_a_corrupt_mirror_is_reported_and_passed_over(tiny, server, tmp_path, capsys):
    tiny.register(server.url)
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / FIRST).write_bytes(gzip.compress(b"something else"))
    prepare("tiny", root=tiny.root, mirror=str(bad))
    assert f"{bad / FIRST}: corrupt, or not the published file" in capsys.readouterr().err
    assert stored(tiny) == ALL


def test_a_repacked_file_passes_where_its_content_is_known(tiny):
    """A file with another gzip header and level but the same content passes with unpacked_md5. With the publisher's MD5 alone
    it is refused."""
    tiny.register(checksums="md5")
    (tiny.folder / FIRST).write_bytes(gzip.compress(tiny.contents[FIRST], compresslevel=1, mtime=99))
    refused(tiny, r"corrupt, or not the published file \(md5 of the file", mirror=str(tiny.folder))
    tiny.register(checksums="unpacked_md5")
    prepare("tiny", root=tiny.root, mirror=str(tiny.folder))
    assert stored(tiny) == ALL


def test_an_address_that_cannot_be_read_is_passed_over(tiny, server, capsys):
    """A part of a host name has at most 63 characters. A length that is no number counts as unknown."""
    tiny.register(f"http://{'a' * 70}.com/", server.url)
    server.faults[FIRST] = ["odd length"]
    prepare("tiny", root=tiny.root)
    assert stored(tiny) == ALL
    assert "label empty or too long" in capsys.readouterr().err


@pytest.mark.parametrize("faults", [[503, 500], ["truncate"], ["hang up", 429]])
def test_passing_errors_are_tried_again(faults, tiny, server):
    tiny.register(server.url)
    server.faults[FIRST] = list(faults)
    prepare("tiny", root=tiny.root)
    assert server.requests[FIRST] == len(faults) + 1
    assert stored(tiny) == ALL


@pytest.mark.parametrize(
    ("fault", "requests", "line"),
    [(404, 1, "HTTP 404"), (403, 1, "HTTP 403"), (503, 3, "HTTP 503"), ("truncate", 3, "truncated: ")],
)
def test_lasting_errors_are_one_line(fault, requests, line, tiny, server):
    """The line has file, source, reason and remedy. Permanent errors are not tried again."""
    tiny.register(server.url)
    server.faults[FIRST] = [fault] * 9
    message = refused(tiny, line)
    assert message.startswith(f"tiny: cannot get {FIRST}: {server.url}{FIRST}: ")
    assert message.endswith(f"or put {FIRST} in a folder and set FEDREPRO_MIRROR to that folder")
    assert server.requests[FIRST] == requests
    assert stored(tiny) == []


def test_nobody_listens(tiny):
    tiny.register("http://127.0.0.1:9/")
    refused(tiny, "Connection refused")


def test_no_source_at_all(tiny):
    refused(tiny, "no source is known")


def wrong_content(path):
    path.write_bytes(gzip.compress(b"x" * 200))


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-12])


def no_gzip(path):
    path.write_bytes(b"<html>not here</html>")


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (wrong_content, r"corrupt, or not the published file \(md5 of its content .* expected"),
        (cut_short, "truncated, or not a gzip file"),
        (no_gzip, "truncated, or not a gzip file"),
        (flip_a_byte, "truncated, or not a gzip file|corrupt"),
    ],
)
def test_bad_files_are_refused(spoil, line, tiny):
    """The good files stay, so a second attempt fetches only the bad one."""
    name = f"{NAMES[2]}.gz"
    spoil(tiny.folder / name)
    assert f"cannot get {name}: " in refused(tiny, line, mirror=str(tiny.folder))
    assert stored(tiny) == sorted([f"MNIST/raw/{NAMES[0]}", f"MNIST/raw/{NAMES[1]}", "sha256.json"])
    (tiny.folder / name).write_bytes(gzip.compress(tiny.contents[name]))
    prepare("tiny", root=tiny.root, mirror=str(tiny.folder))


def test_a_mirror_that_is_no_folder(tiny):
    refused(tiny, "mirror '/nowhere/at/all': no such folder; give a folder or an http", mirror="/nowhere/at/all")


def test_embedded_data_ask_for_no_mirror_and_take_no_lock(project):
    """Embedded data need no download."""
    prepare("digits", root=project, mirror="/nowhere/at/all")
    assert {path.name for path in (project / "data").iterdir()} == {"arrays", "registry.yaml"}


def test_a_raw_file_that_changed_is_noticed(tiny):
    prepared = prepare("tiny", root=tiny.root, mirror=str(tiny.folder))
    flip_a_byte(tiny.root / RAW / "MNIST/raw" / NAMES[0])
    with pytest.raises(UserError, match=f"{NAMES[0]}: changed since it was downloaded; delete it"):
        prepare("tiny", root=tiny.root, mirror=str(tiny.folder))
    load_arrays(prepared)  # the arrays made before are unchanged


def test_the_first_download_is_remembered(tiny):
    """A source that later serves another file is refused, even if its published checksum agrees."""
    prepare("tiny", root=tiny.root, mirror=str(tiny.folder))
    record = tiny.root / RAW / "sha256.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {f"MNIST/raw/{NAMES[0]}": "0" * 64}))
    (tiny.root / RAW / "MNIST/raw" / NAMES[0]).unlink()
    with pytest.raises(UserError, match=r"not what was first downloaded \(.*sha256\.json; delete that file"):
        prepare("tiny", root=tiny.root, mirror=str(tiny.folder))
    record.write_text("[]")
    with pytest.raises(UserError, match=r"sha256\.json: not a list of checksums by file name; delete it"):
        prepare("tiny", root=tiny.root, mirror=str(tiny.folder))


def test_files_put_there_by_hand_are_verified(tiny):
    """Unpacked files from elsewhere pass if their checksum is known and right."""
    folder = tiny.root / RAW / "MNIST/raw"
    folder.mkdir(parents=True)
    for name, content in tiny.contents.items():
        (folder / name.removesuffix(".gz")).write_bytes(content)
    prepare("tiny", root=tiny.root)
    (tiny.root / RAW / "sha256.json").unlink()
    tiny.register(checksums="md5")
    with pytest.raises(UserError, match="not fetched by fedrepro and not verifiable; delete it"):
        prepare("tiny", root=tiny.root)


def test_content_that_belies_the_registry(tiny):
    """If the checksum is right and the shape, a label or the number of images is wrong, the line names the registry's entry as
    the mistake."""
    registry = tiny.root / "data/registry.yaml"
    good = registry.read_text()
    registry.write_text(good.replace("- 5\n", "- 7\n"))
    refused(tiny, r"train images are \(6, 1, 5, 4\), expected \(6, 1, 7, 4\)", mirror=str(tiny.folder))
    registry.write_text(f"{good}  images: [6, 4]\n")
    refused(tiny, "the source has 6 and 3 images, data/registry.yaml says 6 and 4; correct images", mirror=str(tiny.folder))
    registry.write_text(good.replace("classes: 3", "classes: 2").replace("  - c\n", ""))
    refused(tiny, r"train labels are 0\.\.2, expected 0\.\.1", mirror=str(tiny.folder))


def test_odd_statistics_and_absent_classes_are_said(tiny, capsys):
    """They may be intended, so they print a line and are not refused."""
    values = tiny.images / 255
    registry = tiny.root / "data/registry.yaml"
    entry = yaml.safe_load(registry.read_text())
    entry["tiny"] |= {"channel_mean": [float(values.mean())], "channel_std": [float(values.std())]}
    registry.write_text(yaml.safe_dump(entry))
    prepare("tiny", root=tiny.root, mirror=str(tiny.folder))
    assert "tiny: " not in capsys.readouterr().err
    entry["tiny"] |= {"channel_std": [0.9], "classes": 4, "class_names": ["a", "b", "c", "d"]}
    registry.write_text(yaml.safe_dump(entry))
    prepare("tiny", root=tiny.root)
    absent, odd = (line for line in capsys.readouterr().err.splitlines() if line.startswith("tiny: "))
    assert absent == "tiny: no training image of class d; correct data/registry.yaml if that is a mistake"
    assert f"mean and deviation {values.mean():.4f} and {values.std():.4f}; data/registry.yaml says" in odd


def test_idx_needs_four_files(tiny):
    del tiny.contents[FIRST]
    tiny.register()
    refused(tiny, f"tiny: files: kind idx needs {NAMES[0]}, packed as .gz or not; add it", mirror=str(tiny.folder))


def test_a_full_disk_is_one_line(tiny):
    """/dev/full takes the place of the incoming file. The message names it, and no partial file stays."""
    folder = tiny.root / RAW / "MNIST/raw"
    folder.mkdir(parents=True)
    (folder / f"{NAMES[0]}.download").symlink_to("/dev/full")
    (tiny.folder / "tiny").mkdir()
    (tiny.folder / FIRST).rename(tiny.folder / "tiny" / FIRST)  # the first place searched
    refused(tiny, "cannot write: the disk is full", mirror=str(tiny.folder))


def test_two_at_once_fetch_once(tiny, server):
    """The second process waits for the first, then finds the files."""
    tiny.register(server.url)
    entry = load_registry(tiny.root / "data/registry.yaml")["tiny"]

    def fetch():
        with Fetcher("tiny", entry.urls, tiny.root) as fetcher:
            fetcher.fetch(entry.files[0], "there", unpack=True)

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.requests[FIRST] == 1
    assert (tiny.root / RAW / "there").read_bytes() == tiny.contents[FIRST]


def test_packed_files_can_stay_packed(tiny):
    """Some readers unpack the file themselves. Then the publisher's MD5 checks it."""
    entry = load_registry(tiny.root / "data/registry.yaml")["tiny"]
    with Fetcher("tiny", (), tiny.root, str(tiny.folder)) as fetcher:
        fetcher.fetch(entry.files[0], FIRST, unpack=False)
    assert (tiny.root / RAW / FIRST).read_bytes() == (tiny.folder / FIRST).read_bytes()


def test_progress_moves_on_a_terminal_only(tiny, server, monkeypatch, capsys):
    """On a terminal, bytes, rate and time left are shown. Elsewhere each file prints a line, see `test_idx_from_a_server`."""
    tiny.register(server.url)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    prepare("tiny", root=tiny.root)
    said = capsys.readouterr().err
    assert f"\r{server.url}{FIRST}: 100%|" in said
    assert re.search(r"\[\d\d:\d\d<\d\d:\d\d, .*B/s\]", said)


@pytest.mark.parametrize("checksums", ["md5 unpacked_md5", "md5"])
def test_a_corrected_checksum_asks_for_the_file_again(checksums, tiny):
    """`prepare` refuses a file that was downloaded with the old checksum, packed or not."""
    tiny.register(checksums=checksums)
    prepare("tiny", root=tiny.root, mirror=str(tiny.folder))
    tiny.contents[FIRST] = tiny.contents[FIRST][:-1] + b"\x00"
    (tiny.folder / FIRST).write_bytes(gzip.compress(tiny.contents[FIRST], mtime=1))
    tiny.register(checksums=checksums)
    with pytest.raises(UserError, match=f"{NAMES[0]}: was downloaded by another checksum than data/registry.yaml has now"):
        prepare("tiny", root=tiny.root, mirror=str(tiny.folder))
    shutil.rmtree(tiny.root / RAW)
    arrays = load_arrays(prepare("tiny", root=tiny.root, mirror=str(tiny.folder)))
    assert arrays.train_images[-1, 0, -1, -1] == 0


GROUPS = {"train_groups": np.zeros(6, np.int64), "test_groups": np.zeros(3, np.int64), "group_names": ("a",)}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"train_images": np.zeros((6, 1, 5, 4), np.float32)}, "the source's train images are float32"),
        ({"train_labels": np.zeros(6)}, "the source's train labels are float64"),
        ({"test_labels": np.zeros(3, np.int32)}, r"the source's test labels are int32 \(3,\); its reader must give int64"),
        ({"train_labels": np.zeros((6, 1), np.int64)}, r"train labels are int64 \(6, 1\); its reader must give int64 \[N\]"),
        (
            {"train_labels": np.zeros(5, np.int64)},
            "the source has 6 train images and 5 labels; correct its files or its reader",
        ),
        (
            GROUPS | {"train_groups": np.zeros(5, np.int64)},
            r"train groups are int64 \(5,\), expected int64 \(6,\); correct its",
        ),
        (GROUPS | {"test_groups": np.zeros(3, np.uint8)}, r"test groups are uint8 \(3,\), expected int64 \(3,\)"),
        (GROUPS | {"test_groups": None}, "the source has group_names, but no test_groups; its reader must give both or"),
        (GROUPS | {"test_groups": np.arange(3)}, r"test groups are 0\.\.2, and group_names has 1 names; correct its reader"),
        (GROUPS | {"group_names": None}, "the source has train_groups, but no group_names; its reader must give both or"),
    ],
)
def test_what_a_reader_gives_is_checked(change, line, tiny, monkeypatch):
    """`prepare` refuses what would not load, before anything is written."""
    read = idx.read
    monkeypatch.setattr(idx, "read", lambda entry, fetcher: replace(read(entry, fetcher), **change))
    refused(tiny, f"tiny: .*{line}", mirror=str(tiny.folder))


def test_fewer_labels_than_images(tiny):
    """The line names both files."""
    content = idx_file(tiny.labels[:5])
    (tiny.folder / f"{NAMES[1]}.gz").write_bytes(gzip.compress(content, mtime=1))
    tiny.contents[f"{NAMES[1]}.gz"] = content
    tiny.register()
    refused(tiny, f"{NAMES[0]}: 6 images, but {NAMES[1]} has 5 labels; get both from one source", mirror=str(tiny.folder))


def test_a_killed_process_leaves_no_file_of_that_name(tiny, server):
    """The process is killed in the middle of a transfer. The next process fetches the file again."""
    tiny.register(server.url)
    server.faults[FIRST] = ["stall"]
    command = [sys.executable, "-m", "fedrepro", "data", "tiny"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FEDREPRO")}
    child = subprocess.Popen(command, cwd=tiny.root, env=environment, stderr=subprocess.DEVNULL)
    while not stored(tiny) and child.poll() is None:
        time.sleep(0.02)
    child.kill()
    child.wait()
    server.resume.set()
    assert stored(tiny) == [f"MNIST/raw/{NAMES[0]}.download"]
    prepare("tiny", root=tiny.root)
    assert stored(tiny) == ALL


def test_fashion_mnist_takes_its_own_class(tiny):
    """The folder has the name of torchvision's class, so the two data sets never share one."""
    registry = tiny.root / "data/registry.yaml"
    registry.write_text(registry.read_text().replace("torchvision_class: MNIST", "torchvision_class: FashionMNIST"))
    arrays = load_arrays(prepare("tiny", root=tiny.root, mirror=str(tiny.folder)))
    assert np.array_equal(arrays.train_images[:, 0], tiny.images)
    assert (tiny.root / RAW / "FashionMNIST/raw" / NAMES[0]).exists()
