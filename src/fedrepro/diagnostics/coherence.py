"""Local gradient coherence: how far the clients' updates of a round point the same way. FedLAW, ICML 2023, Definition 5.1,
Figures 5 and 6.

With g_i = w - w_i, the weights that the clients received less those that they send: c(i, j) = cos(g_i, g_j), and of a cohort of
m clients (1/m) sum_{i != j} lambda_i lambda_j c(i, j), over ordered pairs. The paper divides by m although lambda sums to 1
already; we keep it, since only the sign and the shape over rounds are read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fedrepro import tree
from fedrepro.diagnostics.client_weights import members
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, RoundModels, Value
from fedrepro.errors import UserError
from fedrepro.lazy import Tensor, torch
from fedrepro.registry import require


@DIAGNOSTICS.register("coherence")
@dataclass(frozen=True)
class Coherence(Diagnostic):
    """`weights`: lambda is the clients' share of the data (size), or what the method learned in the round (learned).

    `groups`: the first clients, by id, are one group and the others another; 0: there are none. `coherence_first` and
    `coherence_second` take both clients of a pair from one group, whose weights then sum to 1 and whose size is m (our choice:
    the groups are compared, not what each adds to the whole). `mean_cosine` is the plain mean over pairs. `coherence_pairs` is
    the matrix between clients x and y. No value where fewer than two clients trained, or are in a group.
    """

    groups: int = 0
    weights: str = "size"

    metrics: ClassVar[tuple[str, ...]] = (
        *("coherence", "coherence_first", "coherence_second"),
        *("mean_cosine", "coherence_pairs"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.weights in ("size", "learned"), "weights", self.weights, "must be size or learned")

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the round's numbers, then the matrix; in float64."""
        count = len(kept.clients)
        if count < 2:
            return
        if self.weights == "learned" and "lambda" not in kept.server:
            raise UserError(f"{self.name}: the method leaves no learned weights of its clients; take fedlaw or attentive_law")
        lambda_K = (kept.weights if self.weights == "size" else kept.server["lambda"]).double().cpu()
        cosines_KK = cosines(kept.params.like(kept.params.flat.double() - kept.before.params.flat.double()))
        yield Value(kept.round, "coherence", coherence(cosines_KK, lambda_K))
        for metric, places in members(kept.clients, self.groups).items():
            if len(places) > 1:
                value = coherence(cosines_KK[places][:, places], lambda_K[places])
                yield Value(kept.round, f"coherence_{metric}", value)
        yield Value(kept.round, "mean_cosine", float(_off_diagonal(cosines_KK).sum()) / (count * (count - 1)))
        for row, x in enumerate(kept.clients):
            for column, y in enumerate(kept.clients):
                yield Value(kept.round, "coherence_pairs", float(cosines_KK[row, column]), x=float(x), y=float(y))


def cosines(updates: "tree.Tree") -> "Tensor":
    """Returns cosines [K, K] between the rows of updates [K, D], in float64 on the host; not a number where one is zero."""
    inner_KK = tree.gram(updates).cpu()
    lengths_K = inner_KK.diagonal().sqrt()
    return inner_KK / lengths_K.outer(lengths_K)


def coherence(cosines_KK: "Tensor", lambda_K: "Tensor") -> float:
    """(1/K) sum_{i != j} lambda_i lambda_j c(i, j), lambda made to sum to 1."""
    shares_K = lambda_K / lambda_K.sum()
    return float(shares_K @ _off_diagonal(cosines_KK) @ shares_K) / len(shares_K)


def _off_diagonal(matrix_KK: "Tensor") -> "Tensor":
    """Returns the matrix with zeros on its diagonal."""
    return torch.where(torch.eye(len(matrix_KK), dtype=torch.bool), 0.0, matrix_KK)
