"""Images by user in TensorFlow Federated's HDF5 files: federated EMNIST, 3,400 writers, who are groups here.

Caldas et al., "LEAF: A Benchmark for Federated Settings", 2018, https://arxiv.org/abs/1812.01097, as published for Reddi et
al., ICLR 2021, https://arxiv.org/abs/2003.00295. `<name>.tar.bz2` holds `<name>_train.h5` and `<name>_test.h5`: for each user
`examples/<user>/pixels`, float32 [n, H, W] with ink 0 and paper 1, and `examples/<user>/label`, whole numbers [n]. Each
writer's images are split, so all have test images. Here ink is bright, as in MNIST: round(255 (1 - x)).
"""

from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.download import Fetcher
from fedrepro.data.registry import Entry
from fedrepro.data.source import Samples, Source
from fedrepro.errors import UserError

_SPLITS = ("train", "test")


def read(entry: Entry, fetcher: Fetcher) -> Source:
    """The native arrays, users as groups. Order: users by name, then as in the file.

    UserError when the archive cannot be had, or does not hold what the registry says.
    """
    path, files = fetcher.only(entry)
    names = {split: f"{path.name.partition('.')[0]}_{split}.h5" for split in _SPLITS}
    folder = fetcher.unpacked(path, {name: name for name in names.values()})
    parts = {split: _read(folder / name, f"{path}: {name}", entry) for split, name in names.items()}
    strangers = sorted(parts["test"].keys() - parts["train"].keys())
    if strangers:
        raise UserError(f"{path}: {names['test']}: user {strangers[0]} has no training images; get it again from its source")
    return Source.of_groups(parts, files)


def _read(path: Path, where: str, entry: Entry) -> dict[str, Samples]:
    """Images uint8 [n, 1, H, W] and labels int64 [n] of each user, by name."""
    import h5py  # imported here: only this reader needs it

    advice = "get it again from its source"
    try:
        with h5py.File(path) as file:
            users = file.get("examples")
            if not isinstance(users, h5py.Group) or not len(users):
                raise UserError(f"{where}: no group examples with users in it; {advice}")
            return {user: _user(users.get(user), f"{where}: examples/{user}", entry) for user in sorted(users)}
    except OSError as error:
        raise UserError(f"{where}: not readable as an HDF5 file ({' '.join(str(error).split())}); {advice}") from error


def _user(group: Any, where: str, entry: Entry) -> Samples:
    import h5py

    advice = "get it again from its source"
    if not isinstance(group, h5py.Group):
        raise UserError(f"{where}: not a group with pixels and label; {advice}")
    arrays = []
    for name, kinds, what in (("pixels", "fiu", "numbers [n, H, W]"), ("label", "iu", "whole numbers [n]")):
        if name not in group:
            raise UserError(f"{where}: no {name}, only {', '.join(sorted(group)) or 'nothing'}; {advice}")
        values = group[name]
        if not isinstance(values, h5py.Dataset):
            raise UserError(f"{where}: {name} is a group, expected {what}; {advice}")
        if values.dtype.kind not in kinds or (name == "label" and values.ndim != 1):
            raise UserError(f"{where}: {name} is {values.dtype} {values.shape}, expected {what}; {advice}")
        arrays.append(np.asarray(values))
    pixels, labels = arrays
    shape = len(labels), *entry.native_shape[1:]
    if pixels.shape != shape:
        raise UserError(f"{where}: pixels are {pixels.shape}, expected {shape}; correct native_shape in data/registry.yaml")
    if not (pixels.min(initial=0) >= 0 and pixels.max(initial=1) <= 1):  # NaN fails both comparisons
        raise UserError(f"{where}: pixels outside 0..1; {advice}")
    return np.rint(255 * (1 - pixels.astype(np.float64))).astype(np.uint8)[:, None], labels.astype(np.int64)
