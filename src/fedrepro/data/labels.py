"""The labels that partitions and proxy splits are drawn from: those of the native arrays, checked against the definition."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedrepro.data.arrays import MANIFEST, arrays_folder, load_groups, load_labels
from fedrepro.errors import UserError

NO_GROUPS = "{!r}: {} tells no groups (domains, writers, roles) apart; take another scheme or data set"


class Labels(NamedTuple):
    """Labels of one split of one data set."""

    values: np.ndarray  # int64 [N]
    classes: int
    arrays_sha256: str  # of the arrays' manifest


def read_groups(definition: dict[str, Any], split: str, root: Path) -> np.ndarray:
    """Groups int64 [N] of `split` of `definition["dataset"]`, beside `read_labels`. UserError when the data set has none."""
    from fedrepro.data.registry import REGISTRY, load_registry

    entry = load_registry(Path(root) / REGISTRY)[definition["dataset"]]
    groups = load_groups(arrays_folder(root, entry.name, entry.native_shape), split)
    if groups is None:
        raise UserError(NO_GROUPS.format(definition["scheme"], entry.name))
    return groups


def read_labels(definition: dict[str, Any], split: str, root: Path) -> Labels:
    """Labels of `split` ("train" or "test") of `definition["dataset"]`.

    Read from the native shape, so that the arrays of every other shape share one partition. UserError if the registry's entry
    has changed since the definition or the arrays were made.
    """
    from fedrepro.data.registry import REGISTRY, load_registry  # imports pydantic, which only drawing needs

    registry = Path(root) / REGISTRY
    entry = load_registry(registry)[definition["dataset"]]
    if entry.sha != definition["dataset_sha"]:
        raise UserError(f"{registry}: {entry.name}: changed since this definition was made; run the same command again")
    folder = arrays_folder(root, entry.name, entry.native_shape)
    values, manifest, sha256 = load_labels(folder, split)
    if not entry.made(manifest):
        raise UserError(f"{folder / MANIFEST}: made from another entry of {registry}; give `fedrepro data {entry.name}`")
    return Labels(values, entry.classes, sha256)
