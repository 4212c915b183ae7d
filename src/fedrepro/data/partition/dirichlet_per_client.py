"""P-CLI(beta): every client has its own Dirichlet mix of classes, and all clients have the same size.

Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification", 2019,
https://arxiv.org/abs/1909.06335, in the exact form of FedDyn's reference code (Acar et al., ICLR 2021,
https://arxiv.org/abs/2111.04263): client i draws q_i from Dir(beta * 1_C). Then, one sample at a time, a client is chosen
uniformly among those that are not full, a class is drawn from its q_i, and it gets a random sample of that class. If no sample
of that class is left, the class is drawn again. Drawing again until a class has samples is the same as renormalising q_i over
those classes. This code renormalises, so there is one variant, and it ends however little of q_i is left.

Sizes are floor(N/n), as in that code; the N mod n samples left over are not used.
IGFL (IJCAI 2021) writes the concentration as rho * q with q the uniform distribution over C classes: beta = rho / C, so that
rho = 1 on 10 classes is beta = 0.1. FedGH's slides give an alpha and no scheme; we read it as beta.

Limiting cases: beta -> infinity gives every client all classes in equal shares, until a class runs out (classes of unequal
size make the last samples of every client those of the larger classes); beta -> 0 gives each client one class, or the next one
of its order when that is used up. When n divides N all samples are dealt, so the mixes must give way to the class sizes.
Not the same as dirichlet_per_class, which draws the clients of each class: there sizes differ and clients may be empty.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.dirichlet import log_weights, proportions, require_concentration
from fedrepro.data.partition.scheme import SCHEMES, Draw


@SCHEMES.register("dirichlet_per_client")
@dataclass(frozen=True)
class DirichletPerClient:
    """beta: concentration of every class, from 1e-300 to 1e300; IGFL uses 100, 0.1 and 0.01 on 10 classes."""

    beta: float

    def __post_init__(self) -> None:
        require_concentration("dirichlet_per_client(beta=...)", self.beta)

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """Parts of floor(N/n) samples each."""
        weights_NC = log_weights(self.beta, (clients, classes), rng)
        turns = draw_turns(np.full(clients, len(labels) // clients), rng)
        return deal_in_turns(weights_NC, labels, turns, rng)


def deal_in_turns(log_weights_NC: np.ndarray, labels: np.ndarray, turns: np.ndarray, rng: np.random.Generator) -> Draw:
    """Goes through `turns`, a list of clients, and gives each a sample of that client's mix."""
    clients, classes = log_weights_NC.shape
    turn_labels = draw_labels(log_weights_NC, np.bincount(labels, minlength=classes), turns, rng)
    samples = np.empty(len(turns), dtype=np.int64)
    for c in range(classes):
        class_turns = np.flatnonzero(turn_labels == c)
        samples[class_turns] = rng.permutation(np.flatnonzero(labels == c))[: len(class_turns)]
    ends = np.bincount(turns, minlength=clients).cumsum()
    return Draw(np.split(samples[np.argsort(turns, kind="stable")], ends[:-1]))


def draw_turns(sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The order in which clients take samples, until each has as many as `sizes` [n] says, int64 [sum of sizes].

    The next client is always uniform among those that are not full. This is the order of arrivals of n equal Poisson processes,
    each cut at its size.
    """
    gaps = np.split(rng.standard_exponential(sizes.sum()), sizes.cumsum()[:-1])
    order = np.argsort(np.concatenate([gap.cumsum() for gap in gaps]), kind="stable")
    return np.repeat(np.arange(len(sizes)), sizes)[order]


def draw_labels(log_weights_NC: np.ndarray, supply_C: np.ndarray, client_S: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws a class for each of S slots, in order, from its client's weights, among the classes that earlier slots left over.

    supply_C: samples of each class, at least S in all. Returns int64 [S]. Takes at most C + 1 passes over the slots: all are
    drawn at once, and when a class runs out, the later slots that drew it are drawn again.
    """
    remaining_C = supply_C.copy()
    class_S = _draw(log_weights_NC, remaining_C > 0, client_S, rng)
    start = 0  # slots before it are final
    while True:
        pending_classes = class_S[start:]
        overdrawn_classes = np.flatnonzero(np.bincount(pending_classes, minlength=len(remaining_C)) > remaining_C)
        if not len(overdrawn_classes):
            return class_S
        # The first slot that drew a used-up class.
        stop = min(np.flatnonzero(pending_classes == c)[remaining_C[c]] for c in overdrawn_classes)
        remaining_C -= np.bincount(pending_classes[:stop], minlength=len(remaining_C))
        start += int(stop)
        redrawn_slots = start + np.flatnonzero(remaining_C[class_S[start:]] == 0)
        class_S[redrawn_slots] = _draw(log_weights_NC, remaining_C > 0, client_S[redrawn_slots], rng)


def _draw(log_weights_NC: np.ndarray, available_C: np.ndarray, client_S: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Independent draws by inverse distribution function. Those of all clients lie end to end, client i in [i, i + 1]."""
    clients, classes = log_weights_NC.shape
    cumulative_NC = np.cumsum(proportions(log_weights_NC, available_C), axis=1)
    cumulative_NC /= cumulative_NC[:, -1:]
    ends = (cumulative_NC + np.arange(clients)[:, None]).ravel()
    class_S = np.searchsorted(ends, client_S + rng.random(len(client_S)), side="right") - client_S * classes
    return np.minimum(class_S, np.flatnonzero(available_C)[-1])  # i + u may round up to i + 1
