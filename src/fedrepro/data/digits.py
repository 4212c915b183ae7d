"""The digits embedded in scikit-learn: 1,797 images of 8x8, values 0..16, no download.

They come unsplit. Our split: 50 images of each class, drawn once and for all, form the test set (500); the other 1,297 are for
training. It does not depend on a run's seed, or runs with different seeds would be tested on different images.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedrepro import rng
from fedrepro.data.arrays import NAMES
from fedrepro.data.source import Source
from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry

TEST_PER_CLASS = 50
_WHITE = 16  # the largest value of the embedded images


def read(entry: "Entry", root: Path, mirror: str | None) -> Source:
    """The four native arrays. UserError when scikit-learn's copy is not the one that the registry knows.

    `root` and `mirror` are there because all readers are called alike.
    """
    from sklearn.datasets import load_digits

    pixels, targets = map(np.asarray, load_digits(return_X_y=True))
    images = np.rint(pixels.reshape(-1, *entry.native_shape) * (255 / _WHITE)).astype(np.uint8)
    labels = targets.astype(np.int64)
    test = test_index(labels, entry.classes)
    train = np.setdiff1d(np.arange(len(labels)), test)
    source = Source(images[train], labels[train], images[test], labels[test], files={})
    found = content_sha256(source)
    if found != entry.content_sha256:
        raise UserError(
            f"{entry.name}: the images embedded in this scikit-learn are not those of data/registry.yaml "
            f"(content_sha256 {found}, expected {entry.content_sha256}); install the locked environment (`make env`)"
        )
    return source


def test_index(labels: np.ndarray, classes: int) -> np.ndarray:
    """Ascending indices int64 [classes * 50] of the test images."""
    generator = rng.stream(0, "digits-split")
    chosen = [generator.permutation(np.flatnonzero(labels == c))[:TEST_PER_CLASS] for c in range(classes)]
    return np.sort(np.concatenate(chosen))


def content_sha256(source: Source) -> str:
    """Hex sha256 over name, type, shape and bytes of the four arrays, in the order of `arrays.NAMES`."""
    digest = hashlib.sha256()
    for name in NAMES:
        array = getattr(source, name)
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
