"""EMNIST by class: 62 classes of digits and letters, 697,932 + 116,323 images.

Cohen et al., IJCNN 2017, https://arxiv.org/abs/1702.05373. The published files hold every image transposed; here
rows are rows again, upright as in MNIST (our choice: no paper says).
"""

import numpy as np

from fedrepro.data.download import Fetcher
from fedrepro.data.idx import load
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source
from fedrepro.errors import UserError


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The four native arrays. UserError when the archive cannot be had, or does not hold what the registry says."""
    names = [f"{part}-{what}-ubyte" for part in ("train", "test") for what in ("images-idx3", "labels-idx1")]
    path, files = fetcher.only(entry)
    targets = {f"gzip/emnist-byclass-{name}.gz": name for name in names}
    folder = fetcher.unpacked(path, targets)
    unpacked = [folder / name for name in names]
    try:
        train, test = load(*unpacked[:2]), load(*unpacked[2:])
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    images = [np.ascontiguousarray(part[0].transpose(0, 1, 3, 2)) for part in (train, test)]
    return Source(images[0], train[1], images[1], test[1], files)
