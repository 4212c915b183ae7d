"""Boxes in YOLO's text format, from archives of real JPEG and text files."""

import io

import numpy as np
import pytest
from PIL import Image

from fedrepro.data.arrays import load_arrays
from tests.helpers.published import image, tar, zipped

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 3, 16, 24), dtype=np.uint8)


def jpeg(number: int) -> bytes:
    return image(PIXELS[number], "JPEG")


def decoded(number: int) -> np.ndarray:
    """The pixels as any JPEG reader decodes them."""
    return np.asarray(Image.open(io.BytesIO(jpeg(number)))).transpose(2, 0, 1)


def members() -> dict[str, bytes]:
    """Three training images, one with an empty label file and one without any, and two test images."""
    return {
        "faces/data.yaml": b"nc: 2",
        "faces/train/images/b.jpg": jpeg(0),
        "faces/train/images/a.jpg": jpeg(1),
        "faces/train/images/c.jpg": jpeg(2),
        "faces/train/labels/a.txt": b"1 0.5 0.25 0.5 0.5\n0 0.25 0.75 0.5 0.75\r\n\n",
        "faces/train/labels/b.txt": b"",
        "faces/test/images/d.e.jpg": jpeg(3),
        "faces/test/images/f.jpg": jpeg(4),
        "faces/test/labels/d.e.txt": b"1 1 0 0.125 1",
        "faces/test/labels/f.txt": b"0 0.5 0.5 1 1\n",
    }


def other_way_round() -> dict[str, bytes]:
    """The layout images/<split> and labels/<split>, with the test split under the name val."""
    found = {}
    for name, content in members().items():
        parts = name.replace("/test/", "/val/").split("/")
        found["/".join([parts[0], *parts[2:-1], *parts[1:2], parts[-1]] if len(parts) == 4 else parts)] = content
    return found


def register(published, made, pack=zipped, **entry):
    file = published.put("human_faces.zip", pack(made))
    known = {"kind": "yolo", "classes": 2, "class_names": ["face", "hand"], "native_shape": [3, 16, 24], "files": [file]}
    published.register(**known | entry)


@pytest.mark.parametrize("make", [members, other_way_round])
@pytest.mark.parametrize("pack", [zipped, tar])
def test_layout(pack, make, published):
    """Images are sorted by name and equal pixel for pixel. Boxes are in the order of the lines, filled up with -1. The label of
    an image is the class of its largest object, or 0 without one."""
    register(published, make(), pack)
    arrays = load_arrays(published.prepare())
    assert (arrays.train_images == np.stack([decoded(number) for number in (1, 0, 2)])).all()
    assert (arrays.test_images == np.stack([decoded(number) for number in (3, 4)])).all()
    assert arrays.train_boxes is not None
    assert arrays.test_boxes is not None
    assert arrays.train_boxes.dtype == np.float32
    none = [-1.0] * 5
    first = [[1, 0.5, 0.25, 0.5, 0.5], [0, 0.25, 0.75, 0.5, 0.75]]
    assert arrays.train_boxes.tolist() == [first, [none, none], [none, none]]
    assert arrays.test_boxes.tolist() == [[[1, 1, 0, 0.125, 1], none], [[0, 0.5, 0.5, 1, 1], none]]
    assert arrays.train_labels.tolist() == [0, 0, 0]
    assert arrays.test_labels.tolist() == [1, 0]


def test_boxes_fit_every_shape(published):
    """Boxes are shares of the image, so they are the same at every size."""
    from fedrepro.data.prepare import prepare

    register(published, members())
    native = load_arrays(published.prepare())
    small = load_arrays(prepare("small", (3, 8, 8), published.root, str(published.folder)))
    assert small.shape == (3, 8, 8)
    assert np.array_equal(small.train_boxes, native.train_boxes)


