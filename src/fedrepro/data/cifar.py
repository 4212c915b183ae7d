"""CIFAR-10 and CIFAR-100 as published, pickled batches in a tar archive: fetched and verified by us, read by torchvision.

Krizhevsky, "Learning multiple layers of features from tiny images", 2009, https://www.cs.toronto.edu/~kriz/cifar.html.
A pickle can run any code, so none is opened before the MD5 of the archive, or of every member in the registry, is verified;
torchvision then checks each file's MD5 once more before it opens it.
"""

from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.download import Fetcher
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source
from fedrepro.errors import UserError


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The four native arrays. UserError when the archive cannot be had, or does not hold what the registry says."""
    path, files = fetcher.only(entry)
    members = entry.files[0].members
    dataset = _with_members(str(entry.torchvision_class), members, path)
    folder = fetcher.unpacked(path, {name: name for name in members})
    parts = [_load(dataset, folder, train, path) for train in (True, False)]
    for part in parts:
        if tuple(part.classes) != entry.class_names:
            raise UserError(
                f"{path}: its class names are not class_names of {entry.name} in data/registry.yaml; correct them there"
            )
    images = [np.ascontiguousarray(part.data.transpose(0, 3, 1, 2)) for part in parts]
    labels = [np.asarray(part.targets, dtype=np.int64) for part in parts]
    return Source(images[0], labels[0], images[1], labels[1], files)


def _with_members(name: str, members: dict[str, str], path: Path) -> Any:
    """torchvision's class, but with the MD5 sums of the registry, so that one list decides."""
    import torchvision.datasets  # imported after the download, so that a failed download does not wait seconds for the import

    published = getattr(torchvision.datasets, name)

    def md5(member: str) -> str:
        inside = f"{published.base_folder}/{member}"
        if inside not in members:
            raise UserError(f"{path}: members of its entry in data/registry.yaml lack {inside}; add it with its md5")
        return members[inside]

    train_list, test_list = (
        [[member, md5(member)] for member, _ in part] for part in (published.train_list, published.test_list)
    )
    meta = published.meta | {"md5": md5(published.meta["filename"])}
    return type(name, (published,), {"train_list": train_list, "test_list": test_list, "meta": meta})


def _load(dataset: Any, folder: Path, train: bool, path: Path) -> Any:
    try:
        return dataset(root=folder, train=train, download=False)
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        problem = " ".join(str(error).split())
        raise UserError(
            f"{path}: not readable as {dataset.__name__} ({problem}); delete it and run the same command again"
        ) from error
