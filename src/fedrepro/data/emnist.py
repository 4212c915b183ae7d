"""EMNIST by class: 62 classes of digits and letters, 697,932 + 116,323 images; fetched and verified by us, read by torchvision.

Cohen et al., IJCNN 2017, https://arxiv.org/abs/1702.05373. The published files hold every image transposed, and torchvision
leaves it so; here rows are rows again, upright as in MNIST (our choice: no paper says).
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedrepro.data.archive import extracted
from fedrepro.data.download import Fetcher
from fedrepro.data.idx import load
from fedrepro.data.source import Source

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry

_SPLIT = "byclass"


def read(entry: "Entry", root: Path, mirror: str | None) -> Source:
    """The four native arrays. UserError when the archive cannot be had, or does not hold what the registry says."""
    (file,) = entry.files
    names = [
        f"emnist-{_SPLIT}-{part}-{what}" for part in ("train", "test") for what in ("images-idx3-ubyte", "labels-idx1-ubyte")
    ]
    with Fetcher(entry.name, entry.urls, root, mirror) as fetcher:
        sha256 = fetcher.fetch(file, file.name, unpack=False)
        path = fetcher.folder / file.name
        targets = {f"gzip/{name}.gz": f"EMNIST/raw/{name}" for name in names}
        with extracted(path, targets, fetcher.folder / ".unpacked") as folder:
            from torchvision.datasets import EMNIST  # only now: a failed download should not first wait seconds for an import

            train, test = (
                load(lambda train=train: EMNIST(root=folder, split=_SPLIT, train=train, download=False), path, "EMNIST")
                for train in (True, False)
            )
    images = [np.ascontiguousarray(part[0].transpose(0, 1, 3, 2)) for part in (train, test)]
    return Source(images[0], train[1], images[1], test[1], {file.name: sha256})
