"""From a registry entry to the arrays folder: read (downloading if need be), check, resize, write, all or nothing."""

import contextlib
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.console import say
from fedrepro.data.arrays import ARRAYS, BOXES, GROUPS, MANIFEST, NAMES, SCHEMA, arrays_folder, is_text, shape_name
from fedrepro.data.download import Fetcher
from fedrepro.data.registry import REGISTRY, Entry, load_registry
from fedrepro.data.source import Source, channel_statistics
from fedrepro.errors import UserError
from fedrepro.files import fresh_folder, read_json, sha256_file, write_json, writing

CLASSES = "classes in data/registry.yaml, or the labels"
ROUNDING = 0.02  # between a published mean or deviation of a channel and that of the training images, on a scale from 0 to 1
NAMED = 5  # classes that a line names, at most
_CHUNK_VALUES = 1 << 19  # resized at a time, in float64: small enough for a processor's cache, large enough for its speed


def prepare(dataset: str, shape: Sequence[int] | None = None, root: Path = Path(), mirror: str | None = None) -> Path:
    """Writes `data/arrays/<dataset>/<CxHxW>/` with its manifest and returns the folder. `shape` (C, H, W); default: native.
    `mirror`: a folder or an address that files are looked for in first; default: $FEDREPRO_MIRROR.

    Same registry entry and shape, same bytes. Other shapes that were made from other raw files are made again. Partitions and
    proxy splits that were drawn from other arrays are drawn again.
    UserError for an unknown data set, an impossible shape or a failed download.
    """
    root = Path(root)
    entry = load_registry(root / REGISTRY)[dataset]
    target = _checked_shape(entry, shape)
    with Fetcher(entry.name, entry.urls, root, mirror) as fetcher:
        source = importlib.import_module(f"fedrepro.data.{entry.kind}").read(entry, fetcher)
    _check_source(entry, source)
    folder = _write(root, entry, target, source)
    for other in _stale_shapes(root, entry, source.files):
        path = arrays_folder(root, dataset, other)
        say(f"{path}: was made from other raw files of {dataset}; making it again")
        _write(root, entry, other, source)
    return folder


def _write(root: Path, entry: Entry, target: tuple[int, ...], source: Source) -> Path:
    folder = arrays_folder(root, entry.name, target)
    with fresh_folder(folder) as temporary:
        names = [*NAMES, *(GROUPS if source.group_names else ()), *(BOXES if entry.has_boxes else ())]
        for name in names:
            array = getattr(source, name)
            np.save(temporary / f"{name}.npy", fit(array, target) if name.endswith("images") else array)
        write_json(temporary / MANIFEST, _manifest(entry, target, source, temporary))
    if target == entry.native_shape:
        _say_what_is_odd(entry, source)
        _draw_again(root, entry, sha256_file(folder / MANIFEST))
    return folder


def _stale_shapes(root: Path, entry: Entry, files: dict[str, str]) -> list[tuple[int, ...]]:
    """Shapes whose arrays were made from this entry, but from other raw files: before an archive without a checksum changed."""
    shapes = []
    for path in sorted((root / ARRAYS / entry.name).glob(f"[!.]*/{MANIFEST}")):
        with contextlib.suppress(UserError, KeyError, TypeError, AttributeError):  # damaged: who reads it says so
            manifest = read_json(path)
            if entry.made(manifest) and manifest["source"]["files"] != files:
                shapes.append(_checked_shape(entry, manifest["shape"]))
    return shapes


def _say_what_is_odd(entry: Entry, source: Source) -> None:
    """Prints a line for each oddity that may be intended: a class without a sample, and statistics that differ from those of
    the training images."""
    counts = np.bincount(source.train_labels, minlength=entry.classes)
    absent = [str((entry.class_names or range(entry.classes))[number]) for number in np.flatnonzero(counts == 0)]
    if absent and entry.holds == "images":
        names = ", ".join(absent[:NAMED]) + (", ..." if len(absent) > NAMED else "")
        say(f"{entry.name}: no training image of class {names}; correct data/registry.yaml if that is a mistake")
    for channel, published in enumerate(zip(entry.channel_mean or (), entry.channel_std or (), strict=True)):
        computed = channel_statistics(source.train_images[:, channel])
        if any(abs(value - expected) > ROUNDING for value, expected in zip(computed, published, strict=True)):
            numbers = " and ".join(f"{value:.4f}" for value in computed)
            say(
                f"{entry.name}: channel {channel} of the training images has mean and deviation {numbers}; data/registry.yaml "
                f"says {published[0]} and {published[1]}: correct channel_mean and channel_std if that is a mistake"
            )


