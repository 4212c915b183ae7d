"""P-IID: a random permutation of the training set, cut into equal parts.

FedGH's Table 2 uses it ("∞ (iid)"). When n does not divide N, the first N mod n clients hold one sample more. The slides do not
say what happens to the remainder of the division. Our choice drops no sample.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.scheme import SCHEMES, Draw


@SCHEMES.register("iid")
@dataclass(frozen=True)
class Iid:
    """No arguments."""

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Parts of floor(N/n) or floor(N/n) + 1 samples."""
        return Draw(np.array_split(rng.permutation(len(labels)), clients))
