"""How the server draws batches from its proxy set: the setting `proxy_sampling`.

FedLAW's Table 6 (ICML 2023) has a column "balanced sampling" for long-tailed proxy sets. The paper does not explain it, and its
authors' code does not have it. Our choice: class-balanced mini-batches with replacement.
"""

import numpy as np

SAMPLINGS = ("shuffled", "balanced")


def balanced_positions(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Positions [N], as many as there are `labels` [N]. Each is drawn as a class, all that occur equally likely, and then one
    of its samples, equally likely too."""
    order = np.argsort(labels, kind="stable")
    _, starts, counts = np.unique(labels[order], return_index=True, return_counts=True)
    drawn_classes = rng.integers(len(counts), size=len(labels))
    return order[starts[drawn_classes] + rng.integers(counts[drawn_classes])]
