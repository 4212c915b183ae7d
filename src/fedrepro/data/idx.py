"""Data sets in the IDX format (MNIST, Fashion-MNIST): fetched and verified by us, read by torchvision's class.

torchvision never downloads: it finds the unpacked files in `data/raw/<dataset>/<class>/raw/`, where it would have put them.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedrepro.data.download import Fetcher
from fedrepro.data.source import Source
from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry


def read(entry: "Entry", root: Path, mirror: str | None) -> Source:
    """The four native arrays. UserError when a file cannot be had, or does not hold what the registry says."""
    raw = f"{entry.torchvision_class}/raw"
    with Fetcher(entry.name, entry.urls, root, mirror) as fetcher:
        files = {}
        for file in entry.files:
            target = f"{raw}/{file.name.removesuffix('.gz')}"
            files[target] = fetcher.fetch(file, target, unpack=file.name.endswith(".gz"))

    import torchvision.datasets  # only now: a failed download should not first wait seconds for an import

    dataset = getattr(torchvision.datasets, str(entry.torchvision_class))
    try:
        train, test = (dataset(root=fetcher.folder, train=train, download=False) for train in (True, False))
    except (RuntimeError, ValueError, AssertionError, OSError) as error:
        what = f"{fetcher.folder / raw}: not readable as {entry.torchvision_class}"
        raise UserError(f"{what} ({error}); delete that folder and run the same command again") from error
    images = [part.data.numpy()[:, np.newaxis].astype(np.uint8, copy=False) for part in (train, test)]
    labels = [part.targets.numpy().astype(np.int64, copy=False) for part in (train, test)]
    return Source(images[0], labels[0], images[1], labels[1], files)
