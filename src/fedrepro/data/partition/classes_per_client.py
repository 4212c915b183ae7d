"""P-LAB(k): every client has k classes, and each class is split evenly among the clients that have it.

"Quantity-based label imbalance" of Li et al., "Federated Learning on Non-IID Data Silos: An Experimental Study", ICDE 2022,
https://arxiv.org/abs/2102.02079; the exact form is that of the code of FedIMA (Zhou et al., IEEE TMC 2024,
https://arxiv.org/abs/2305.07845), which uses it with k = 2 on Digit Five: client i has class i mod C and k - 1 further distinct
classes at random. The shuffled class is cut into equal parts for its owners; when they do not divide N_c, the owners of the
smallest ids get one sample more. Sizes differ because classes have different numbers of owners.

A class without an owner is dropped, which can happen for n < C only. A client is empty when its classes have no samples, or
fewer than owners.
Limiting cases: k = C gives every client an equal share of every class; k = 1 with n = C gives client i exactly class i.
Not the same as shards, where sizes are equal and k only bounds the classes of a client.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.scheme import SCHEMES, Draw
from fedrepro.registry import require


@SCHEMES.register("classes_per_client")
@dataclass(frozen=True)
class ClassesPerClient:
    """k: classes of each client, from 1 to C."""

    k: int

    def __post_init__(self) -> None:
        require(self.k >= 1, "classes_per_client(k=...)", self.k, "must be a whole number >= 1")

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """UserError if k is above C. Draws the classes first and the samples second."""
        require(self.k <= classes, "classes_per_client(k=...)", self.k, f"there are only {classes} classes")
        owns_NC = np.zeros((clients, classes), dtype=bool)
        for i in range(clients):
            class_offsets = rng.choice(classes - 1, self.k - 1, replace=False)
            owns_NC[i, [i % classes, *(i + 1 + class_offsets) % classes]] = True
        parts: list[list[np.ndarray]] = [[np.empty(0, dtype=np.int64)] for _ in range(clients)]
        for c in range(classes):
            order = rng.permutation(np.flatnonzero(labels == c))
            owners = np.flatnonzero(owns_NC[:, c])
            for i, part in zip(owners, np.array_split(order, max(1, len(owners))), strict=False):
                parts[i].append(part)
        return Draw([np.concatenate(pieces) for pieces in parts])
