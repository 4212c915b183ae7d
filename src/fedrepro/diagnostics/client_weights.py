"""The weights that clients have in a round, learned or by data size. FedLAW, ICML 2023, Figure 5 (right)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, RoundModels, Value


@DIAGNOSTICS.register("client_weights")
@dataclass(frozen=True)
class ClientWeights(Diagnostic):
    """`client_weight` is each client's lambda; where the method leaves none, its share of the data. `groups`: the first
    clients, by id, are a group: `weight_first` is the sum of their weights. Nothing where no client trained."""

    groups: int = 0
    metrics: ClassVar[tuple[str, ...]] = ("client_weight", "weight_first")

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields each client's weight, then the group's."""
        if not kept.clients:
            return
        weights = kept.server.get("lambda", kept.weights).double().tolist()
        for client, value in zip(kept.clients, weights, strict=True):
            yield Value(kept.round, "client_weight", value, client=client)
        if self.groups:
            first = members(kept.clients, self.groups)["first"]
            yield Value(kept.round, "weight_first", sum(weights[place] for place in first))


def members(clients: list[int], groups: int) -> dict[str, list[int]]:
    """Places in `clients` of the `first` group, whose ids are below `groups`, and of the `second`; empty without groups."""
    if not groups:
        return {}
    first_places = [place for place, client in enumerate(clients) if client < groups]
    return {"first": first_places, "second": [place for place in range(len(clients)) if place not in first_places]}
