"""What every reader of a data set hands over: the native arrays, before any resizing."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Source:
    """Images uint8 [N, C, H, W] at the native shape, labels int64 [N]."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    files: dict[str, str]  # raw file, relative to the data set's raw folder -> hex sha256; empty for embedded data
    train_groups: np.ndarray | None = None  # int64 [N], index into group_names: the domain of each image
    test_groups: np.ndarray | None = None
    group_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None  # where the files name the classes and the registry does not
