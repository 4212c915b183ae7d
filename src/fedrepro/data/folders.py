"""Image data sets in an archive of folders: `[<split>/][<domain>/]<class>/<image>`, below any number of other folders.

`<split>` is train or test, and is left out where the entry gives `test_share`: the data set then has no official split. Ours
takes that share of every class of every domain, drawn once and for all, so that every class is tested in every domain and the
test images do not depend on a run's seed. PACS (Li et al., ICCV 2017, https://arxiv.org/abs/1710.03077) is such a data set: the
authors' code of FedIMA splits each domain 90/10 at random; ours is 90/10 also within the classes, of which the smallest has 80
images.
"""

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fedrepro import rng
from fedrepro.data.archive import members
from fedrepro.data.artifact import floor_share
from fedrepro.data.download import Fetcher
from fedrepro.data.images import decode
from fedrepro.data.source import Source
from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry

_SPLITS = ("train", "test")


class _Image(NamedTuple):
    name: str  # in the archive
    label: int
    group: int  # the domain's number; 0 where there are none


def read(entry: "Entry", root: Path, mirror: str | None) -> Source:
    """The native arrays, domains as groups. Order: domains and classes as in the entry, then by name.

    UserError when the archive cannot be had, or does not hold what the registry says.
    """
    (file,) = entry.files
    with Fetcher(entry.name, entry.urls, root, mirror) as fetcher:
        sha256 = fetcher.fetch(file, file.name, unpack=False)
        path = fetcher.folder / file.name
        content = dict(members(path, lambda name: not PurePosixPath(name).name.startswith(".")))
    found = _find(path, entry, sorted(content))
    arrays = {}
    for split in _SPLITS:
        encoded = ((f"{path}: {image.name}", content[image.name]) for image in found[split])
        arrays[f"{split}_images"] = decode(encoded, len(found[split]), entry.native_shape)
        arrays[f"{split}_labels"] = np.array([image.label for image in found[split]], dtype=np.int64)
        if entry.domains:
            arrays[f"{split}_groups"] = np.array([image.group for image in found[split]], dtype=np.int64)
    return Source(**arrays, files={file.name: sha256}, group_names=entry.domains or None)


def _find(path: Path, entry: "Entry", names: list[str]) -> dict[str, list[_Image]]:
    """The images of each split. UserError where a class (of a domain, of a split) has none."""
    levels = [*([_SPLITS] if entry.test_share is None else []), *([entry.domains] if entry.domains else []), entry.class_names]
    place_of: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        place = PurePosixPath(name).parts[:-1][-len(levels) :]
        if len(place) == len(levels) and place[0] in levels[0]:
            place_of.setdefault(place, []).append(name)
    known = {place for place in place_of if all(part in level for part, level in zip(place, levels, strict=True))}
    if strangers := sorted(place_of.keys() - known):
        raise UserError(
            f"{path}: folder {'/'.join(strangers[0])} is not of a class in data/registry.yaml; add it to class_names"
        )
    found: dict[str, list[_Image]] = {split: [] for split in _SPLITS}
    for group, domain in enumerate(entry.domains or ("",)):
        for label, class_name in enumerate(entry.class_names):
            inner = tuple(filter(None, (domain, class_name)))
            for split in _SPLITS if entry.test_share is None else ("",):
                place = tuple(filter(None, (split, *inner)))
                if place not in place_of:
                    raise UserError(
                        f"{path}: no images in a folder {'/'.join(place)}; get another archive or correct the registry"
                    )
                if split == "" and len(place_of[place]) < 2:
                    raise UserError(
                        f"{path}: folder {'/'.join(place)} has 1 image, and the split needs 2: one to train, one to test"
                    )
                images = [_Image(name, label, group) for name in place_of[place]]
                for part, chosen in _splits(images, split, entry, group, label):
                    found[part] += chosen
    return found


def _splits(images: list[_Image], split: str, entry: "Entry", group: int, label: int) -> list[tuple[str, list[_Image]]]:
    if entry.test_share is None:
        return [(split, images)]
    order = rng.stream(0, "folders-split", group, label).permutation(len(images))
    test = set(order[: max(floor_share(entry.test_share, len(images)), 1)].tolist())
    return [
        ("train", [image for number, image in enumerate(images) if number not in test]),
        ("test", [image for number, image in enumerate(images) if number in test]),
    ]
