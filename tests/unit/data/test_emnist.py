"""EMNIST by class from a zip in the real layout: gzip/emnist-byclass-*-ubyte.gz, images stored transposed."""

import gzip
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fedrepro.data import emnist
from fedrepro.data.arrays import load_arrays
from fedrepro.data.prepare import prepare
from tests.helpers.published import idx, tar, zipped

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 6, 6), dtype=np.uint8)
LABELS = np.array([0, 61, 10, 3, 2])
CLASSES = [f"class {number}" for number in range(62)]


def members(images=IMAGES, labels=LABELS, train=4):
    """The first `train` images for training, transposed as their publisher stores them."""
    stored = images.transpose(0, 2, 1)
    made = {"gzip/emnist-letters-train-images-idx3-ubyte.gz": b"of another split, not looked at"}
    for part, index in (("train", slice(train)), ("test", slice(train, None))):
        made[f"gzip/emnist-byclass-{part}-images-idx3-ubyte.gz"] = gzip.compress(idx(stored[index]))
        made[f"gzip/emnist-byclass-{part}-labels-idx1-ubyte.gz"] = gzip.compress(idx(labels[index]))
    return made


def register(published, made, pack=zipped):
    file = published.put("gzip.zip", pack(made))
    published.register(kind="emnist", classes=62, class_names=CLASSES, native_shape=[1, 6, 6], files=[file])


@pytest.mark.parametrize("pack", [zipped, tar])
def test_images_are_upright(pack, published):
    register(published, members(), pack)
    arrays = load_arrays(published.prepare())
    assert (arrays.train_images[:, 0] == IMAGES[:4]).all()
    assert (arrays.test_images[:, 0] == IMAGES[4:]).all()
    assert arrays.train_labels.tolist() == [0, 61, 10, 3]
    assert sorted(path.name for path in (published.root / "data/raw/small").iterdir()) == ["gzip.zip", "sha256.json"]


def test_what_a_killed_process_unpacked_is_removed(published):
    register(published, members())
    left = published.root / "data/raw/small/.unpacked/train-images-idx3-ubyte"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    published.prepare()
    assert not (published.root / "data/raw/small/.unpacked").exists()


TRAIN = "gzip/emnist-byclass-train-images-idx3-ubyte.gz"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({TRAIN: gzip.compress(idx(IMAGES[:4]))[:-9]}, f"{TRAIN}: truncated, or not a gzip file"),
        ({TRAIN: gzip.compress(b"no idx")}, "gzip.zip: .*not an IDX file of 3 axes of bytes"),
        ({TRAIN: gzip.compress(idx(IMAGES[:3]))}, "3 images, but train-labels-idx1-ubyte has 4 labels; get both"),
        ({TRAIN: gzip.compress(idx(IMAGES[:4, :5]))}, r"train images are \(4, 1, 6, 5\), expected \(4, 1, 6, 6\)"),
        (
            {TRAIN.replace("images-idx3", "labels-idx1"): gzip.compress(idx(LABELS[:4] + 1))},
            r"train labels are 1\.\.62, expected",
        ),
    ],
)
def test_faults_are_one_line(change, line, published):
    register(published, members() | change)
    published.refused(line)


def test_a_missing_member_is_named(published):
    made = members()
    del made[TRAIN]
    register(published, made)
    published.refused(f"gzip.zip: has no member {TRAIN}")


def test_two_shapes_at_once_unpack_one_after_the_other(published, monkeypatch):
    """The archive has been fetched. Both unpack it into the same folder, so the second waits until the first has read it."""
    register(published, members())
    published.prepare()
    load, readers = emnist.load, []

    def slow(*paths):
        readers.append(threading.get_ident())
        time.sleep(0.2)
        return load(*paths)

    monkeypatch.setattr(emnist, "load", slow)
    with ThreadPoolExecutor(2) as pool:
        folders = pool.map(lambda side: prepare("small", (1, side, side), published.root), (7, 8))
        assert [folder.name for folder in folders] == ["1x7x7", "1x8x8"]
    assert readers[0] == readers[1] != readers[2] == readers[3]
