"""Mean and deviation of a channel of images, as listed in data/registry.yaml."""

import numpy as np


def statistics(pixels: np.ndarray) -> tuple[float, float]:
    """Returns mean and population deviation of uint8 pixels / 255, exact up to the rounding of float64."""
    histogram = np.bincount(pixels.ravel(), minlength=256)
    values, share = np.arange(256) / 255, histogram / histogram.sum()
    mean = float(values @ share)
    return mean, float(np.sqrt((values - mean) ** 2 @ share))
