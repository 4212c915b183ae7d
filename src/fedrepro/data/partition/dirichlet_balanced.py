"""P-CLS-BAL(alpha, min_size): as dirichlet_per_class, but full clients are passed over and no client may stay nearly empty.

PFNM (Yurochkin et al., "Bayesian Nonparametric Federated Learning of Neural Networks", ICML 2019,
https://arxiv.org/abs/1905.12022) says "Dirichlet"; the exact form is that of its authors' code, which FedIMA (Zhou et al., IEEE
TMC 2024, https://arxiv.org/abs/2305.07845) uses too. Class by class, in the order of the labels: pi_c ~ Dir(alpha * 1_n), set
to 0 for every client that already holds N/n samples or more, and normalised; client i gets the slice of the shuffled class
between floor(N_c * (pi_c1 + ... + pi_c,i-1)) and floor(N_c * (pi_c1 + ... + pi_ci)). The whole draw is repeated until the
smallest client holds min_size samples.

Every sample goes to exactly one client. A client may exceed N/n by its slice of one class. The order of the classes matters:
later classes find fewer clients that are not full. Limiting cases: alpha -> infinity gives every client the same share of every
class, up to rounding down; min_size = 0 never repeats. alpha -> 0 gives each class to one client, so for n > C the repetitions
do not end: our choice is to stop after max_redraws of them. Not the same as dirichlet_per_class, which skips no client, rounds
each share, and has no minimum.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.dirichlet import log_weights, proportions, require_concentration
from fedrepro.data.partition.scheme import SCHEMES, Draw
from fedrepro.errors import UserError
from fedrepro.registry import require

_AT_ONCE = 64  # draws
_ENTRIES_AT_ONCE = 2_000_000  # of [draws, classes, clients]: 16 MB


@SCHEMES.register("dirichlet_balanced")
@dataclass(frozen=True)
class DirichletBalanced:
    """The arguments of the draw and the bound on its repetitions."""

    alpha: float  # concentration, from 1e-300 to 1e300; FedIMA's scripts use 0.1
    min_size: int = 10  # samples of the smallest client; >= 0; both authors' codes use 10
    max_redraws: int = 10_000  # >= 0; our choice: seconds. MNIST with 20 clients and alpha = 0.01 needs 2,300 on average

    def __post_init__(self) -> None:
        require_concentration("dirichlet_balanced(alpha=...)", self.alpha)
        require(self.min_size >= 0, "dirichlet_balanced(min_size=...)", self.min_size, "must be >= 0")
        require(self.max_redraws >= 0, "dirichlet_balanced(max_redraws=...)", self.max_redraws, "must be >= 0")

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """`Draw.redraws` counts the draws thrown away. UserError for an impossible minimum, or after max_redraws."""
        rule = f"{clients} clients of that size need more than the {len(labels)} training samples; "
        rule += f"use {len(labels) // clients} at most, or fewer clients"
        require(clients * self.min_size <= len(labels), "dirichlet_balanced(min_size=...)", self.min_size, rule)
        counts_CN, redraws = self._draw_counts(np.bincount(labels, minlength=classes), clients, rng)
        slices_CN = [
            np.split(rng.permutation(np.flatnonzero(labels == c)), np.cumsum(counts_N)[:-1])
            for c, counts_N in enumerate(counts_CN)
        ]
        return Draw([np.concatenate(parts) for parts in zip(*slices_CN, strict=True)], redraws)

    def _draw_counts(self, class_sizes: np.ndarray, clients: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """(samples int64 [C, n], redraws). Draws counts again in batches that double. Samples are dealt once."""
        draws, best_smallest, max_draws = 0, 0, self.max_redraws + 1
        max_batch = min(_AT_ONCE, max(1, _ENTRIES_AT_ONCE // (len(class_sizes) * clients)))
        while draws < max_draws:
            batch_size = min(max_batch, max(1, draws))
            weights_KCN = log_weights(self.alpha, (batch_size, len(class_sizes), clients), rng)
            counts_KCN = capped_counts(weights_KCN[: max_draws - draws], class_sizes)
            smallest_K = counts_KCN.sum(axis=1).min(axis=1)
            if smallest_K.max() >= self.min_size:
                first_accepted = int(np.argmax(smallest_K >= self.min_size))
                return counts_KCN[first_accepted], draws + first_accepted
            draws, best_smallest = draws + len(counts_KCN), max(best_smallest, int(smallest_K.max()))
        raise UserError(
            f"dirichlet_balanced(alpha={self.alpha!r}, min_size={self.min_size}) with {clients} clients: in {draws} draws the "
            f"smallest client got {best_smallest} samples at best; use fewer clients, a larger alpha, a smaller min_size, or a "
            f"max_redraws above {self.max_redraws}"
        )


def capped_counts(log_weights_KCN: np.ndarray, class_sizes: np.ndarray) -> np.ndarray:
    """Samples of each class for each client, int64 [K, C, n], in K independent draws of weights, without any minimum."""
    draws, _, clients = log_weights_KCN.shape
    total = class_sizes.sum()
    counts_KCN = np.zeros(log_weights_KCN.shape, dtype=np.int64)
    sizes_KN = np.zeros((draws, clients), dtype=np.int64)
    for c in np.flatnonzero(class_sizes):  # while a class is left, some client holds less than N/n
        cumulative_KN = np.cumsum(proportions(log_weights_KCN[:, c], sizes_KN * clients < total), axis=1)
        # Divided by its last entry, so that it is exactly 1 from the last client that is not full onwards.
        ends_KN = np.floor(cumulative_KN / cumulative_KN[:, -1:] * class_sizes[c]).astype(np.int64)
        counts_KCN[:, c] = np.diff(ends_KN, axis=1, prepend=0)
        sizes_KN += counts_KCN[:, c]
    return counts_KCN
