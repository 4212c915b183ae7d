"""P-CLI(beta), filled client by client: the first clients get their drawn mix of classes, the last ones the remaining samples.

Each client has a Dirichlet mix of classes and floor(N/n) samples, as in `dirichlet_per_client`. There the clients take samples
one at a time, in random turns, so a class runs out for all of them at about the same time, and each ends with samples of
several classes. Here client 0 takes all its samples first, then client 1, and so on: early clients keep to their mix, and what
does not fit falls to the last ones. Our choice, to show how much the order matters: FedGH's slides do not say how a used-up
class is replaced.

Limiting cases: as for `dirichlet_per_client`; beta -> infinity makes both the same in distribution.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.dirichlet import log_weights, require_concentration
from fedrepro.data.partition.dirichlet_per_client import deal_in_turns
from fedrepro.data.partition.scheme import SCHEMES, Draw


@SCHEMES.register("dirichlet_first_come")
@dataclass(frozen=True)
class DirichletFirstCome:
    """beta: concentration of every class, from 1e-300 to 1e300."""

    beta: float

    def __post_init__(self) -> None:
        require_concentration("dirichlet_first_come(beta=...)", self.beta)

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Parts of floor(N/n) samples each."""
        weights_NC = log_weights(self.beta, (clients, classes), rng)
        return deal_in_turns(weights_NC, labels, np.repeat(np.arange(clients), len(labels) // clients), rng)
