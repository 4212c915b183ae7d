"""dirichlet_per_client as FedIMA's code deals out CIFAR-100: the indices of a shuffled data set, not mapped back.

That code shuffles the labels, gives every client its Dirichlet mix among the shuffled ones, and returns places in the shuffled
order where indices of the data set are wanted. So a client gets samples that have nothing to do with the labels it chose: as
many as the others, drawn at random, whatever beta is. FedIMA (Zhou et al., IEEE TMC 2024, https://arxiv.org/abs/2305.07845)
says that its CIFAR-100 follows Pachinko allocation; the code has this with beta = 0.5, and 20 shards a client elsewhere. Found
by running the authors' code, and kept under another name, since it bears on the CIFAR-100 rows of that paper's table 1.

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
    """beta: concentration of every class in the mixes that are lost, from 1e-300 to 1e300; 0.5 in the authors' code."""

    beta: float = 0.5

    def __post_init__(self) -> None:
        require_concentration("dirichlet_unmapped(beta=...)", self.beta)

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Parts of floor(N/n) samples each."""
        return DirichletPerClient(self.beta)(labels[rng.permutation(len(labels))], classes, clients, rng)
