"""The digits embedded in scikit-learn: 1,797 images of 8x8, values 0..16, no download.

They come unsplit. Our split: 50 images of each class, drawn once, form the test set (500); the other 1,297 are for
training. It does not depend on a run's seed, or runs with different seeds would be tested on different images.
"""

import numpy as np

from fedrepro import rng
from fedrepro.data.download import Fetcher
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source

TEST_PER_CLASS = 50
_WHITE = 16  # the largest value of the embedded images


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The four native arrays. UserError when scikit-learn's copy is not the one that the registry knows.

    `fetcher` is unused: all readers have the same arguments.
    """
    images, labels = embedded()
    test = test_index(labels, entry.classes)
    train = np.setdiff1d(np.arange(len(labels)), test)
    source = Source(images[train], labels[train], images[test], labels[test], files={})
    return source.checked(entry.name, entry.content_sha256, "the images embedded in this scikit-learn")


def embedded() -> tuple[np.ndarray, np.ndarray]:
    """All images uint8 [1797, 1, 8, 8] in 0..255, and their labels int64."""
    from sklearn.datasets import load_digits

    pixels, targets = map(np.asarray, load_digits(return_X_y=True))
    return np.rint(pixels.reshape(-1, 1, 8, 8) * (255 / _WHITE)).astype(np.uint8), targets.astype(np.int64)


def test_index(labels: np.ndarray, classes: int) -> np.ndarray:
    """Ascending indices int64 [classes * 50] of the test images."""
    generator = rng.stream(0, "digits-split")
    class_indices = [generator.permutation(np.flatnonzero(labels == c))[:TEST_PER_CLASS] for c in range(classes)]
    return np.sort(np.concatenate(class_indices))
