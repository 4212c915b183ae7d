"""Tiny-ImageNet in its published layout, read from the archive: 200 classes of 500 training images, 64x64.

Le and Yang, Stanford CS 231N, 2015. `train/<wnid>/images/*` and `val/images/*` with `val/val_annotations.txt`; the labels of
the official test split were never published, so the official validation split is the test set, as is usual. Classes in
the order of `wnids.txt`; training images by class and number, test images as the annotations list them.
"""

from pathlib import Path, PurePosixPath

import numpy as np

from fedrepro.data.archive import members
from fedrepro.data.download import Fetcher
from fedrepro.data.images import decode
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source
from fedrepro.errors import UserError

_WNIDS, _WORDS, _ANNOTATIONS = "wnids.txt", "words.txt", "val/val_annotations.txt"


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The four native arrays. UserError when the archive cannot be had, or does not hold what the registry says."""
    path, files = fetcher.only(entry)
    content = dict(members(path, _is_needed))
    content = {name.partition("/")[2]: value for name, value in content.items()}  # without tiny-imagenet-200/
    wnids = _lines(path, content, _WNIDS)
    if len(wnids) != entry.classes:
        raise UserError(
            f"{path}: {_WNIDS} lists {len(wnids)} classes, data/registry.yaml says {entry.classes}; correct it there"
        )
    arrays = {}
    for split, pairs in (("train", _train(path, content, wnids)), ("test", _test(path, content, wnids))):
        encoded = ((f"{path}: {name}", content[name]) for name, _ in pairs)
        arrays[f"{split}_images"] = decode(encoded, len(pairs), entry.native_shape)
        arrays[f"{split}_labels"] = np.array([label for _, label in pairs], dtype=np.int64)
    words = dict(line.split("\t", 1) for line in _lines(path, content, _WORDS) if "\t" in line)
    names = tuple(f"{wnid} {words.get(wnid, '').partition(',')[0]}".strip() for wnid in wnids)
    return Source(**arrays, files=files, class_names=names)


def _is_needed(name: str) -> bool:
    inside = PurePosixPath(name.partition("/")[2])
    return str(inside) in (_WNIDS, _WORDS, _ANNOTATIONS) or (
        inside.parent.name == "images" and inside.parts[0] in ("train", "val")
    )


def _train(path: Path, content: dict[str, bytes], wnids: list[str]) -> list[tuple[str, int]]:
    """(member, label), by class, then by number: n1_2.JPEG before n1_10.JPEG."""
    of_class: dict[str, list[str]] = {wnid: [] for wnid in wnids}
    for name in content:
        split, _, rest = name.partition("/")
        if split == "train":
            wnid = rest.partition("/")[0]
            if wnid not in of_class:
                raise UserError(f"{path}: {name}: {wnid} is not in {_WNIDS}; get the archive again from its source")
            of_class[wnid].append(name)
    empty = [wnid for wnid, names in of_class.items() if not names]
    if empty:
        raise UserError(f"{path}: no training image of class {empty[0]}; get the archive again from its source")
    return [(name, label) for label, wnid in enumerate(wnids) for name in sorted(of_class[wnid], key=lambda n: (len(n), n))]


def _test(path: Path, content: dict[str, bytes], wnids: list[str]) -> list[tuple[str, int]]:
    label_of, pairs = {wnid: label for label, wnid in enumerate(wnids)}, []
    for line in _lines(path, content, _ANNOTATIONS):
        image, wnid = [*line.split("\t"), ""][:2]  # the rest is a bounding box
        name = f"val/images/{image}"
        if name not in content or wnid not in label_of:
            problem = "is not in the archive" if name not in content else f"has class {wnid!r}, which is not in {_WNIDS}"
            raise UserError(f"{path}: {_ANNOTATIONS}: {image} {problem}; get the archive again from its source")
        pairs.append((name, label_of[wnid]))
    return pairs


def _lines(path: Path, content: dict[str, bytes], name: str) -> list[str]:
    try:
        return content[name].decode().splitlines()
    except KeyError as error:
        raise UserError(f"{path}: has no {name}; get the archive again from its source") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: {name}: not a text file; get the archive again from its source") from error
