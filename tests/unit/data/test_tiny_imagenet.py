"""Tiny-ImageNet from archives in the published layout."""

import numpy as np
import pytest

from fedrepro.data.arrays import load_arrays
from tests.helpers.published import image, tar, zipped

WNIDS = ["n03", "n01", "n02"]  # not in alphabetical order, as published
TOP = "tiny-imagenet-200"
PIXELS = np.random.default_rng(0).integers(0, 256, (9, 3, 8, 8), dtype=np.uint8)


def members():
    """n01 has images 0, 1, 2 and 10; n03 and n02 have one each. There are three test images."""
    made = {
        f"{TOP}/wnids.txt": "\n".join(WNIDS).encode(),
        f"{TOP}/words.txt": b"n01\tgoldfish, Carassius\nn02\tblack stork\nn9\tx\n",
    }
    for number, name in enumerate(["n02_4", "n01_10", "n01_2", "n01_0", "n01_1", "n03_7"]):
        made[f"{TOP}/train/{name[:3]}/images/{name}.JPEG"] = image(PIXELS[number])
        made[f"{TOP}/train/{name[:3]}/{name[:3]}_boxes.txt"] = b"x"
    for number in range(3):
        made[f"{TOP}/val/images/val_{number}.JPEG"] = image(PIXELS[6 + number])
    made[f"{TOP}/test/images/test_0.JPEG"] = b"never read"
    made[f"{TOP}/val/val_annotations.txt"] = (
        b"val_2.JPEG\tn02\t0\t0\t9\t9\nval_0.JPEG\tn03\t0\t0\t9\t9\nval_1.JPEG\tn01\t0\t0\t9\t9\n"
    )
    return made


def register(published, made, pack=zipped, **entry):
    file = published.put("tiny-imagenet-200.zip", pack(made))
    published.register(**{"kind": "tiny_imagenet", "classes": 3, "native_shape": [3, 8, 8], "files": [file]} | entry)


def shuffled(made):
    return dict(sorted(made.items(), key=lambda item: item[0][::-1]))


@pytest.mark.parametrize("order", [dict, shuffled])
@pytest.mark.parametrize("pack", [zipped, tar, lambda made: tar(made, "")])
def test_layout(pack, order, published):
    """Classes are in the order of wnids.txt, training images by number, test images as the annotations list them, for any
    compression."""
    register(published, order(members()), pack)
    arrays = load_arrays(published.prepare())
    assert (arrays.train_images == PIXELS[[5, 3, 4, 2, 1, 0]]).all()
    assert arrays.train_labels.tolist() == [0, 1, 1, 1, 1, 2]
    assert (arrays.test_images == PIXELS[[8, 6, 7]]).all()
    assert arrays.test_labels.tolist() == [2, 0, 1]
    assert arrays.manifest["class_names"] == ["n03", "n01 goldfish", "n02 black stork"]
    assert arrays.manifest["group_names"] is None
    assert arrays.train_groups is None


FAULTS = [
    ({f"{TOP}/wnids.txt": b"n03\nn01\n"}, r"wnids\.txt lists 2 classes, data/registry\.yaml says 3; correct it there"),
    ({f"{TOP}/wnids.txt": None}, r"has no wnids\.txt"),
    ({f"{TOP}/wnids.txt": b"n03\nn01\nn04"}, r"train/n02/images/n02_4\.JPEG: n02 is not in wnids\.txt"),
    ({f"{TOP}/wnids.txt": b"\xff\xfe"}, r"wnids\.txt: not a text file"),
    ({f"{TOP}/train/n03/images/n03_7.JPEG": None}, r"no training image of class n03"),
    ({f"{TOP}/train/n03/images/n03_7.JPEG": b"no image"}, r"train/n03/images/n03_7\.JPEG: not a readable image"),
    (
        {f"{TOP}/train/n03/images/n03_7.JPEG": image(PIXELS[0][:, :7])},
        r"train/n03/images/n03_7\.JPEG: 8x7 pixels, expected 8x8",
    ),
    ({f"{TOP}/val/val_annotations.txt": None}, r"has no val/val_annotations\.txt"),
    ({f"{TOP}/val/val_annotations.txt": b"val_7.JPEG\tn02\n"}, r"val/val_annotations\.txt: val_7\.JPEG is not in the archive"),
    (
        {f"{TOP}/val/val_annotations.txt": b"val_1.JPEG\tn09\n"},
        r"val/val_annotations\.txt: val_1\.JPEG has class 'n09', which is not in wnids\.txt",
    ),
    (
        {f"{TOP}/val/val_annotations.txt": b"val_1.JPEG\n"},
        r"val/val_annotations\.txt: val_1\.JPEG has class '', which is not in wnids\.txt",
    ),
]


@pytest.mark.parametrize(("change", "line"), FAULTS)
def test_faults_are_one_line(change, line, published):
    """The archives have the right checksum."""
    register(published, {name: content for name, content in (members() | change).items() if content is not None})
    published.refused(f"tiny-imagenet-200.zip: {line}")
