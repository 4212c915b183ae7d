"""P-CLS(alpha): every class is dealt out to the clients in Dirichlet proportions.

FedLAW (Li et al., "Revisiting Weighted Aggregation in Federated Learning with Neural Networks", ICML 2023,
https://arxiv.org/abs/2302.10911) says "Dirichlet"; the exact form is that of its authors' code: for each class c, pi_c is drawn
from Dir(alpha * 1_n), client i gets round(pi_ci * N_c) samples as consecutive slices of the shuffled class, and the last
client takes what remains. Client sizes differ, there is no minimum size, and a client may end up with nothing.

Limiting cases: alpha -> infinity gives every client the same share of every class; alpha -> 0 gives each class to one client.
Not the same as drawing the classes of each client, nor as the balanced variant with a minimum size.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.scheme import SCHEMES, Draw
from fedrepro.errors import UserError
from fedrepro.registry import require


@SCHEMES.register("dirichlet_per_class")
@dataclass(frozen=True)
class DirichletPerClass:
    """alpha: concentration, > 0 and finite; the papers use 0.01 to 100."""

    alpha: float

    def __post_init__(self) -> None:
        rule = "must be finite and > 0"
        require(math.isfinite(self.alpha) and self.alpha > 0, "dirichlet_per_class(alpha=...)", self.alpha, rule)

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Every sample goes to exactly one client. Per class, the shuffle is drawn first and the proportions second."""
        slices_CN = []
        for c in range(classes):
            order = rng.permutation(np.flatnonzero(labels == c))
            shares = rng.dirichlet(np.full(clients, self.alpha))
            if not abs(shares.sum() - 1) < 1e-6:  # overflow gives zeros, underflow NaN
                raise UserError(f"dirichlet_per_class(alpha={self.alpha!r}): too extreme to draw from; use 1e-6 to 1e6")
            slices_CN.append(deal(order, shares))
        return Draw([np.concatenate(parts) for parts in zip(*slices_CN, strict=True)])


def deal(order: np.ndarray, shares: np.ndarray) -> list[np.ndarray]:
    """`order` [N_c] cut into consecutive slices of round(shares * N_c), halves to even; the last client takes the remainder.

    Rounding may promise more samples than there are: then the slices run dry, and later clients get fewer or none.
    """
    ends = np.cumsum(np.round(shares[:-1] * len(order))).astype(np.int64)
    return np.split(order, np.minimum(ends, len(order)))
