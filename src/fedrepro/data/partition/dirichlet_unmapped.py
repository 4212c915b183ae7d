"""dirichlet_per_client as FedIMA's code deals out CIFAR-100: the indices of a shuffled data set, not mapped back.

That code shuffles the labels, gives every client its Dirichlet mix of the shuffled ones, and returns positions in the shuffled
order instead of indices of the data set. So a client's samples have nothing to do with the labels that it chose: it gets as
many as the others, drawn at random, whatever beta is. FedIMA (Zhou et al., IEEE TMC 2024, https://arxiv.org/abs/2305.07845)
says that its CIFAR-100 follows Pachinko allocation; the code has this with beta = 0.5, and 20 shards per client elsewhere. We
found it by running that code, and keep it under another name, since it affects the CIFAR-100 rows of the paper's table 1.

Sizes are floor(N/n). Limiting case: every beta is iid with equal sizes, in distribution.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.dirichlet import require_concentration
from fedrepro.data.partition.dirichlet_per_client import DirichletPerClient
from fedrepro.data.partition.scheme import SCHEMES, Draw


@SCHEMES.register("dirichlet_unmapped")
@dataclass(frozen=True)
class DirichletUnmapped:
    """beta: concentration of every class in the mixes that have no effect, from 1e-300 to 1e300; 0.5 in the authors' code."""

    beta: float = 0.5

    def __post_init__(self) -> None:
        require_concentration("dirichlet_unmapped(beta=...)", self.beta)

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Parts of floor(N/n) samples each."""
        return DirichletPerClient(self.beta)(labels[rng.permutation(len(labels))], classes, clients, rng)
