"""Data sets in the IDX format (MNIST, Fashion-MNIST).

The unpacked files lie in `data/raw/<dataset>/<class>/raw/`, where torchvision's class of that name finds them too.
"""

from pathlib import Path

import numpy as np

from fedrepro.data.download import Fetcher
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source
from fedrepro.errors import UserError

_CONTENTS = ("images-idx3-ubyte", "labels-idx1-ubyte")


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The four native arrays. UserError when a file cannot be had, or does not hold what the registry says."""
    needed = {f"{part}-{what}" for part in ("train", "t10k") for what in _CONTENTS}
    if missing := needed - {file.name.removesuffix(".gz") for file in entry.files}:
        raise UserError(f"data/registry.yaml: {entry.name}: files: kind idx needs {min(missing)}, packed as .gz or not; add it")
    raw = f"{entry.torchvision_class}/raw"
    files = {}
    for file in entry.files:
        target = f"{raw}/{file.name.removesuffix('.gz')}"
        files[target] = fetcher.fetch(file, target, unpack=file.name.endswith(".gz"))
    train, test = (load(*(fetcher.folder / raw / f"{part}-{what}" for what in _CONTENTS)) for part in ("train", "t10k"))
    return Source(*train, *test, files)


def load(images: Path, labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [N, 1, H, W] and labels int64 [N] of two unpacked files. UserError naming the file that is no such one,
    and both when they differ in length."""
    pixels, classes = _bytes(images, 3), _bytes(labels, 1)
    if len(pixels) != len(classes):
        raise UserError(
            f"{images}: {len(pixels)} images, but {labels.name} has {len(classes)} labels; get both from one source"
        )
    return pixels[:, np.newaxis], classes.astype(np.int64)


def _bytes(path: Path, axes: int) -> np.ndarray:
    content = np.fromfile(path, np.uint8)
    start = 4 + 4 * axes
    header = content[:start].tobytes()
    shape = np.frombuffer(header[4:], ">u4").tolist() if len(header) == start else []
    if header[:4] != bytes((0, 0, 8, axes)) or len(content) - start != int(np.prod(shape)):
        raise UserError(f"{path}: not an IDX file of {axes} axes of bytes; get it again from its source")
    return content[start:].reshape(shape)
