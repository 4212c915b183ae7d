"""Archives of folders: domains as groups, our split where none is published, and unknown folders."""

import errno
import io
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from fedrepro.data import partition, proxy
from fedrepro.data.arrays import arrays_folder, load_arrays, load_groups
from fedrepro.data.prepare import prepare
from fedrepro.data.registry import load_registry
from fedrepro.errors import UserError
from fedrepro.files import read_json, write_json
from tests.helpers.published import image, tar, zipped

DOMAINS, CLASSES = ["photo", "sketch"], ["dog", "cat"]
ENTRY = {"kind": "folders", "classes": 2, "class_names": CLASSES, "native_shape": [3, 2, 2]}


def pixels(number):
    """Images of one grey value each, so that a test can recognise them."""
    return np.full((3, 2, 2), number, dtype=np.uint8)


def domains(counts=((20, 10), (5, 29))):
    """Members `PACS/<domain>/<class>/pic_<n>.png`. Image n of a domain and class is grey 100 * domain + 50 * class + n."""
    return {
        f"PACS/{domain}/{name}/pic_{number:03}.png": image(pixels(100 * d + 50 * c + number))
        for d, domain in enumerate(DOMAINS)
        for c, name in enumerate(CLASSES)
        for number in range(counts[d][c])
    }


def register(published, made, pack=tar, **entry):
    published.register(**ENTRY | {"files": [published.put("pacs.tar", pack(made))]} | entry)


PACS = {"domains": DOMAINS, "test_share": 0.1}