def test_without_a_split_a_share_is_drawn_once(published):
    """A fifth of five images is for tests, and it is the same one each time."""
    made = {f"all/{name.split('/', 2)[2]}": content for name, content in members().items() if name.count("/") == 3}
    register(published, made, test_share=0.2)
    first = load_arrays(published.prepare())
    assert (len(first.train_images), len(first.test_images)) == (4, 1)
    assert np.array_equal(load_arrays(published.prepare()).test_images, first.test_images)


def test_one_image_cannot_be_split(published):
    register(published, {"all/images/a.jpg": jpeg(0), "all/labels/a.txt": b""}, test_share=0.2)
    published.refused("has 1 image, and the split needs 2: one to train, one to test")


def test_a_folder_of_training_images_alone_may_be_split(published):
    """The share is taken from it."""
    made = {name: content for name, content in members().items() if "test" not in name}
    register(published, made | {f"faces/train/labels/{name}.txt": b"0 0.5 0.5 1 1" for name in "abc"}, test_share=0.4)
    assert load_arrays(published.prepare()).manifest["counts"] == {"train": 2, "test": 1}


A = "faces/train/labels/a.txt"
FAULTS = [
    ({A: b"0 0.5 0.5 0.5 0.5\n0 0.5 0.5 0.5\n"}, r"a\.txt: line 2: '0 0\.5 0\.5 0\.5' is not a class and four numbers"),
    ({A: b"face 0.5 0.5 0.5 0.5\n"}, r"a\.txt: line 1: 'face 0\.5.* is not a class and four numbers"),
    ({A: b"0 0.5 1.5 0.5 0.5\n"}, r"a\.txt: line 1: y = 1\.5 is not a share of the image, in 0\.\.1"),
    ({A: b"0 0.5 0.5 0.5 nan\n"}, r"a\.txt: line 1: height = nan is not a share"),
    ({A: b"\n2 0.5 0.5 0.5 0.5\n"}, r"a\.txt: line 2: class 2, data/registry\.yaml has 0\.\.1"),
    ({A: b"\xff\xfe"}, r"a\.txt: not a text file"),
    ({"faces/train/labels/x.txt": b""}, r"labels/x\.txt: there is no image of that name in images"),
    ({"faces/train/images/a.jpg": b"GIF"}, r"images/a\.jpg: not a readable image"),
    ({"faces/train/images/a.jpg": image(PIXELS[0, :, :8], "JPEG")}, r"images/a\.jpg: 24x8 pixels, expected 24x16"),
    ({"faces/valid/images/g.jpg": jpeg(0)}, r"has folders test and valid; keep the one to be tested on"),
    ({"faces/train/images/test/g.jpg": jpeg(0)}, r"test/g\.jpg: lies in a folder of training and in one of test images"),
]


@pytest.mark.parametrize(("change", "line"), FAULTS)
def test_faults_are_one_line(change, line, published):
    """The line names the file, the line in it, and what to do."""
    register(published, members() | change)
    published.refused(line)


@pytest.mark.parametrize(
    ("old", "new"),
    [("train/labels/", "train/Labels/"), ("train/labels/", "train/annotations/"), ("train/labels/a.txt", "train/labels/a.TXT")],
)
def test_misnamed_labels_are_one_line(old, new, published):
    """Else all images would count as images without an object."""
    register(published, {name.replace(old, new): content for name, content in members().items()})
    published.refused(
        r"human_faces\.zip: none of the train images \(3\) has an object; give images/x\.jpg its objects in labels/"
    )


def test_a_split_and_a_share_are_one_line(published):
    register(published, members(), test_share=0.2)
    published.refused("has folders train and test, which are a split; delete test_share = 0.2 in data/registry.yaml, or keep")


def test_what_lacks_images_is_one_line(published):
    register(published, {"faces/a.txt": b""})
    published.refused("no images in a folder images")


def test_what_lacks_a_split_is_one_line(published):
    register(published, {name: content for name, content in members().items() if "test" not in name})
    published.refused("no test images in a folder test or val or valid; add them, or give test_share")