def _draw_again(root: Path, entry: Entry, arrays_sha256: str) -> None:
    """Draws partitions and proxy sets again if they were drawn from other arrays of this entry, for example before an archive
    without a checksum changed. If drawing fails, they stay deleted, and the command that needs them says why. UserError for a
    manifest that is damaged or may not be deleted."""
    from fedrepro.data import partition, proxy

    for module, drawn in ((partition, partition.PARTITIONS), (proxy, proxy.PROXY)):
        for path in sorted((root / drawn).glob(f"{entry.name}-*/seed*.json")):
            manifest = read_json(path)
            try:
                definition, seed, drawn_from = (manifest[key] for key in ("definition", "seed", "arrays_manifest_sha256"))
                is_of_entry = (definition["dataset"], definition["dataset_sha"]) == (entry.name, entry.sha)
            except (KeyError, TypeError) as error:
                raise UserError(f"{path}: not a manifest (no {error}); delete it and run the same command again") from error
            if is_of_entry and drawn_from != arrays_sha256:
                say(f"{path}: was drawn from other arrays of {entry.name}; drawing it again")
                with writing(path):
                    for suffix in (".json", ".npz", ".svg"):
                        path.with_suffix(suffix).unlink(missing_ok=True)
                with contextlib.suppress(UserError):
                    module.create(definition, seed, root)


