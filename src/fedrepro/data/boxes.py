"""Objects of images as arrays: what the readers of data sets for detection share."""

from collections.abc import Sequence

import numpy as np

Row = tuple[int, float, float, float, float]  # class, centre x, centre y, width, height; shares of the image


def packed(images: Sequence[Sequence[Row]], most: int) -> np.ndarray:
    """float32 [N, most, 5], filled up with rows of -1."""
    boxes = np.full((len(images), most, 5), -1, dtype=np.float32)
    for number, rows in enumerate(images):
        if rows:
            boxes[number, : len(rows)] = rows
    return boxes


def labels(images: Sequence[Sequence[Row]]) -> np.ndarray:
    """int64 [N]: the class of each image's largest object, the first of equals; 0 without one.

    What partitions and proxy sets are drawn by (our choice): with one class all images are alike, and only `iid` makes sense.
    """
    return np.array([max(rows, key=lambda row: row[3] * row[4])[0] if rows else 0 for rows in images], dtype=np.int64)
