"""P-PAM, Pachinko allocation: every client has a mix of superclasses, and within each of them a mix of its classes.

Reddi et al., "Adaptive Federated Optimization", ICLR 2021, https://arxiv.org/abs/2003.00295, appendix F, after Li and
McCallum's Pachinko allocation (ICML 2006): TensorFlow Federated's CIFAR-100, which Elastic Aggregation (Chen et al., CVPR
2023) calls Fed-CIFAR100, is pachinko(alpha=0.1, beta=10, hierarchy=cifar100) for 500 clients. FedIMA names the same scheme for
100 clients, who then have 500 samples each; its code has other partitions (`shards`, `dirichlet_unmapped`).

One client after the other draws its mix of superclasses from Dir(alpha) and, in each, its mix of classes from Dir(beta). For
each of its samples it draws a superclass, then a class of it, then one of that class's remaining samples. A class that is used
up is removed for all clients, and the others of its superclass share its weight. A superclass without classes is removed too.
So the last clients share what the first ones left over.

Sizes are floor(N/n), 100 in that data set; the N mod n samples left over are not used. Appendix F splits the test set among
100 clients too. Here the training set alone is split, and the whole test set is tested.

Limiting cases: alpha and beta -> infinity give every client all superclasses, and so all classes, in equal shares until a
class runs out; alpha -> 0 gives a client one superclass, or the next one when that is used up, and beta -> 0 one class of
each. With a single superclass, or with every class its own, it is dirichlet_per_client with clients in order instead of in
random turns.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.dirichlet import log_weights, proportions, require_concentration
from fedrepro.data.partition.hierarchy import superclasses
from fedrepro.data.partition.scheme import SCHEMES, Draw
from fedrepro.registry import require


@SCHEMES.register("pachinko")
@dataclass(frozen=True)
class Pachinko:
    """Concentrations of superclasses (alpha) and of classes within one (beta), both 1e-300 to 1e300.

    hierarchy: `cifar100`, or the classes of each superclass written out, "0-1-4 2-3".
    """

    alpha: float
    beta: float
    hierarchy: str

    def __post_init__(self) -> None:
        require_concentration("pachinko(alpha=...)", self.alpha)
        require_concentration("pachinko(beta=...)", self.beta)
        superclasses("pachinko(hierarchy=...)", self.hierarchy)

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Parts of floor(N/n) samples. UserError if the hierarchy and the data set have different numbers of classes."""
        families = superclasses("pachinko(hierarchy=...)", self.hierarchy)
        known = sum(map(len, families))
        rule = f"has {known} classes, and the data set has {classes}; give the data set's own superclasses"
        require(known == classes, "pachinko(hierarchy=...)", self.hierarchy, rule)
        over_NP = log_weights(self.alpha, (clients, len(families)), rng)
        within_NC = log_weights(self.beta, (clients, classes), rng)
        samples = [rng.permutation(np.flatnonzero(labels == c)).tolist() for c in range(classes)]
        left_C = np.array([len(of_class) for of_class in samples])
        parts = []
        for over_P, within_C in zip(over_NP, within_NC, strict=True):
            drawn = _draw(over_P, within_C, families, left_C, len(labels) // clients, rng)
            left_C -= np.bincount(drawn, minlength=classes)
            parts.append(np.array([samples[c].pop() for c in drawn], dtype=np.int64))
        return Draw(parts)


def _draw(
    over_P: np.ndarray,
    within_C: np.ndarray,
    families: list[np.ndarray],
    left_C: np.ndarray,
    size: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Classes of one client's samples, int64 [size]. Draws all at once, and draws those after a class ran out again."""
    drawn = np.zeros(0, dtype=np.int64)
    while len(drawn) < size:
        left = left_C - np.bincount(drawn, minlength=len(left_C))
        more = rng.choice(len(left), size - len(drawn), p=_mix(over_P, within_C, families, left > 0))
        used_up = (left > 0) & (np.bincount(more, minlength=len(left)) >= left)
        last = [np.flatnonzero(more == c)[left[c] - 1] for c in np.flatnonzero(used_up)]  # where each gives its last sample
        drawn = np.concatenate([drawn, more[: min(last, default=size) + 1]])
    return drawn


def _mix(over_P: np.ndarray, within_C: np.ndarray, families: list[np.ndarray], available_C: np.ndarray) -> np.ndarray:
    """Probability of each class, [C], among those that are available."""
    over = proportions(over_P, np.array([available_C[family].any() for family in families]))
    mix = np.zeros(len(available_C))
    for share, family in zip(over, families, strict=True):
        if share:
            mix[family] = share * proportions(within_C[family], available_C[family])
    return mix / mix.sum()
