"""Image data sets in an archive of folders: `[<split>/][<domain>/]<class>/<image>`, below any number of other folders.

`<split>` is train or test; other folders in its place are passed over, such as valid/ of CINIC-10 (Darlow et al., 2018,
https://arxiv.org/abs/1810.03505), which is neither trained on nor tested (our choice). `<split>` is left out where the entry
gives `test_share`: the data set then has no official split. Ours takes that share of every class of every domain, drawn once
and for all, so that every class is tested in every domain and the test images do not depend on a run's seed. PACS (Li et al.,
ICCV 2017, https://arxiv.org/abs/1710.03077) is such a data set: the authors' code of FedIMA splits each domain 90/10 at
random; ours is 90/10 also within the classes, of which the smallest has 80 images.
"""

import itertools
import unicodedata
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from fedrepro import rng
from fedrepro.data.archive import members
from fedrepro.data.artifact import floor_share
from fedrepro.data.download import Fetcher
from fedrepro.data.images import decode, is_image
from fedrepro.data.registry import Entry
from fedrepro.data.source import Source
from fedrepro.errors import UserError

_SPLITS = ("train", "test")
_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


class _Image(NamedTuple):
    name: str  # in the archive
    label: int
    group: int  # the domain's number; 0 where there are none


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The native arrays, domains as groups. Order: domains and classes as in the entry, then by name.

    UserError when the archive cannot be had, or does not hold what the registry says.
    """
    path, files = fetcher.only(entry)
    content = dict(members(path, lambda name: not PurePosixPath(name).name.startswith(".")))
    images = _find(path, entry, content)
    arrays = {}
    for split in _SPLITS:
        encoded = ((f"{path}: {image.name}", content[image.name]) for image in images[split])
        arrays[f"{split}_images"] = decode(encoded, len(images[split]), entry.native_shape)
        arrays[f"{split}_labels"] = np.array([image.label for image in images[split]], dtype=np.int64)
        if entry.domains:
            arrays[f"{split}_groups"] = np.array([image.group for image in images[split]], dtype=np.int64)
    return Source(**arrays, files=files, group_names=entry.domains or None)


def _find(path: Path, entry: Entry, content: dict[str, bytes]) -> dict[str, list[_Image]]:
    """The images of each split. UserError for a folder that is not in the entry, or one without images."""
    domains, class_names = (tuple(map(_composed, names)) for names in (entry.domains, entry.class_names))
    levels = [level for level in (_SPLITS if entry.test_share is None else (), domains, class_names) if level]
    names_at = _by_place(path, levels, content)
    by_split: dict[str, list[_Image]] = {split: [] for split in _SPLITS}
    for place in itertools.product(*levels):
        folder = "/".join(place)
        if place not in names_at:
            raise UserError(f"{path}: no images in a folder {folder}; get another archive or correct data/registry.yaml")
        label, group = class_names.index(place[-1]), domains.index(place[-2]) if domains else 0
        images = [_Image(name, label, group) for name in names_at[place]]
        if entry.test_share is None:
            by_split[place[0]] += images
        elif len(images) < 2:
            raise UserError(f"{path}: folder {folder} has 1 image, and the split needs 2: one to train, one to test")
        else:
            test = _test_numbers(len(images), entry.test_share, group, label)
            for number, image in enumerate(images):
                by_split["test" if number in test else "train"].append(image)
    return by_split


def _composed(name: str) -> str:
    """`name` in Unicode's composed form (NFC): macOS writes é as two characters."""
    return unicodedata.normalize("NFC", name)


def _by_place(path: Path, levels: list[tuple[str, ...]], content: dict[str, bytes]) -> dict[tuple[str, ...], list[str]]:
    """Names by their innermost folders, one for each level; names whose outermost of these folders is not on the first level
    are left out."""
    names_at: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(content):
        place = PurePosixPath(_composed(name)).parts[:-1][-len(levels) :]
        if len(place) == len(levels) and place[0] in levels[0]:
            names_at.setdefault(place, []).append(name)
    _require_one_tree(path, names_at)
    _require_all_read(
        path, content, {name for at_place in names_at.values() for name in at_place}, 0 if levels[0] == _SPLITS else len(levels)
    )
    if strangers := sorted(names_at.keys() - set(itertools.product(*levels))):
        folder = "/".join(strangers[0])
        raise UserError(f"{path}: folder {folder} is not of a class in data/registry.yaml; add it to class_names")
    return names_at


def _require_one_tree(path: Path, names_at: dict[tuple[str, ...], list[str]]) -> None:
    """UserError if one class lies in two places: an image could be trained on and its copy tested."""
    for names in names_at.values():
        folders = sorted({str(PurePosixPath(name).parent) for name in names})
        if len(folders) > 1:
            raise UserError(
                f"{path}: {folders[0]} and {folders[1]} hold the same class; keep one of them, or list the "
                "folders above them as `domains` in data/registry.yaml, if they are such"
            )


def _require_all_read(path: Path, content: dict[str, bytes], read: set[str], levels: int) -> None:
    """UserError for an image below a folder of a class, and for one in a folder beside those that the entry names on `levels`
    levels. 0: folders beside train and test are passed over. An image is known by its ending or by its content."""
    classes = {PurePosixPath(name).parent for name in read}
    beside = {(len(leaf.parts), leaf.parents[levels - 1]) for leaf in classes} if levels else set[tuple[int, PurePosixPath]]()
    for name in sorted(content.keys() - read):
        folder = PurePosixPath(name).parent
        is_below = bool(classes & {*folder.parents})
        is_beside = any(len(folder.parts) == depth and above in folder.parents for depth, above in beside)
        if not (is_below or is_beside) or not (name.lower().endswith(_ENDINGS) or is_image(content[name])):
            continue
        if is_below:
            raise UserError(f"{path}: {name}: lies below the folder of a class, not in it; move it up or delete it")
        key = "class_names" if levels == 1 else "domains"
        raise UserError(f"{path}: folder {folder} is not in data/registry.yaml; add it to {key}, or delete it")


def _test_numbers(count: int, share: float, group: int, label: int) -> set[int]:
    order = rng.stream(0, "folders-split", group, label).permutation(count)
    return set(order[: max(floor_share(share, count), 1)].tolist())
