"""Two groups of clients, by id, and the weights that a method learned for the clients of a round."""

from fedrepro.diagnostics.diagnostic import RoundModels
from fedrepro.errors import UserError
from fedrepro.lazy import Tensor


def members(clients: list[int], groups: int) -> dict[str, list[int]]:
    """Places in `clients` of the `first` group, whose ids are below `groups`, and of the `second`; empty without groups."""
    if not groups:
        return {}
    first_places = [place for place, client in enumerate(clients) if client < groups]
    return {"first": first_places, "second": [place for place in range(len(clients)) if place not in first_places]}


def learned(kept: RoundModels, diagnostic: str) -> Tensor:
    """The weights lambda [K] that the method learned for the round's clients. UserError for a method that learns none."""
    if "lambda" not in kept.server:
        raise UserError(f"{diagnostic}: the method leaves no learned weights of its clients; take fedlaw or attentive_law")
    return kept.server["lambda"]
