"""P-LOGN(sigma) with P-CLI(alpha): client sizes from a log-normal distribution, and each client's own Dirichlet mix of classes.

The unbalanced clients of Elastic Aggregation (Chen et al., "Elastic Aggregation for Federated Optimization", CVPR 2023). The
paper names both distributions, lets one alpha control both, and gives no formula. We follow FedDyn's reference code (Acar et
al., ICLR 2021, https://arxiv.org/abs/2111.04263): sizes as in `log_normal_sizes`, then samples dealt one at a time in random
turns as in `dirichlet_per_client`, until each client has its size. So classes are drawn for each client. Yurochkin et al., whom
the paper cites for its label ratios, draw clients for each class (`dirichlet_balanced`). sigma does not depend on alpha (our
choice): the paper says that clients differ more where alpha is small, and gives no other spread of sizes.

All N samples are dealt. Rounding may leave a client with nothing; there is no minimum size.
Limiting cases: sigma = 0 gives sizes that differ by one at most, N/n; alpha -> infinity gives every client all classes in equal
shares until a class runs out; sigma -> infinity gives everything to one client.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.dirichlet import log_weights, require_concentration
from fedrepro.data.partition.dirichlet_per_client import deal_in_turns, draw_turns
from fedrepro.data.partition.log_normal_sizes import draw_sizes, require_sigma
from fedrepro.data.partition.scheme import SCHEMES, Draw


@SCHEMES.register("log_normal_dirichlet")
@dataclass(frozen=True)
class LogNormalDirichlet:
    """sigma: standard deviation of the logarithm of the size, >= 0; alpha: concentration of every class, 1e-300 to 1e300."""

    sigma: float
    alpha: float

    def __post_init__(self) -> None:
        require_sigma("log_normal_dirichlet(sigma=...)", self.sigma)
        require_concentration("log_normal_dirichlet(alpha=...)", self.alpha)

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Sizes are drawn first, then the mixes, then the turns."""
        sizes = draw_sizes(self.sigma, len(labels), clients, rng)
        weights_NC = log_weights(self.alpha, (clients, classes), rng)
        return deal_in_turns(weights_NC, labels, draw_turns(sizes, rng), rng)
