"""Digit Five from small files in the published formats: every pixel, labels, the split, the reduction, and refused files."""

import bz2
import gzip
import io
from collections.abc import Sequence

import h5py
import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from fedrepro.data import digit_files, digit_five
from fedrepro.data.arrays import load_arrays
from fedrepro.errors import UserError
from tests.helpers.published import idx, tar

GENERATOR = np.random.default_rng(0)
LABELS = np.arange(20) % 10  # of every published part


def images(*shape: int) -> np.ndarray:
    return GENERATOR.integers(0, 256, (len(LABELS), *shape), dtype=np.uint8)


PARTS = {
    "mnist": [images(1, 28, 28) for _ in range(2)],
    "svhn": [images(3, 32, 32) for _ in range(2)],
    "usps": [images(1, 16, 16) for _ in range(2)],
    "synth_digits": [images(3, 32, 32) for _ in range(2)],
    "mnist_m": [images(3, 32, 32) for _ in range(2)],
}


def mat(part: np.ndarray, labels: np.ndarray, compressed: bool = False) -> bytes:
    stream = io.BytesIO()
    savemat(stream, {"X": part.transpose(2, 3, 1, 0), "y": labels[:, None]}, do_compression=compressed)
    return stream.getvalue()


def libsvm(part: np.ndarray, labels: Sequence[object] = LABELS + 1) -> bytes:
    """USPS in LIBSVM's format: labels from 1, values -1..1."""
    rows = (part.reshape(len(part), -1) / 255 * 2 - 1).round(6)
    lines = (
        f"{label} " + " ".join(f"{i}:{v:g}" for i, v in enumerate(row, 1)) for label, row in zip(labels, rows, strict=True)
    )
    return bz2.compress("\n".join(lines).encode())


def png(image: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0)).save(stream, "PNG")
    return stream.getvalue()


def mnist_m() -> dict[str, bytes]:
    members = {}
    for split, part in zip(("train", "test"), PARTS["mnist_m"], strict=True):
        names = [f"{number:08}.png" for number in range(len(part))]
        members |= {f"mnist_m/mnist_m_{split}/{name}": png(image) for name, image in zip(names, part, strict=True)}
        lines = [f"{name} {label}" for name, label in zip(names, LABELS, strict=True)]
        members[f"mnist_m/mnist_m_{split}_labels.txt"] = "\n".join(lines).encode()
    return members


def contents() -> dict[str, bytes]:
    """All files. SVHN calls the digit 0 a 10; SynthDigits calls it 0."""
    found: dict[str, bytes] = {}
    for prefix, part in zip(("train", "t10k"), PARTS["mnist"], strict=True):
        found[f"{prefix}-images-idx3-ubyte.gz"] = gzip.compress(idx(part[:, 0]))
        found[f"{prefix}-labels-idx1-ubyte.gz"] = gzip.compress(idx(LABELS))
    tens = np.where(LABELS == 0, 10, LABELS).astype(np.uint8)
    for split, street, made in zip(("train", "test"), PARTS["svhn"], PARTS["synth_digits"], strict=True):
        found[f"{split}_32x32.mat"] = mat(street, tens)
        found[f"synth_{split}_32x32.mat"] = mat(made, LABELS.astype(np.uint8))
    found["usps.bz2"], found["usps.t.bz2"] = map(libsvm, PARTS["usps"])
    found["mnist_m.tar.gz"] = tar(mnist_m())
    return found


def register(published, files: dict[str, bytes]) -> None:
    published.register(
        kind="digit_five", classes=10, class_names=[*"0123456789"], native_shape=[3, 28, 28],
        files=[published.put(name, content) for name, content in files.items()],
    )  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A domain of four images of each class. One of each class is held out, and 25 of the other 30 are training images."""
    monkeypatch.setattr(digit_five, "TEST_SHARE", 0.25)
    monkeypatch.setattr(digit_five, "TRAIN", 25)


def test_all_domains(published) -> None:
    """Groups are in order, with 25 training images each, two or three of a class, and ten test images, one of a class. MNIST's
    and USPS's grey images and SVHN's colours keep their places, whichever of the two parts they come from."""
    register(published, contents())
    found = load_arrays(published.prepare())
    assert found.group_names == tuple(PARTS)
    assert np.bincount(found.train_groups).tolist() == [25] * 5
    assert np.bincount(found.test_groups).tolist() == [10] * 5
    for group, (name, parts) in enumerate(PARTS.items()):
        train, test = found.train_groups == group, found.test_groups == group
        assert set(np.bincount(found.train_labels[train]).tolist()) == {2, 3}
        assert np.bincount(found.test_labels[test]).tolist() == [1] * 10
        originals = digit_five.fit(np.concatenate(parts), (3, 28, 28))
        labels = np.concatenate([LABELS, LABELS])
        place = {image.tobytes(): number for number, image in enumerate(originals)}
        got = np.concatenate([found.train_images[train], found.test_images[test]])
        numbers = [place[image.tobytes()] for image in got]
        assert len(set(numbers)) == 35
        expected = np.concatenate([found.train_labels[train], found.test_labels[test]])
        assert labels[numbers].tolist() == expected.tolist(), name


def test_usps_in_either_format(published) -> None:
    """USPS's HDF5 file gives the same arrays as LIBSVM's two files. The other domains do not depend on which is present."""
    register(published, {name: content for name, content in contents().items() if name.startswith("usps")})
    first = load_arrays(published.prepare())
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        for split, part in zip(("train", "test"), PARTS["usps"], strict=True):
            file[f"{split}/data"] = (part.reshape(len(part), -1) / 255).astype(np.float32)
            file[f"{split}/target"] = LABELS.astype(np.int32)
    register(published, {"usps.h5": stream.getvalue()})
    second = load_arrays(published.prepare())
    for name in ("train_images", "train_labels", "test_images", "test_labels", "train_groups"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert second.group_names == ("usps",)


def test_shares_by_hand() -> None:
    """7 of 3 + 3 + 4: 2.1, 2.1, 2.8. 5 of 3 + 3: 2.5 each, and the earlier one is rounded up."""
    assert digit_five._shares(np.array([3, 3, 4]), 7).tolist() == [2, 2, 3]
    assert digit_five._shares(np.array([3, 3]), 5).tolist() == [3, 2]


def test_at_most_a_thousand_of_a_class_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 5,000 images of each class a quarter is held out, and 1,000 of these are test images. No image is on both sides."""
    labels = np.repeat(np.arange(10), 5000)
    train, test = digit_five.split(labels, "mnist", "here")
    assert np.bincount(labels[test]).tolist() == [1000] * 10
    assert not np.intersect1d(train, test).size
    assert np.array_equal(test, digit_five.split(labels, "mnist", "here")[1])
    assert not np.array_equal(test, digit_five.split(labels, "svhn", "here")[1])
    monkeypatch.setattr(digit_five, "TRAIN", 37_501)
    with pytest.raises(UserError, match="has 37500 training images"):
        digit_five.split(labels, "mnist", "here")


