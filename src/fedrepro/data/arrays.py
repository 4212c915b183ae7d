"""Prepared samples on disk: `data/arrays/<dataset>/<CxHxW>/*.npy` and a manifest of what they are and where they come from.

Text has the same files in `<dataset>/<T>`; its `*_images.npy` hold windows of T characters.

Reading them needs only numpy, so a training job starts without torchvision, scikit-learn or the registry.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.errors import UserError
from fedrepro.files import read_json, sha256_file

ARRAYS = Path("data/arrays")
MANIFEST = "manifest.json"
SCHEMA = 2
NAMES = ("train_images", "train_labels", "test_images", "test_labels")
GROUPS = ("train_groups", "test_groups")  # only for data sets with domains, writers or roles
BOXES = ("train_boxes", "test_boxes")  # only for detection data sets


@dataclass(frozen=True)
class Arrays:
    """One data set at one shape. Images uint8 [N, C, H, W] in 0..255, labels int64 [N] in 0..classes-1.

    For text the images are windows, uint8 or int32 [N, T] in 0..classes-1; a window's label is the character that follows it.

    groups: int64 [N] in 0..len(group_names)-1, the domain, writer or role of each sample. None if the data set has none.

    boxes: float32 [N, M, 5]. Each of at most M objects of an image has its class, then centre x, centre y, width and height as
    shares of the image. Unused rows are -1. None if the data set is not for detection. Otherwise an image's label is the class
    of its largest object, or 0 without one.
    """

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    manifest: dict[str, Any]
    sha256: str  # of the manifest file, which holds the sha256 of every array; partitions and proxy sets record it
    train_groups: np.ndarray | None = None
    test_groups: np.ndarray | None = None
    train_boxes: np.ndarray | None = None
    test_boxes: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, H, W), or (T,) for text."""
        return tuple(self.manifest["shape"])

    @property
    def classes(self) -> int:
        """Number of classes, including those that do not occur."""
        return self.manifest["classes"]

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups, empty where there are none."""
        return tuple(self.manifest["group_names"] or ())


def shape_name(shape: Sequence[int]) -> str:
    """(1, 28, 28) -> "1x28x28"; (80,) -> "80"."""
    return "x".join(map(str, shape))


def is_text(shape: Sequence[int]) -> bool:
    """Whether samples of this shape are text: windows of characters, (T,)."""
    return len(shape) == 1


def arrays_folder(root: Path, dataset: str, shape: Sequence[int]) -> Path:
    """`root/data/arrays/<dataset>/<CxHxW>`."""
    return Path(root) / ARRAYS / dataset / shape_name(shape)


def load_arrays(folder: Path, verify: bool = True) -> Arrays:
    """All arrays, in memory and writable. UserError that names the file if it is missing, damaged or not as its manifest says.

    `verify=False` skips the sha256 of the contents (about 0.1 s per 100 MB), but not the shapes and types.
    """
    folder = Path(folder)
    manifest = _manifest(folder)
    names = [
        *NAMES,
        *(GROUPS if manifest["group_names"] else ()),
        *(name for name in BOXES if f"{name}.npy" in manifest["files"]),
    ]
    arrays = {name: _array(folder, name, manifest, verify) for name in names}
    return Arrays(**arrays, manifest=manifest, sha256=sha256_file(folder / MANIFEST))


def load_labels(folder: Path, split: str) -> tuple[np.ndarray, dict[str, Any], str]:
    """Labels of `split` ("train" or "test"), the manifest and its sha256. Does not read the images."""
    folder = Path(folder)
    manifest = _manifest(folder)
    return _array(folder, f"{split}_labels", manifest, verify=True), manifest, sha256_file(folder / MANIFEST)


def load_groups(folder: Path, split: str) -> np.ndarray | None:
    """Groups int64 [N] of `split` ("train" or "test"), or None if there are none. Does not read the images."""
    manifest = _manifest(Path(folder))
    return _array(Path(folder), f"{split}_groups", manifest, verify=True) if manifest["group_names"] else None


def _manifest(folder: Path) -> dict[str, Any]:
    manifest = read_json(folder / MANIFEST)
    complete = (
        isinstance(manifest, dict)
        and {"shape", "classes", "statistics", "group_names", "counts", "files", "source"} <= manifest.keys()
    )
    if not complete or manifest.get("schema") != SCHEMA:
        raise UserError(f"{folder / MANIFEST}: not a manifest of this version; delete {folder} and run the same command again")
    return manifest


def _array(folder: Path, name: str, manifest: dict[str, Any], verify: bool) -> np.ndarray:
    path = folder / f"{name}.npy"
    advice = f"delete {folder} and run the step that makes it again"
    if not path.is_file():
        raise UserError(f"{path}: no such file; {advice}")
    if verify and sha256_file(path) != manifest["files"].get(path.name, {}).get("sha256"):
        raise UserError(f"{path}: does not match the sha256 in {MANIFEST}; {advice}")
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UserError(f"{path}: not a readable array ({error}); {advice}") from error
    count = manifest["counts"][name.partition("_")[0]]
    shape, dtype = ((count, *manifest["shape"]), np.uint8) if name.endswith("images") else ((count,), np.int64)
    if name.endswith("images") and is_text(manifest["shape"]) and array.dtype == np.int32:
        dtype = np.int32
    if name in BOXES:
        shape, dtype = (count, *array.shape[1:2], 5), np.float32
    if array.shape != shape or array.dtype != dtype:
        raise UserError(f"{path}: {array.dtype} {array.shape} where {MANIFEST} says {np.dtype(dtype)} {shape}; {advice}")
    return array
