"""How far the clients' models lie from the global model after local training: ||w_k - x||, Euclidean, all parameters.

The largest is FedIMA's "locality", max_i ||w_i - w||, which its bound contains. Running statistics are no parameters.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro import tree
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, RoundModels, Value
from fedrepro.registry import require


@DIAGNOSTICS.register("client_distance")
@dataclass(frozen=True)
class ClientDistance(Diagnostic):
    """`to`: x is the global model after the round, or before it. `relative`: divided by ||x||.

    A round's value is the mean over its cohort, each client counting once; `client_distance_max` is the largest. A round in
    which no client trained has none.
    """

    to: str = "after"
    relative: bool = False
    metrics: ClassVar[tuple[str, ...]] = ("client_distance", "client_distance_max")

    def __post_init__(self) -> None:
        require(self.to in ("after", "before"), "to", self.to, "must be after or before")

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the mean, each client's distance, then the largest; computed in float64."""
        metric, largest = self.metrics
        x = (kept.after if self.to == "after" else kept.before).params.flat.double()
        distances = tree.norm(kept.params.like(kept.params.flat.double() - x)).tolist()
        scale = float(tree.norm(kept.before.params.like(x))) if self.relative else 1.0
        values = [distance / scale if scale else float("nan") for distance in distances]
        if values:
            yield Value(kept.round, metric, sum(values) / len(values))
        for client, value in zip(kept.clients, values, strict=True):
            yield Value(kept.round, metric, value, client=client)
        if values:
            yield Value(kept.round, largest, float(np.max(values)))  # NaN if one of them is
