"""Labels to deal among clients, and what each client got."""

import numpy as np

from fedrepro.data.partition import draw

BALANCED = np.random.default_rng(3).permutation(np.arange(1000) % 10)  # ten classes of 100
UNEVEN = np.random.default_rng(3).permutation(np.repeat(np.arange(10), np.arange(10, 110, 10)))  # 10, 20, ... 100: 550


def counts(scheme, labels, clients, seed=8):
    """Samples of each class for each client, [n, 10]."""
    return np.stack([np.bincount(labels[part], minlength=10) for part in draw(scheme, labels, 10, clients, seed).parts])
