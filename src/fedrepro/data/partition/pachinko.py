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
        num_classes = sum(map(len, families))
        rule = f"has {num_classes} classes, and the data set has {classes}; give the data set's own superclasses"
        require(num_classes == classes, "pachinko(hierarchy=...)", self.hierarchy, rule)
        superclass_weights_NP = log_weights(self.alpha, (clients, len(families)), rng)
        class_weights_NC = log_weights(self.beta, (clients, classes), rng)
        samples_by_class = [rng.permutation(np.flatnonzero(labels == c)).tolist() for c in range(classes)]
        remaining_C = np.array([len(class_samples) for class_samples in samples_by_class])
        parts = []
        for superclass_weights_P, class_weights_C in zip(superclass_weights_NP, class_weights_NC, strict=True):
            client_classes = _draw(superclass_weights_P, class_weights_C, families, remaining_C, len(labels) // clients, rng)
            remaining_C -= np.bincount(client_classes, minlength=classes)
            parts.append(np.array([samples_by_class[c].pop() for c in client_classes], dtype=np.int64))
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
    drawn_classes = np.zeros(0, dtype=np.int64)
    while len(drawn_classes) < size:
        remaining_C = left_C - np.bincount(drawn_classes, minlength=len(left_C))
        new_classes = rng.choice(
            len(remaining_C), size - len(drawn_classes), p=_mix(over_P, within_C, families, remaining_C > 0)
        )
        is_used_up = (remaining_C > 0) & (np.bincount(new_classes, minlength=len(remaining_C)) >= remaining_C)
        # Where each class that runs out gives its last sample.
        last_positions = [np.flatnonzero(new_classes == c)[remaining_C[c] - 1] for c in np.flatnonzero(is_used_up)]
        drawn_classes = np.concatenate([drawn_classes, new_classes[: min(last_positions, default=size) + 1]])
    return drawn_classes


def _mix(over_P: np.ndarray, within_C: np.ndarray, families: list[np.ndarray], available_C: np.ndarray) -> np.ndarray:
    """Probability of each class, [C], among those that are available."""
    superclass_shares = proportions(over_P, np.array([available_C[family].any() for family in families]))
    class_probabilities = np.zeros(len(available_C))
    for share, family in zip(superclass_shares, families, strict=True):
        if share:
            class_probabilities[family] = share * proportions(within_C[family], available_C[family])
    return class_probabilities / class_probabilities.sum()
