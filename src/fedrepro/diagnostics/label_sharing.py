"""Whether self-attention finds the clients that share labels. Huang et al., "Behavior Mimics Distribution", IJCAI 2021,
https://arxiv.org/abs/2106.12300, section 5.4 and Figure 2.

The paper draws the attention between ten clients, averaged over rounds, and says that up to 96 % of the darker fields belong to
pairs with a label in common. It does not say which fields count as dark; here two rules are applied (our choice).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, RoundModels, Task, Value
from fedrepro.errors import UserError
from fedrepro.registry import require

LEAST = 0.1  # a client has a label if it fills at least this share of its samples


@DIAGNOSTICS.register("label_sharing")
@dataclass(frozen=True)
class LabelSharing(Diagnostic):
    """`of`: the softmax weights or the scores before it. `rule`, for what is marked:

    nearest: of every client its k highest fields, without its own, where k clients share a label with it. threshold: the M
    highest fields of all after (a_ij + a_ji) / 2, where M pairs share a label. `label_pairs_found` is the percentage of the
    marked fields that belong to such pairs, `label_pairs_by_chance` what fields marked at random would give on average; none
    where no pair shares a label. Both rules use the number of clients or pairs that share one. So `attention_shared` and
    `attention_apart` say how far the fields lie apart: the mean over fields of two different clients with a label in common,
    and of the others. `attention` is the averaged matrix: x pays attention to y.
    """

    of: str = "weights"
    rule: str = "nearest"
    metrics: ClassVar[tuple[str, ...]] = (
        *("label_pairs_found", "label_pairs_by_chance"),
        *("attention_shared", "attention_apart", "attention"),
    )

    def __post_init__(self) -> None:
        require(self.of in ("weights", "scores"), "of", self.of, "must be weights or scores")
        require(self.rule in ("nearest", "threshold"), "rule", self.rule, "must be nearest or threshold")

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """UserError for a method without self-attention."""
        if (attention := kept.server.get(f"attention_{self.of}")) is None:
            raise UserError(f"{self.name}: the method has no self-attention; take attention(kind=self), of 100 clients at most")
        matrix_NN = attention.cpu().numpy()
        shared_NN = sharing(owned_labels(task()))
        if shared_NN.any():
            rule = nearest if self.rule == "nearest" else threshold
            for metric, value in zip(self.metrics, rule(matrix_NN, shared_NN), strict=False):
                yield Value(kept.round, metric, value)
            for metric, fields_NN in zip(self.metrics[2:], (shared_NN, distances(shared_NN)), strict=False):
                if not np.isnan(matrix_NN[fields_NN]).all():
                    yield Value(kept.round, metric, float(np.nanmean(matrix_NN[fields_NN])))
        for (x, y), value in np.ndenumerate(matrix_NN):
            yield Value(kept.round, "attention", float(value), x=float(x), y=float(y))


def owned_labels(task: Task) -> list[set[int]]:
    """The labels of every client that fill at least a tenth of its training samples."""
    label_sets = []
    for index in task.client_index:
        labels, counts = np.unique(task.train.y[index].cpu().numpy(), return_counts=True)
        label_sets.append({int(label) for label, count in zip(labels, counts, strict=True) if count >= LEAST * counts.sum()})
    return label_sets


def sharing(labels: list[set[int]]) -> np.ndarray:
    """Returns which two different clients have a label in common, bool [N, N]."""
    return np.array([[i != j and bool(first & second) for j, second in enumerate(labels)] for i, first in enumerate(labels)])


def distances(shared_NN: np.ndarray) -> np.ndarray:
    """Returns which two different clients have no label in common, bool [N, N]."""
    return ~(shared_NN | np.eye(len(shared_NN), dtype=bool))


def nearest(matrix_NN: np.ndarray, shared_NN: np.ndarray) -> tuple[float, float]:
    """(percentage found, by chance): of each client as many of its highest fields as clients share a label with it."""
    clients, hits, counts_N = len(matrix_NN), 0, shared_NN.sum(axis=1)
    for i, k in enumerate(counts_N):
        other_clients = np.delete(np.arange(clients), i)
        marked_clients = other_clients[np.argsort(-_rank_unmet_last(matrix_NN[i, other_clients]), kind="stable")[:k]]
        hits += int(shared_NN[i, marked_clients].sum())
    return 100 * hits / int(counts_N.sum()), 100 * float((counts_N**2).sum()) / (clients - 1) / int(counts_N.sum())


def threshold(matrix_NN: np.ndarray, shared_NN: np.ndarray) -> tuple[float, float]:
    """(percentage found, by chance): as many of the highest symmetric fields as pairs share a label."""
    rows, columns = np.triu_indices(len(matrix_NN), 1)
    shared_pairs = shared_NN[rows, columns]
    symmetric_values = _rank_unmet_last(matrix_NN[rows, columns] + matrix_NN[columns, rows])
    marked_pairs = np.argsort(-symmetric_values, kind="stable")[: shared_pairs.sum()]
    return 100 * float(shared_pairs[marked_pairs].mean()), 100 * float(shared_pairs.mean())


def _rank_unmet_last(values: np.ndarray) -> np.ndarray:
    """Returns the values, smallest for two clients that never took part in the same round, so that they rank last."""
    return np.where(np.isnan(values), -np.inf, values)
