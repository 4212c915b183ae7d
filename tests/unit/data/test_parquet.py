"""Image data sets in parquet files: rows become arrays in their order. Each fault gives one line that names the file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedrepro.data.arrays import load_arrays
from tests.helpers.published import image

ENTRY = {"kind": "parquet", "classes": 3, "class_names": ["a", "b", "c"], "native_shape": [3, 4, 5]}


def pixels(count, channels=3, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, channels, 4, 5), dtype=np.uint8)


def table(images, labels, image_column="img", label_column="label", **more):
    """The content of a parquet file. `more` are further columns."""
    cells = [{"bytes": content if isinstance(content, bytes) else image(content), "path": None} for content in images]
    stream = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(len(cells)), image_column: cells, label_column: labels, **more}), stream)
    return stream.getvalue().to_pybytes()


def register(published, train, test=None, **entry):
    """Registers the contents as train.parquet and test.parquet."""
    test = table(pixels(1, seed=9), [0]) if test is None else test
    files = [
        published.put("train.parquet", train) | {"split": "train"},
        published.put("test.parquet", test) | {"split": "test"},
    ]
    published.register(**ENTRY | {"files": files} | entry)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8()])
def test_rows_keep_their_order(kind, published):
    images, labels = pixels(5), [2, 0, 1, 1, 0]
    register(published, table(images, pa.array(labels, kind)), table(images[:2], labels[:2]))
    arrays = load_arrays(published.prepare())
    assert (arrays.train_images == images).all()
    assert arrays.train_labels.tolist() == labels
    assert (arrays.test_images == images[:2]).all()
    assert arrays.manifest["statistics"] is None
    assert arrays.manifest["class_names"] == ["a", "b", "c"]
    assert set(arrays.manifest["source"]["files"]) == {"train.parquet", "test.parquet"}


def test_several_files_and_other_columns(published):
    """Parts of a split follow each other as in the entry. Keys of the entry set the column names."""
    images, names = pixels(5), {"image_column": "image", "label_column": "fine_label"}
    parts = {"b.parquet": (images[:3], [0, 1, 2]), "a.parquet": (images[3:], [1, 1]), "t.parquet": (images[:1], [2])}
    files = [
        published.put(name, table(*part, **names)) | {"split": "test" if name == "t.parquet" else "train"}
        for name, part in parts.items()
    ]
    published.register(**ENTRY | names | {"files": files})
    arrays = load_arrays(published.prepare())
    assert (arrays.train_images == images).all()
    assert arrays.train_labels.tolist() == [0, 1, 2, 1, 1]


def test_more_rows_than_are_read_at_a_time(published, monkeypatch):
    monkeypatch.setattr("fedrepro.data.parquet._ROWS", 2)
    images = pixels(5)
    register(published, table(images, [0] * 5))
    assert (load_arrays(published.prepare()).train_images == images).all()


def test_grey_and_colour(published):
    """A grey image in a colour data set has three equal channels. A colour image in a grey one becomes its luminance (ITU-R
    601)."""
    grey, colour = pixels(1, channels=1), pixels(1)
    register(published, table([*colour, *grey], [0, 1]))
    assert (load_arrays(published.prepare()).train_images[1] == grey[0]).all()
    register(published, table([*colour, *grey], [0, 1]), native_shape=[1, 4, 5])
    (published.root / "data/raw/small/train.parquet").unlink()
    (published.root / "data/raw/small/sha256.json").unlink()
    images = load_arrays(published.prepare()).train_images
    luminance = np.tensordot([0.299, 0.587, 0.114], colour[0].astype(float), axes=1)
    assert np.abs(images[0, 0] - luminance).max() <= 1
    assert (images[1] == grey[0]).all()


def other_size():
    return np.zeros((3, 5, 5), dtype=np.uint8)


def not_a_struct():
    stream = pa.BufferOutputStream()
    pq.write_table(pa.table({"img": [b"x"], "label": [0]}), stream)
    return stream.getvalue().to_pybytes()


def odd_bytes(value):
    """A table whose struct has something else in its field bytes."""
    stream = pa.BufferOutputStream()
    pq.write_table(pa.table({"img": [{"bytes": value}], "label": [0]}), stream)
    return stream.getvalue().to_pybytes()


def twice(column):
    """A table that has a column two times."""
    stream = pa.BufferOutputStream()
    made = pa.table({"img": [{"bytes": image(GOOD[0])}], "label": [0]})
    pq.write_table(made.append_column(column, made[column]), stream)
    return stream.getvalue().to_pybytes()


GOOD = pixels(2)
FAULTS = [
    (
        lambda: table(GOOD, [0, 1], image_column="image"),
        r"no column 'img', only id, image, label; correct image_column in data/reg",
    ),
    (lambda: table(GOOD, [0, 1], label_column="fine"), r"no column 'label', only id, img, fine; correct label_column"),
    (lambda: table(GOOD, ["a", "b"]), r"column 'label' is string, expected whole numbers"),
    (lambda: table(GOOD, [0, None]), r"column 'label' has 1 rows without a label"),
    (
        lambda: table(GOOD, [0, 3]),
        r"the source's train labels are 0\.\.3, expected 0\.\.2; correct classes in data/registry\.yaml, or the labels",
    ),
    (not_a_struct, r"column 'img' is binary, expected a struct with the field bytes"),
    (lambda: odd_bytes("text"), r"field bytes of column 'img' is string, expected binary; export it again"),
    (lambda: odd_bytes([1, 2]), r"field bytes of column 'img' is list<.*>, expected binary; export it again"),
    (lambda: twice("img"), r"train\.parquet: 2 columns are called 'img'; export it again with one"),
    (lambda: twice("label"), r"train\.parquet: 2 columns are called 'label'"),
    (lambda: table([GOOD[0], other_size()], [0, 1]), r"train\.parquet: row 1: 5x5 pixels, expected 5x4; correct native_shape"),
    (lambda: table([GOOD[0], b"no image"], [0, 1]), r"train\.parquet: row 1: not a readable image"),
    (lambda: table([image(GOOD[0])[:60]], [0]), r"train\.parquet: row 0: not a readable image"),
    (lambda: table([b""], [0]), r"row 0: not a readable image \(no bytes\)"),
    (
        lambda: table([], pa.array([], pa.int64()), img=pa.array([], pa.struct({"bytes": pa.binary()}))),
        "the source has no train images; correct its files",
    ),
    (lambda: table(GOOD, [0, 1])[:-30], r"not readable as a parquet file"),
]


@pytest.mark.parametrize(("make", "line"), FAULTS)
def test_faults_are_one_line(make, line, published):
    """The files have the right checksum, so the export or the entry is at fault."""
    register(published, make())
    published.refused(line)


def test_a_corrupt_file_is_refused(published):
    register(published, table(GOOD, [0, 1]))
    published.put("train.parquet", table(GOOD, [1, 0]))
    published.refused(r"small: cannot get train\.parquet: .*corrupt, or not the published file")
