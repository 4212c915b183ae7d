"""Data sets in the IDX format (MNIST, Fashion-MNIST): fetched and verified by us, read by torchvision's class.

torchvision never downloads: it finds the unpacked files in `data/raw/<dataset>/<class>/raw/`, where it would have put them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    train, test = (
        load(
            lambda train=train: dataset(root=fetcher.folder, train=train, download=False),
            fetcher.folder / raw,
            dataset.__name__,
        )
        for train in (True, False)
    )
    return Source(*train, *test, files)


def load(make: Callable[[], Any], where: Path, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [N, 1, H, W] and labels int64 [N] of the torchvision data set that `make` opens.

    UserError naming `where` when its files are not readable as `what`.
    """
    try:
        part = make()
    except (RuntimeError, ValueError, AssertionError, OSError, TypeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{where}: not readable as {what} ({reason}); delete it and run the same command again") from error
    return part.data.numpy()[:, np.newaxis].astype(np.uint8, copy=False), part.targets.numpy().astype(np.int64, copy=False)
