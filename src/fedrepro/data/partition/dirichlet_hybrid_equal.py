"""`dirichlet_hybrid` for clients of one size: FedLAW's toy of three clients (Figure 12; ICML 2023, appendix B).

The paper samples the data of client 0 with alpha_1, then those of clients 1 and 2 from the remaining data with alpha_2. It says
that all have the same size, and gives no values. Its appendix D.2 uses the draw of Figure 5 (`dirichlet_hybrid`) instead, where
sizes differ and half of the clients keep their data, although the toy has three clients. Our choice is the draw of
`dirichlet_per_client`, which has equal sizes. Each client draws its mix of classes. The first `first` clients, with mixes from
Dir(alpha_first * 1_C), take floor(N/n) samples each; then the others, with mixes from Dir(alpha_rest * 1_C), take as many of
what is left. A class that is used up is drawn again. The N mod n samples left over are not used.

Limiting cases, to the bit: first = n is dirichlet_per_client(beta=alpha_first), first = 0 is
dirichlet_per_client(beta=alpha_rest). With a large alpha_rest the others have the same classes, those that the first ones left;
with a small one they differ.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.dirichlet import log_weights, require_concentration
from fedrepro.data.partition.dirichlet_per_client import deal_in_turns, draw_turns
from fedrepro.data.partition.scheme import SCHEMES, Draw
from fedrepro.registry import require


@SCHEMES.register("dirichlet_hybrid_equal")
@dataclass(frozen=True)
class DirichletHybridEqual:
    """alpha_first, alpha_rest: concentrations of every class, from 1e-300 to 1e300. first: clients that take their samples
    before the others, from 0 to n."""

    alpha_first: float
    alpha_rest: float
    first: int = 1

    def __post_init__(self) -> None:
        for key in ("alpha_first", "alpha_rest"):
            require_concentration(f"dirichlet_hybrid_equal({key}=...)", getattr(self, key))
        require(self.first >= 0, "dirichlet_hybrid_equal(first=...)", self.first, "must be at least 0")

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Parts of floor(N/n) samples each. UserError for `first` above the number of clients."""
        rule = f"there are {clients} clients; use {clients} at most"
        require(self.first <= clients, "dirichlet_hybrid_equal(first=...)", self.first, rule)
        remaining_index, size, parts = np.arange(len(labels)), len(labels) // clients, list[np.ndarray]()
        for alpha, count in ((self.alpha_first, self.first), (self.alpha_rest, clients - self.first)):
            if count:
                weights_NC = log_weights(alpha, (count, classes), rng)
                subset_draw = deal_in_turns(weights_NC, labels[remaining_index], draw_turns(np.full(count, size), rng), rng)
                parts += [remaining_index[part] for part in subset_draw.parts]
                remaining_index = np.setdiff1d(remaining_index, np.concatenate(parts))
        return Draw(parts)
