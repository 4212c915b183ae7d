"""Images with boxes in YOLO's text format, in an archive of `<split>/images/*` and `<split>/labels/*.txt`.

The folders may also lie the other way round, `images/<split>` and `labels/<split>`, and below any others. `<split>` is train,
and test, val or valid; it is left out where the entry gives `test_share`, and then that share of the images is drawn once and
for all. `labels/x.txt` holds one line for each object of `images/x.jpg`: class, centre x, centre y, width and height, the last
four as shares of the image. An image without such a file, or with an empty one, has no object.
https://docs.ultralytics.com/datasets/detect/ describes the format.
"""

import math
from pathlib import Path, PurePosixPath

from fedrepro import rng
from fedrepro.data.archive import members
from fedrepro.data.artifact import floor_share
from fedrepro.data.boxes import Row, labels, packed
from fedrepro.data.download import Fetcher
from fedrepro.data.images import decode
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source
from fedrepro.errors import UserError

_IMAGES, _LABELS = "images", "labels"
_TEST_NAMES = ("test", "val", "valid")


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The native arrays, images by name. UserError when the archive cannot be had, or does not hold what it should."""
    path, files = fetcher.only(entry)
    content = dict(members(path, lambda name: not PurePosixPath(name).name.startswith(".")))
    of_image = _label_files(path, content)
    split = _split(path, sorted(of_image), entry.test_share)
    rows = {name: _rows(f"{path}: {text}", content.get(text, b""), entry.classes) for name, text in of_image.items()}
    for part, names in split.items():
        _require_objects(path, part, [rows[name] for name in names])
    most = max(1, *map(len, rows.values()))
    arrays = {}
    for part, names in split.items():
        arrays[f"{part}_images"] = decode(((f"{path}: {n}", content[n]) for n in names), len(names), entry.native_shape)
        arrays[f"{part}_labels"] = labels([rows[name] for name in names])
        arrays[f"{part}_boxes"] = packed([rows[name] for name in names], most)
    return Source(**arrays, files=files)


def _label_files(path: Path, content: dict[str, bytes]) -> dict[str, str]:
    """Image -> the name of its label file, which may not exist. UserError for a label file without an image."""
    label_files = {}
    for name in content:
        parts = list(PurePosixPath(name).parts)
        if _IMAGES in parts[:-1]:
            parts[len(parts) - 2 - parts[-2::-1].index(_IMAGES)] = _LABELS  # the innermost folder of that name
            label_files[name] = str(PurePosixPath(*parts).with_suffix(".txt"))
    if not label_files:
        raise UserError(f"{path}: no images in a folder {_IMAGES}; pack <split>/{_IMAGES} and <split>/{_LABELS}")
    expected = set(label_files.values())
    for name in sorted(content):
        if _LABELS in PurePosixPath(name).parts[:-1] and name.endswith(".txt") and name not in expected:
            raise UserError(f"{path}: {name}: there is no image of that name in {_IMAGES}; add it or delete the file")
    return label_files


def _require_objects(path: Path, part: str, rows: list[list[Row]]) -> None:
    """UserError when no image of `part` has an object: the label files then lie elsewhere, or have other names."""
    if not any(rows):
        raise UserError(
            f"{path}: none of the {part} images ({len(rows)}) has an object; give {_IMAGES}/x.jpg its objects in "
            f"{_LABELS}/x.txt, a folder and an ending in small letters"
        )


def _split(path: Path, names: list[str], test_share: float | None) -> dict[str, list[str]]:
    """Names of the training and of the test images. UserError when folders and `test_share` both split, or neither does."""
    folders = {name: _neighbour_folders(name) for name in names}
    if test_share is not None:
        if len(given := [word for word in ("train", *_TEST_NAMES) if any(word in folder for folder in folders.values())]) > 1:
            raise UserError(
                f"{path}: has folders {' and '.join(given)}, which are a split; delete test_share = {test_share} in "
                "data/registry.yaml, or keep one of these folders"
            )
        if len(names) < 2:
            raise UserError(f"{path}: has 1 image, and the split needs 2: one to train, one to test")
        order = rng.stream(0, "yolo-split").permutation(len(names))
        test = set(order[: max(floor_share(test_share, len(names)), 1)].tolist())
        by_split = {
            "train": [n for i, n in enumerate(names) if i not in test],
            "test": [n for i, n in enumerate(names) if i in test],
        }
    else:
        tested = [word for word in _TEST_NAMES if any(word in folder for folder in folders.values())]
        if len(tested) > 1:
            raise UserError(f"{path}: has folders {' and '.join(tested)}; keep the one to be tested on")
        by_split = {"train": [n for n in names if "train" in folders[n]], "test": [n for n in names if folders[n] & {*tested}]}
        if shared := sorted({*by_split["train"]} & {*by_split["test"]}):
            raise UserError(f"{path}: {shared[0]}: lies in a folder of training and in one of test images; keep one of them")
    for part, images in by_split.items():
        if not images:
            folder = "train" if part == "train" else " or ".join(_TEST_NAMES)
            raise UserError(
                f"{path}: no {part} images in a folder {folder}; add them, or give test_share in data/registry.yaml"
            )
    return by_split


def _neighbour_folders(name: str) -> set[str]:
    """The folders directly above and below that of the images: one of them may say the split."""
    parts = PurePosixPath(name).parts[:-1]
    place = len(parts) - 1 - parts[::-1].index(_IMAGES)
    return {*parts[max(0, place - 1) : place], *parts[place + 1 : place + 2]}


def _rows(where: str, content: bytes, classes: int) -> list[Row]:
    """The objects of one label file. UserError naming the line that is not one."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not a text file; correct it") from error
    return [_row(f"{where}: line {number}", line, classes) for number, line in enumerate(lines, 1) if line.strip()]


def _row(where: str, line: str, classes: int) -> Row:
    words = line.split()
    try:
        of_class, (x, y, width, height) = int(words[0]), map(float, words[1:])
    except ValueError as error:
        raise UserError(f"{where}: {line!r} is not a class and four numbers (x y width height); correct it") from error
    if not 0 <= of_class < classes:
        raise UserError(f"{where}: class {of_class}, data/registry.yaml has 0..{classes - 1}; correct either")
    for name, value in (("x", x), ("y", y), ("width", width), ("height", height)):
        if not (math.isfinite(value) and 0 <= value <= 1) or (value == 0 and name in ("width", "height")):
            raise UserError(f"{where}: {name} = {value} is not a share of the image, in 0..1; correct it")
    return of_class, x, y, width, height
