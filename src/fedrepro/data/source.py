"""The return value of every reader of a data set: the native arrays, before any resizing."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.data.arrays import BOXES, GROUPS, NAMES
from fedrepro.errors import UserError

Samples = tuple[np.ndarray, np.ndarray]  # images and their labels


@dataclass(frozen=True)
class Source:
    """Images uint8 [N, C, H, W] at the native shape, labels int64 [N]; of text windows [N, T], see `arrays.Arrays`."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    files: dict[str, str]  # raw file, relative to the data set's raw folder -> hex sha256; empty for embedded data
    train_boxes: np.ndarray | None = None  # float32 [N, M, 5], see `arrays.Arrays`; of data sets for detection
    test_boxes: np.ndarray | None = None
    train_groups: np.ndarray | None = None  # int64 [N], index into group_names: the domain of each image
    test_groups: np.ndarray | None = None
    group_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None  # where the files name the classes and the registry does not

    @classmethod
    def of_groups(cls, parts: Mapping[str, Mapping[str, Samples]], files: dict[str, str], **more: Any) -> "Source":
        """Joins the samples of every group of both splits: `parts["train"]["sketch"]`. Groups have the order of "train", which
        has all of them. `more`: other fields."""
        numbers = {name: number for number, name in enumerate(parts["train"])}
        arrays: dict[str, Any] = {}
        for split, samples_by_group in parts.items():
            images, labels = zip(*samples_by_group.values(), strict=True)
            groups = [numbers[name] for name in samples_by_group]
            arrays[f"{split}_images"], arrays[f"{split}_labels"] = np.concatenate(images), np.concatenate(labels)
            arrays[f"{split}_groups"] = np.repeat(groups, [len(group_labels) for group_labels in labels])
        return cls(**arrays, files=files, group_names=tuple(numbers), **more)

    @property
    def content_sha256(self) -> str:
        """Hex sha256 over name, type, shape and bytes of the arrays: `arrays.NAMES`, then boxes and groups if there are any."""
        digest = hashlib.sha256()
        for name in (*NAMES, *BOXES, *GROUPS):
            if (array := getattr(self, name)) is None:
                continue
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def checked(self, dataset: str, expected: str | None, what: str) -> "Source":
        """Returns itself. UserError when its content is not `expected`; `what`: the name of the content in the message."""
        if (sha256 := self.content_sha256) != expected:
            raise UserError(
                f"{dataset}: {what} are not those of data/registry.yaml, whose content_sha256 is {expected}; if you changed "
                f'its reader, write content_sha256: "{sha256}" there; otherwise install the locked environment (`make env`)'
            )
        return self


def channel_statistics(pixels: np.ndarray) -> tuple[float, float]:
    """Returns mean and population deviation of a channel, uint8 pixels / 255, exact up to the rounding of float64."""
    histogram = np.bincount(pixels.ravel(), minlength=256)
    values, share = np.arange(256) / 255, histogram / histogram.sum()
    mean = float(values @ share)
    return mean, float(np.sqrt((values - mean) ** 2 @ share))
