"""Federated EMNIST's HDF5 files, written here in the published layout: writers are groups, ink is bright."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from fedrepro.data import partition
from fedrepro.data.arrays import load_arrays
from fedrepro.data.registry import load_registry
from fedrepro.errors import UserError
from tests.helpers.published import tar

Users = dict[str, tuple[np.ndarray, np.ndarray]]
GENERATOR = np.random.default_rng(0)


def users(**counts: int) -> Users:
    """For each user, uint8 images with bright ink, and labels."""
    return {
        name: (GENERATOR.integers(0, 256, (count, 5, 4), dtype=np.uint8), GENERATOR.integers(0, 3, count))
        for name, count in counts.items()
    }


TRAIN, TEST = users(f0001_41=3, f0000_14=4, f0002_00=2), users(f0002_00=1, f0000_14=1, f0001_41=2)


def written(path: Path, of_users: Users) -> h5py.File:
    """`path` in the publisher's format: float32, paper 1, ink 0, compressed. The file is open, so that a test can damage it."""
    file = h5py.File(path, "w")
    for name, (images, labels) in of_users.items():
        group = file.create_group(f"examples/{name}")
        group.create_dataset("pixels", data=(1 - images / 255).astype(np.float32), compression="gzip")
        group.create_dataset("label", data=labels.astype(np.int32))
    return file


@pytest.fixture
def files(tmp_path: Path) -> dict[str, h5py.File]:
    return {split: written(tmp_path / f"small_{split}.h5", made) for split, made in (("train", TRAIN), ("test", TEST))}


def register(published, files: dict[str, h5py.File], **contents: bytes) -> None:
    """Packs the files. `contents` replace a split's whole file."""
    members = {}
    for split, file in files.items():
        path = Path(file.filename)
        file.close()
        members[path.name] = contents.get(split, path.read_bytes())
    file = published.put("small.tar.bz2", tar(members, "bz2"))
    del file["md5"]
    published.register(
        kind="tff_h5", classes=3, class_names=["a", "b", "c"], native_shape=[1, 5, 4],
        files=[file | {"trust_first_download": True}],
    )  # fmt: skip


def test_every_pixel_and_writer(published, files) -> None:
    """Users are sorted by name in both splits, whatever order they were written in. The bytes of the images are unchanged."""
    register(published, files)
    arrays = load_arrays(published.prepare())
    assert arrays.group_names == ("f0000_14", "f0001_41", "f0002_00")
    for split, made in (("train", TRAIN), ("test", TEST)):
        images, labels, groups = (getattr(arrays, f"{split}_{what}") for what in ("images", "labels", "groups"))
        assert groups.tolist() == [number for number, name in enumerate(sorted(made)) for _ in made[name][1]]
        assert (images[:, 0] == np.concatenate([made[name][0] for name in sorted(made)])).all()
        assert labels.tolist() == np.concatenate([made[name][1] for name in sorted(made)]).tolist()
    assert sorted(path.name for path in (published.root / "data/raw/small").iterdir()) == ["sha256.json", "small.tar.bz2"]


def test_every_writer_is_a_client(published, files) -> None:
    register(published, files)
    published.prepare()
    entry = load_registry(published.root / "data/registry.yaml")["small"]
    assert entry.has_groups
    made = partition.definition(entry, "by_group", 3)
    partition.create(made, 8, published.root)
    drawn = partition.load(published.root, partition.artifact_id(made), 8)
    assert sorted(drawn.train(client).tolist() for client in range(3)) == [[0, 1, 2, 3], [4, 5, 6], [7, 8]]


def remove(path: str):
    return lambda file: file.__delitem__(path)


def replace(path: str, value: object):
    def change(file: h5py.File) -> None:
        del file[path]
        file[path] = value

    return change


def group_at(path: str):
    def change(file: h5py.File) -> None:
        del file[path]
        file.create_group(path)

    return change


PIXELS, LABEL = "examples/f0000_14/pixels", "examples/f0000_14/label"


@pytest.mark.parametrize(
    ("split", "change", "line"),
    [
        ("train", remove("examples"), r"small\.tar\.bz2: small_train\.h5: no group examples with users in it"),
        ("train", remove(PIXELS), r"small_train\.h5: examples/f0000_14: no pixels, only label; get it again"),
        ("test", remove(LABEL), r"small_test\.h5: examples/f0000_14: no label, only pixels; get it again"),
        ("train", remove("examples/f0001_41"), r"small_test\.h5: user f0001_41 has no training images"),
        ("train", replace(PIXELS, np.ones((4, 4, 5))), r"pixels are \(4, 4, 5\), expected \(4, 5, 4\); correct native_shape"),
        ("train", replace(PIXELS, np.ones((3, 5, 4))), r"pixels are \(3, 5, 4\), expected \(4, 5, 4\)"),
        ("train", replace(PIXELS, np.full((4, 5, 4), 255)), r"examples/f0000_14: pixels outside 0\.\.1"),
        ("train", replace(PIXELS, np.full((4, 5, 4), np.nan)), r"examples/f0000_14: pixels outside 0\.\.1"),
        ("train", replace("examples/f0000_14", np.ones(4)), r"small_train\.h5: examples/f0000_14: not a group with pixels and"),
        ("train", group_at(LABEL), r"examples/f0000_14: label is a group, expected whole numbers \[n\]; get it again"),
        ("train", group_at(PIXELS), r"examples/f0000_14: pixels is a group, expected numbers"),
        ("train", replace(PIXELS, [b"a"] * 4), r"examples/f0000_14: pixels is object \(4,\), expected numbers"),
        ("train", replace(LABEL, 5), r"examples/f0000_14: label is int64 \(\), expected whole numbers"),
        ("train", replace(LABEL, [b"a"] * 4), r"examples/f0000_14: label is object \(4,\), expected whole numbers"),
        ("train", replace(LABEL, np.full(4, 0.7)), r"examples/f0000_14: label is float64 \(4,\), expected whole numbers"),
        ("test", replace(LABEL, np.array([3])), r"test labels are \d\.\.3, expected 0\.\.2"),
    ],
)
def test_faults_are_one_line(split: str, change, line: str, published, files) -> None:
    change(files[split])
    register(published, files)
    published.refused(line)


def test_not_an_hdf5_file(published, files) -> None:
    register(published, files, test=b"no HDF5 file")
    published.refused(r"small\.tar\.bz2: small_test\.h5: not readable as an HDF5 file")


def test_a_missing_file_is_named(published, files) -> None:
    files.pop("test").close()
    register(published, files)
    published.refused(r"small\.tar\.bz2: has no member small_test\.h5")


def test_several_files_are_refused(published, files) -> None:
    """The registry refuses them before any file is read."""
    register(published, files)
    path = published.root / "data/registry.yaml"
    path.write_text(path.read_text().replace("files:", "files:\n  - {name: x.h5, trust_first_download: true}"))
    with pytest.raises(UserError, match="kind tff_h5 is one archive, found 2 files"):
        load_registry(path)