def fit(images: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Images uint8 [N, C, H, W] at `shape`: grey repeated over the channels, bilinear without antialiasing, rounded.

    Exact halves occur often at such ratios as 8 -> 28, and their last bit in floating point depends on the machine. Float64 and
    a nudge of 1e-6 before the floor decide all of them upwards, so that the bytes are the same everywhere. Text stays as it is.
    """
    if is_text(shape):
        return images
    channels, height, width = shape
    if images.shape[2:] != (height, width):
        images = _resized(images, height, width)
    repeats = channels // images.shape[1]
    return np.ascontiguousarray(images if repeats == 1 else np.repeat(images, repeats, axis=1))


def _resized(images: np.ndarray, height: int, width: int) -> np.ndarray:
    import torch

    resized = np.empty((*images.shape[:2], height, width), dtype=np.uint8)
    step = max(_CHUNK_VALUES // (images.shape[1] * max(height * width, images.shape[2] * images.shape[3])), 1)
    for start in range(0, len(images), step):
        chunk = torch.from_numpy(np.ascontiguousarray(images[start : start + step])).double()
        bigger = torch.nn.functional.interpolate(chunk, (height, width), mode="bilinear", align_corners=False, antialias=False)
        resized[start : start + step] = (bigger + (0.5 + 1e-6)).floor().clamp(0, 255).to(torch.uint8).numpy()
    return resized


def _checked_shape(entry: Entry, shape: Sequence[int] | None) -> tuple[int, ...]:
    target = tuple(entry.native_shape if shape is None else shape)
    if entry.holds == "text":
        if target != entry.native_shape:
            native = shape_name(entry.native_shape)
            raise UserError(f"{entry.name}: windows of text have their length, {native}, and no other shape; use {native}")
        return target
    if len(target) != 3 or not all(type(size) is int and 1 <= size <= 1024 for size in target):
        raise UserError(f"{entry.name}: shape {target} is not (channels, height, width) with 1 to 1024 each, such as 1x28x28")
    native = entry.native_shape
    if target[0] != native[0] and native[0] != 1:
        possible = shape_name((native[0], *target[1:]))
        raise UserError(f"{entry.name}: cannot make {target[0]} channels of {native[0]}; use {possible}")
    return target


def _check_source(entry: Entry, source: Source) -> None:
    counts = len(source.train_labels), len(source.test_labels)
    if entry.images and counts != entry.images:
        actual, stated = (" and ".join(map(str, pair)) for pair in (counts, entry.images))
        raise UserError(f"{entry.name}: the source has {actual} images, data/registry.yaml says {stated}; correct images there")
    for split in ("train", "test"):
        images, labels = getattr(source, f"{split}_images"), getattr(source, f"{split}_labels")
        if labels.dtype != np.int64 or labels.ndim != 1:
            problem = f"{labels.dtype} {labels.shape}"
            raise UserError(f"{entry.name}: the source's {split} labels are {problem}; its reader must give int64 [N]")
        if not len(images) == len(labels) > 0:
            counts = (
                f"{len(images)} {split} {entry.holds} and {len(labels)} labels" if len(labels) else f"no {split} {entry.holds}"
            )
            raise UserError(f"{entry.name}: the source has {counts}; correct its files or its reader")
        if images.shape[1:] != entry.native_shape:
            expected = (len(labels), *entry.native_shape)
            raise UserError(
                f"{entry.name}: the source's {split} images are {images.shape}, expected {expected} as in the registry"
            )
        dtypes = (np.uint8, np.int32) if entry.holds == "text" else (np.uint8,)
        if images.dtype not in dtypes:
            what = "characters as whole numbers" if entry.holds == "text" else "bytes from 0 to 255 (uint8)"
            raise UserError(f"{entry.name}: the source's {split} images are {images.dtype}; its reader must give {what}")
        if labels.min() < 0 or labels.max() >= entry.classes:
            actual, stated = f"{labels.min()}..{labels.max()}", f"0..{entry.classes - 1}"
            raise UserError(f"{entry.name}: the source's {split} labels are {actual}, expected {stated}; correct {CLASSES}")
        if entry.holds == "text" and (images.min() < 0 or images.max() >= entry.classes):
            actual, stated = f"{images.min()}..{images.max()}", f"0..{entry.classes - 1}"
            raise UserError(f"{entry.name}: the source's {split} characters are {actual}, expected {stated}; correct {CLASSES}")
        _check_groups(entry, source, split, len(labels))


def _check_groups(entry: Entry, source: Source, split: str, count: int) -> None:
    """UserError unless there are neither groups nor names, or both and they fit the `count` samples of `split`."""
    groups, names = getattr(source, f"{split}_groups"), source.group_names
    if groups is None and not names:
        return
    if groups is None or not names:
        there, lacking = ("group_names", f"{split}_groups") if names else (f"{split}_groups", "group_names")
        raise UserError(f"{entry.name}: the source has {there}, but no {lacking}; its reader must give both or neither")
    if groups.dtype != np.int64 or groups.shape != (count,):
        problem = f"{groups.dtype} {groups.shape}, expected int64 ({count},)"
        raise UserError(f"{entry.name}: the source's {split} groups are {problem}; correct its reader")
    if groups.min() < 0 or groups.max() >= len(names):
        problem = f"{groups.min()}..{groups.max()}, and group_names has {len(names)} names"
        raise UserError(f"{entry.name}: the source's {split} groups are {problem}; correct its reader")


def _manifest(entry: Entry, shape: tuple[int, ...], source: Source, folder: Path) -> dict[str, Any]:
    repeat = shape[0] // entry.native_shape[0]
    paths = sorted(folder.glob("*.npy"))
    return {
        "schema": SCHEMA,
        "dataset": entry.name,
        "shape": list(shape),
        "classes": entry.classes,
        "class_names": entry.class_names or source.class_names,
        "group_names": source.group_names,
        "statistics": entry.statistics and {key: values * repeat for key, values in entry.statistics.items()},
        "counts": {"train": len(source.train_labels), "test": len(source.test_labels)},
        "source": {"entry_sha": entry.sha, "files": source.files},
        "files": {path.name: {"sha256": sha256_file(path), "bytes": path.stat().st_size} for path in paths},
    }
