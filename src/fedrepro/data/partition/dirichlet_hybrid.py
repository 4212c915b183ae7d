"""P-HYB: some clients have balanced data, and the others share the rest in skewed proportions.

FedLAW (ICML 2023, https://arxiv.org/abs/2302.10911, appendix D, "Data partition") draws a partition of all n clients with
alpha_first, keeps half of these clients, and draws the others from the remaining data with alpha_rest. Figures 5 and 13 have 20
clients, 10 and 0.1. As in `dirichlet_per_class` the proportions are drawn for each class, and rounded as there: pi_c comes from
Dir(alpha_first * 1_n), and the first `first` clients keep their proportions of it. A draw from Dir(alpha_rest * 1_(n - first))
splits the sum of the others' proportions. Client sizes differ, and a client may end up with nothing.

Limiting cases: first = n is dirichlet_per_class(alpha=alpha_first), and first = 0 is dirichlet_per_class(alpha=alpha_rest),
both to the bit.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.dirichlet_per_class import deal
from fedrepro.data.partition.scheme import SCHEMES, Draw
from fedrepro.errors import UserError
from fedrepro.registry import require


@SCHEMES.register("dirichlet_hybrid")
@dataclass(frozen=True)
class DirichletHybrid:
    """alpha_first, alpha_rest: concentrations, > 0 and finite. first: how many clients, the first ones, keep their share from
    alpha_first, from 0 to n; null is n // 2."""

    alpha_first: float = 10.0
    alpha_rest: float = 0.1
    first: int | None = None

    def __post_init__(self) -> None:
        for key in ("alpha_first", "alpha_rest"):
            value = getattr(self, key)
            require(math.isfinite(value) and value > 0, f"dirichlet_hybrid({key}=...)", value, "must be finite and > 0")
        require(self.first is None or self.first >= 0, "dirichlet_hybrid(first=...)", self.first, "must be at least 0")

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Every sample goes to exactly one client. UserError for `first` above the number of clients."""
        first = clients // 2 if self.first is None else self.first
        require(first <= clients, "dirichlet_hybrid(first=...)", first, f"there are {clients} clients; use {clients} at most")
        slices_CN = []
        for c in range(classes):
            order = rng.permutation(np.flatnonzero(labels == c))
            shares, remaining_share = np.zeros(0), 1.0
            if first:
                client_shares = self._drawn("alpha_first", clients, rng)
                shares, remaining_share = client_shares[:first], client_shares[first:].sum()
            if first < clients:
                shares = np.concatenate([shares, remaining_share * self._drawn("alpha_rest", clients - first, rng)])
            slices_CN.append(deal(order, shares))
        return Draw([np.concatenate(parts) for parts in zip(*slices_CN, strict=True)])

    def _drawn(self, key: str, clients: int, rng: np.random.Generator) -> np.ndarray:
        alpha = getattr(self, key)
        shares = rng.dirichlet(np.full(clients, alpha))
        if not abs(shares.sum() - 1) < 1e-6:  # overflow gives zeros, underflow NaN
            raise UserError(f"dirichlet_hybrid({key}={alpha!r}): too extreme to draw from; use 1e-6 to 1e6")
        return shares
