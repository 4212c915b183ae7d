"""A method and a partition, by the names that tables use."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedrepro.data.partition import draw, needs_groups
from fedrepro.errors import UserError
from fedrepro.methods.compose import Method
from fedrepro.methods.compose import compose as composed
from fedrepro.registry import require


def compose(text: str) -> Method:
    """The method behind `text`, `fedprox(mu=0.1)+gh`; `str` of it spells out every part with every argument.

    UserError for an unknown name or argument, a value out of range, and for two parts that want one slot.
    """
    return composed(text)


def partition(
    scheme: str,
    labels: Any,
    clients: int = 10,
    seed: int = 8,
    *,
    classes: int | None = None,
    groups: Any = None,
) -> list[np.ndarray]:
    """One array of positions in `labels` for each client, int64 [N_i], ascending: the partition of a run at this seed.

    scheme: a call such as `dirichlet_per_client(beta=0.5)`; `fedrepro list partitions` has all. labels: whole numbers [N] from
    0. classes: how many there are, the largest label and one more where it is not given. groups: whole numbers [N], for schemes
    that read them. UserError for an unknown scheme, a value out of range, and for more clients than samples.
    """
    for key, value, least in (("clients", clients, 1), ("seed", seed, 0)):
        require(type(value) is int and value >= least, f"partition: {key}", value, f"must be a whole number from {least} up")
    if groups is None and needs_groups(scheme):
        raise UserError(f"partition({scheme!r}): reads groups of samples; give them as groups=[...]")
    values = whole_numbers("labels", labels)
    known = None if groups is None else whole_numbers("groups", groups)
    return draw(scheme, values, classes or int(values.max()) + 1, clients, seed, known).parts


def whole_numbers(where: str, values: Any) -> np.ndarray:
    """`values`, an array, a tensor or a list, as int64 [N]. UserError where they are none, or below 0."""
    found = np.asarray(values.cpu() if hasattr(values, "cpu") else values)
    require(found.ndim == 1 and len(found) > 0, f"the shape of {where}", found.shape, "must be [N], with N at least 1")
    whole = np.issubdtype(found.dtype, np.integer)
    require(whole, f"the type of {where}", str(found.dtype), "must be whole numbers")
    require(int(found.min()) >= 0, f"the least of {where}", int(found.min()), "must be at least 0")
    return found.astype(np.int64)


def index_arrays(clients: Sequence[Any], samples: int) -> list[np.ndarray]:
    """Positions per client, int64, as they are given. UserError for one that is no sample, or that two clients hold."""
    parts = [np.asarray(part.cpu() if hasattr(part, "cpu") else part, np.int64).reshape(-1) for part in clients]
    require(len(parts) > 0, "clients", len(parts), "must be at least one array of positions")
    taken = np.concatenate(parts)
    outside = taken[(taken < 0) | (taken >= samples)]
    require(not len(outside), "clients: position", int(outside[0]) if len(outside) else 0, f"there are {samples} samples")
    values, counts = np.unique(taken, return_counts=True)
    twice = values[counts > 1]
    require(not len(twice), "clients: position", int(twice[0]) if len(twice) else 0, "is given twice; a sample has one client")
    return parts