@pytest.mark.parametrize("pack", [tar, zipped])
def test_domains_are_groups_and_every_class_of_each_is_tested(pack, published):
    """A tenth of each class of each domain is for tests, rounded down but at least one: 1 of 5, 2 of 29."""
    register(published, {"PACS/readme.txt": b"x", "__MACOSX/PACS/photo/dog/._pic_000.png": b"x"} | domains(), pack, **PACS)
    folder = published.prepare()
    arrays = load_arrays(folder)
    for split, counts in (("train", [[18, 9], [4, 27]]), ("test", [[2, 1], [1, 2]])):
        groups, labels, images = (getattr(arrays, f"{split}_{what}") for what in ("groups", "labels", "images"))
        assert groups.dtype == np.int64
        found = np.zeros((2, 2), dtype=int)
        np.add.at(found, (groups, labels), 1)
        assert found.tolist() == counts
        assert (images[:, 0, 0, 0] // 100 == groups).all()
        assert (images[:, 0, 0, 0] % 100 // 50 == labels).all()
        assert (load_groups(folder, split) == groups).all()
    everything = np.concatenate([arrays.train_images, arrays.test_images])[:, 0, 0, 0]
    assert len(set(everything.tolist())) == 64  # no image is in both
    assert arrays.group_names == ("photo", "sketch")


def test_the_split_does_not_hang_on_the_packing(published, tmp_path):
    """Members in another order give the same arrays, and the seeds of runs do not matter."""
    register(published, domains(), **PACS)
    before = load_arrays(published.prepare())
    published.root = tmp_path / "other"
    register(published, dict(reversed(domains().items())), zipped, **PACS)
    after = load_arrays(published.prepare())
    for name in ("train_images", "test_images", "test_labels", "test_groups"):
        assert (getattr(before, name) == getattr(after, name)).all()


def test_official_splits(published):
    """train/ and test/ above the classes, no domains: no groups."""
    made = {
        f"my/own/{split}/{name}/{n}.png": image(pixels(n)) for split in ("train", "test") for name in CLASSES for n in (1, 2)
    }
    register(published, made)
    folder = published.prepare()
    arrays = load_arrays(folder)
    assert arrays.train_images[:, 0, 0, 0].tolist() == [1, 2, 1, 2]
    assert arrays.test_labels.tolist() == [0, 0, 1, 1]
    assert (arrays.train_groups, arrays.group_names, load_groups(folder, "train")) == (None, (), None)


def test_the_third_part_of_cinic10(published):
    """CINIC-10's layout is ./<part>/<class>/<image> with a README. valid/ is skipped, and grey images become three equal
    channels."""
    counts = {"train": (3, 1), "valid": (4, 4), "test": (2, 2)}
    made = {
        f"./{part}/{name}/n{number:08}_{number}.png": image(pixels(50 * c + 10 * p + number)[: 1 if number else 3])
        for p, (part, of_class) in enumerate(counts.items())
        for c, name in enumerate(CLASSES)
        for number in range(of_class[c])
    }
    register(published, {"./README.md": b"x", "./imagenet-contributors.csv": b"x"} | made)
    arrays = load_arrays(published.prepare())
    assert arrays.train_images[:, :, 0, 0].tolist() == [[0] * 3, [1] * 3, [2] * 3, [50] * 3]
    assert arrays.test_images[:, :, 0, 0].tolist() == [[20] * 3, [21] * 3, [70] * 3, [71] * 3]
    assert arrays.train_labels.tolist() == [0, 0, 0, 1]
    assert arrays.test_labels.tolist() == [0, 0, 1, 1]


def test_neither_splits_nor_domains(published):
    made = {f"{name}/{n}.png": image(pixels(n)) for name in CLASSES for n in range(4)}
    register(published, made, test_share=0.5)
    arrays = load_arrays(published.prepare())
    assert arrays.train_labels.tolist() == arrays.test_labels.tolist() == [0, 0, 1, 1]


def test_both_splits_and_domains(published):
    made = {f"{split}/{name}": content for split in ("train", "test") for name, content in domains(((2, 1), (1, 1))).items()}
    made = {name.replace("PACS/", ""): content for name, content in made.items()}
    register(published, made, domains=DOMAINS)
    arrays = load_arrays(published.prepare())
    assert arrays.train_groups.tolist() == arrays.test_groups.tolist() == [0, 0, 0, 1, 1]


def encoded(values, orientation=1):
    stream, exif = io.BytesIO(), Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    Image.fromarray(values).save(stream, "PNG", exif=exif)
    return stream.getvalue()


FAULTS = [
    ({"PACS/photo/horse/1.png": image(pixels(1))}, r"folder photo/horse is not of a class in data/registry\.yaml"),
    ({"PACS/sketch/cat/pic_001.png": b"no image"}, r"pacs\.tar: PACS/sketch/cat/pic_001\.png: not a readable image"),
    ({"PACS/sketch/cat/pic_001.png": image(pixels(1)[:, :1])}, r"pic_001\.png: 2x1 pixels, expected 2x2"),
    (
        {"PACS/oil/cat/1.png": image(pixels(1))},
        r"pacs\.tar: folder PACS/oil/cat is not in data/registry\.yaml; add it to domains, or del",
    ),
    ({"PACS/photo/cat/more/1.png": image(pixels(1))}, r"PACS/photo/cat/more/1\.png: lies below the folder of a class"),
    (
        {"copy/photo/cat/1.png": image(pixels(1))},
        r"PACS/photo/cat and copy/photo/cat hold the same class; keep one of them, or list the folders",
    ),
    (
        {"PACS/photo/cat/1.png": encoded(np.full((2, 2), 999, np.uint16))},
        r"cat/1\.png: has more than 8 bits a channel \(I;16\)",
    ),
    ({"PACS/photo/cat/1.png": encoded(np.zeros((2, 2, 4), np.uint8))}, r"cat/1\.png: is transparent; save it on a background"),
    ({"PACS/photo/cat/1.png": encoded(np.full((2, 2, 4), 254, np.uint8))}, r"cat/1\.png: is transparent; save it on a"),
    (
        {"PACS/photo/cat/1.png": encoded(np.zeros((2, 2, 3), np.uint8), orientation=6)},
        r"cat/1\.png: its EXIF orientation says that viewers turn or mirror it; save it upright",
    ),
]


@pytest.mark.parametrize("orientation", [0, 9])
def test_an_orientation_that_viewers_ignore_is_none(orientation, published):
    photograph = encoded(np.zeros((2, 2, 3), np.uint8), orientation)
    register(published, domains() | {"PACS/photo/cat/pic_000.png": photograph}, **PACS)
    published.prepare()


def test_class_folders_of_macos(published):
    """It writes é as e and an accent."""
    made = {f"cafe\u0301/{n}.png": image(pixels(n)) for n in range(4)} | {f"cat/{n}.png": image(pixels(n)) for n in range(4)}
    register(published, made, test_share=0.5, class_names=["caf\u00e9", "cat"])
    assert load_arrays(published.prepare()).train_labels.tolist() == [0, 0, 1, 1]


def png_of_16_bits(kind):
    """2x2 pixels. kind: PNG's number for the colours, 2 for RGB and 4 for grey with alpha. Pillow writes neither."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    row = b"\0" + b"\xff" * 2 * 2 * {2: 3, 4: 2}[kind]
    header = struct.pack(">IIBBBBB", 2, 2, 16, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(2 * row)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("change", "line"), FAULTS)
def test_faults_are_one_line(change, line, published):
    register(published, domains() | change, **PACS)
    published.refused(line)


@pytest.mark.parametrize("kind", [2, 4])
def test_png_of_16_bits_is_one_line(kind, published):
    register(published, domains() | {"PACS/photo/cat/1.png": png_of_16_bits(kind)}, **PACS)
    published.refused(r"cat/1\.png: has more than 8 bits a channel \(16\); save it with values from 0 to 255")


@pytest.mark.parametrize("name", ["1", "1.jfif"])
def test_images_are_known_by_their_content(name, published):
    """A note beside them is passed over."""
    register(published, domains() | {"PACS/oil/cat/note": b"no image", "PACS/photo/cat/more/note": b""}, **PACS)
    published.prepare()
    shutil.rmtree(published.root / "data")
    register(published, domains() | {f"PACS/oil/cat/{name}": image(pixels(1), "JPEG")}, **PACS)
    published.refused(r"folder PACS/oil/cat is not in data/registry\.yaml; add it to domains")


def test_a_class_without_images(published):
    register(published, domains(((2, 2), (2, 0))), **PACS)
    published.refused(r"no images in a folder sketch/cat")


def test_a_class_of_one_image_cannot_be_split(published):
    """No image would remain for training."""
    register(published, domains(((2, 2), (2, 1))), **PACS)
    published.refused(r"folder sketch/cat has 1 image, and the split needs 2")


def test_without_a_published_checksum_the_first_download_holds(published):
    """The first download is accepted and recorded. If the source later serves something else, it is refused."""
    file = published.put("pacs.tar", tar(domains()))
    del file["md5"]
    published.register(**ENTRY | PACS | {"files": [file | {"trust_first_download": True}]})
    published.prepare()
    published.prepare()
    raw = published.root / "data/raw/small/pacs.tar"
    raw.unlink()
    published.put("pacs.tar", tar(domains(((20, 10), (5, 28)))))
    with pytest.raises(UserError, match=r"not what was first downloaded \(.*sha256\.json; delete that file to start afresh"):
        published.prepare()


def test_what_was_drawn_from_other_arrays_is_drawn_again(published, capsys):
    """The archive has no published checksum, so the entry stays the same. Its new labels must not be used with the old
    partition."""
    file = published.put("pacs.tar", tar(domains()))
    del file["md5"]
    published.register(**ENTRY | PACS | {"files": [file | {"trust_first_download": True}]})
    published.prepare()
    entry = load_registry(published.root / "data/registry.yaml")["small"]
    definitions = {
        partition: partition.definition(entry, "label_sets(sets='0 1')", 2, 0),
        proxy: proxy.definition(entry, 1, "balanced"),
    }
    for module, definition in definitions.items():
        module.create(definition, 8, published.root)
    for _ in range(2):  # values that fit print no warning
        published.prepare()
    assert "drawn from other arrays" not in capsys.readouterr().err
    shutil.rmtree(published.root / "data/raw")
    published.put("pacs.tar", tar(domains(((10, 20), (20, 9)))))
    published.prepare()
    assert capsys.readouterr().err.count("was drawn from other arrays of small; drawing it again") == 2
    labels = load_arrays(arrays_folder(published.root, "small", (3, 2, 2))).train_labels
    drawn = partition.load(published.root, partition.artifact_id(definitions[partition]), 8)
    assert np.diag(drawn.manifest["class_counts"]).tolist() == np.bincount(labels).tolist()
    assert all((labels[drawn.train(client)] == client).all() for client in range(2))
    tests = load_arrays(arrays_folder(published.root, "small", (3, 2, 2))).test_labels
    assert sorted(tests[proxy.load(published.root, proxy.artifact_id(definitions[proxy]), 8).proxy_index]) == [0, 1]


@pytest.mark.parametrize("first", [(3, 2, 2), (3, 4, 4)])
def test_every_shape_follows_a_replaced_archive(first, published, capsys):
    """The archive has no published checksum, so the entry stays the same. Whichever shape is prepared first, both change."""
    file = published.put("pacs.tar", tar(domains()))
    del file["md5"]
    published.register(**ENTRY | PACS | {"files": [file | {"trust_first_download": True}]})
    shapes = ((3, 2, 2), (3, 4, 4))
    for shape in (*shapes, first):
        prepare("small", shape, published.root, str(published.folder))
    assert "other raw files" not in capsys.readouterr().err
    shutil.rmtree(published.root / "data/raw")
    published.put("pacs.tar", tar(domains(((10, 20), (20, 9)))))
    prepare("small", first, published.root, str(published.folder))
    (other,) = {*shapes} - {first}
    said = f"{arrays_folder(published.root, 'small', other)}: was made from other raw files of small; making it again"
    assert said in capsys.readouterr().err
    native, larger = (load_arrays(arrays_folder(published.root, "small", shape)) for shape in shapes)
    assert native.manifest["source"] == larger.manifest["source"]
    assert np.array_equal(native.train_images[:, 0, 0, 0], larger.train_images[:, 0, 0, 0])


@pytest.mark.parametrize("content", ["{}", "[]", "null", '{"definition": {}, "seed": 8, "arrays_manifest_sha256": ""}'])
def test_a_damaged_manifest_of_a_partition_is_one_line(content, published):
    register(published, domains(), **PACS)
    manifest = published.root / "data/partitions/small-iid/seed8.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(content)
    with pytest.raises(UserError, match=r"small-iid/seed8\.json: not a manifest .* delete it and run the same command again"):
        published.prepare()


def test_a_partition_that_may_not_be_deleted_is_one_line(published, monkeypatch):
    """Its arrays have changed. A superuser may delete everything, so the refusal is simulated."""
    register(published, domains(), **PACS)
    published.prepare()
    entry = load_registry(published.root / "data/registry.yaml")["small"]
    path = partition.create(partition.definition(entry, "iid", 2, 0), 8, published.root).with_suffix(".json")
    write_json(path, read_json(path) | {"arrays_manifest_sha256": "0"})
    unlink = Path.unlink

    def forbid(path, missing_ok=False):
        if path.name == "seed8.json":
            raise PermissionError(errno.EACCES, "Permission denied")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", forbid)
    with pytest.raises(UserError, match=r"seed8\.json: cannot write: permission denied; make the folder writable"):
        published.prepare()


def test_damaged_groups_are_one_line(published):
    register(published, domains(), **PACS)
    published.prepare()
    folder = arrays_folder(published.root, "small", (3, 2, 2))
    np.save(folder / "test_groups.npy", np.zeros(3, dtype=np.int64))
    with pytest.raises(UserError, match=r"test_groups\.npy: does not match the sha256"):
        load_arrays(folder)
