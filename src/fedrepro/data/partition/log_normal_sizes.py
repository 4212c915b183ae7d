"""P-LOGN(sigma): client sizes from a log-normal distribution, content IID.

The "imbalanced" clients of Elastic Aggregation (Chen et al., "Elastic Aggregation for Federated Optimization", CVPR 2023): that
paper names the distribution and gives no formula. Ours is the common one, of FedDyn's reference code (Acar et al., ICLR 2021,
https://arxiv.org/abs/2111.04263): sizes from LogNormal(log(N/n), sigma^2), rescaled to the sum N, which cancels N/n. Rounding
differs: that code rounds down and gives the whole difference to one client; here the clients with the largest remainders get
one sample more, so every size is within one of its exact value.

The set is permuted and cut into consecutive parts of these sizes: every sample goes to exactly one client. Rounding may leave a
client with nothing; it stays in the partition with size 0 and training leaves it out. There is no minimum size.
Limiting cases: sigma = 0 is iid, with the very same parts at the same seed; sigma -> infinity gives everything to one client.
Sizes only, no label skew: `log_normal_dirichlet` has both.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.scheme import SCHEMES, Draw
from fedrepro.registry import require


@SCHEMES.register("log_normal_sizes")
@dataclass(frozen=True)
class LogNormalSizes:
    """sigma: standard deviation of the logarithm of the size, >= 0; 0.3 is our choice for "imbalanced"."""

    sigma: float

    def __post_init__(self) -> None:
        require_sigma("log_normal_sizes(sigma=...)", self.sigma)

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """The permutation is drawn first and the sizes second, so that sigma = 0 is iid to the sample."""
        order = rng.permutation(len(labels))
        return Draw(np.split(order, np.cumsum(draw_sizes(self.sigma, len(labels), clients, rng))[:-1]))


def require_sigma(where: str, value: float) -> None:
    """UserError unless `value` lies in [0, 1e300]."""
    require(0 <= value <= 1e300, where, value, "must be >= 0, at most 1e300")


def draw_sizes(sigma: float, total: int, clients: int, rng: np.random.Generator) -> np.ndarray:
    """Sizes of all clients, int64 [n], with the sum `total`."""
    exponents = sigma * rng.standard_normal(clients)
    return round_to_sum(np.exp(exponents - exponents.max()), total)  # the largest weight is 1: no overflow


def round_to_sum(weights: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers of sum `total` in proportion to `weights` (>= 0, not all 0), by largest remainder; ties to the first.

    Integers int64 of the shape of `weights` [n], each the exact share rounded down or up.
    """
    exact_shares = weights * (total / math.fsum(weights))
    integer_shares = np.floor(exact_shares).astype(np.int64)
    integer_shares[np.argsort(integer_shares - exact_shares, kind="stable")[: total - integer_shares.sum()]] += 1
    return integer_shares