def without(name: str) -> dict[str, bytes]:
    return {other: content for other, content in contents().items() if other != name}


def flipped_mat() -> bytes:
    """A compressed file with one wrong byte."""
    content = bytearray(mat(PARTS["svhn"][0], LABELS, compressed=True))
    content[len(content) // 2] ^= 0xFF
    return bytes(content)


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (lambda: without("usps.t.bz2"), "files: usps also needs usps.t.bz2"),
        (lambda: {"usps.h5": b"x"} | contents(), "files: usps is named twice"),
        (lambda: {"digits.zip": b"x"} | contents(), "files: digits.zip is of no domain; known: train-images"),
        (lambda: contents() | {"train_32x32.mat": b"nothing"}, r"train_32x32.mat: not a MATLAB file with X and y"),
        (lambda: contents() | {"train_32x32.mat": mat(PARTS["svhn"][0], LABELS + 11)}, "train_32x32.mat: label 11, expected"),
        (lambda: contents() | {"train_32x32.mat": mat(PARTS["svhn"][0], LABELS[:7])}, "20 images and 7 labels"),
        (lambda: contents() | {"train_32x32.mat": mat(PARTS["svhn"][0], np.array(["a"] * 20))}, "y is <U1 and not whole"),
        (lambda: contents() | {"train_32x32.mat": mat(PARTS["svhn"][0], LABELS + 0.5)}, "y is float64 and not whole numbers"),
        (lambda: contents() | {"train_32x32.mat": flipped_mat()}, r"train_32x32.mat: not a MATLAB file with X and y"),
        (lambda: contents() | {"train_32x32.mat": flipped_mat()[:100]}, r"train_32x32.mat: not a MATLAB file with X and y"),
        (lambda: contents() | {"usps.bz2": bz2.compress(b"1 1:0.5")}, "usps.bz2: not LIBSVM's text of 256 values"),
        (lambda: contents() | {"usps.bz2": libsvm(PARTS["usps"][0], ["inf"] * 20)}, "usps.bz2: not LIBSVM's text of 256"),
        (lambda: {"usps.h5": b"nothing"}, "usps.h5: not an HDF5 file"),
        (lambda: contents() | {"t10k-labels-idx1-ubyte.gz": gzip.compress(b"1234")}, "not an IDX file of 1 axes"),
        (lambda: contents() | {"mnist_m.tar.gz": tar({"mnist_m/x.txt": b""})}, "mnist_m.tar.gz: no list of labels"),
    ],
)  # fmt: skip
def test_refused_in_one_line(published, files, line: str) -> None:
    register(published, files())
    published.refused(line)


def test_too_few_images(published, monkeypatch: pytest.MonkeyPatch) -> None:
    """A domain of 30 training images cannot give 31, so a truncated or wrong file is noticed."""
    monkeypatch.setattr(digit_five, "TRAIN", 31)
    register(published, contents())
    published.refused("small: mnist has 30 training images, and 31 are needed")


def test_values_outside_are_refused(tmp_path) -> None:
    """USPS values in -1..1 are refused where 0..1 is expected."""
    with h5py.File(tmp_path / "usps.h5", "w") as file:
        file["train/data"], file["train/target"] = np.full((2, 256), -0.5), np.zeros(2)
    with pytest.raises(UserError, match=r"usps.h5: values of \(2, 256\) outside 0..1"):
        digit_files.read_h5(tmp_path / "usps.h5", "train")


@pytest.mark.parametrize("target", [[b"a", b"b"], 5])
def test_labels_that_are_no_numbers_of_images_are_refused(target: object, tmp_path) -> None:
    with h5py.File(tmp_path / "usps.h5", "w") as file:
        file["train/data"], file["train/target"] = np.zeros((2, 256)), target
    with pytest.raises(UserError, match=r"usps.h5: not an HDF5 file with train/data and train/target"):
        digit_files.read_h5(tmp_path / "usps.h5", "train")
