"""A method and a partition, by the names that tables use."""

from typing import Any

import numpy as np

from fedrepro.api.arguments import class_count, whole_number, whole_numbers
from fedrepro.data.partition import draw, needs_groups
from fedrepro.errors import UserError
from fedrepro.methods.compose import Method
from fedrepro.methods.compose import compose as composed
from fedrepro.registry import require


def compose(text: str) -> Method:
    """Returns the method behind `text`, `fedprox(mu=0.1)+gh`; `str` of it spells out every part with every argument.

    UserError for an unknown name or argument, a value out of range, and for two parts that want one slot.
    """
    if not isinstance(text, str):
        raise UserError(f"compose({text!r:.60}): give a method as text, such as 'fedprox(mu=0.1)+gh'")
    return composed(text)


def partition(
    scheme: str, labels: Any, clients: int = 10, seed: int = 8, *, classes: int | None = None, groups: Any = None
) -> list[np.ndarray]:
    """One array of positions in `labels` for each client, int64 [N_i], ascending: the partition of a run at this seed.

    scheme: a call such as `dirichlet_per_client(beta=0.5)`; `fedrepro list partitions` has all. labels: whole numbers [N] from
    0. classes: how many there are; the largest label and one more if it is not given, and then each class must have a sample.
    groups: whole numbers [N], for schemes that read them. UserError for an unknown scheme, a value out of range, and for more
    clients than samples.
    """
    if not isinstance(scheme, str):
        raise UserError(f"partition({scheme!r:.60}): give a scheme as text, such as 'dirichlet_per_client(beta=0.5)'")
    clients, seed = whole_number("partition: clients", clients, 1), whole_number("partition: seed", seed, 0)
    if groups is None and needs_groups(scheme):
        raise UserError(f"partition({scheme!r}): reads groups of samples; give them as groups=[...]")
    values = whole_numbers("labels", labels)
    group_numbers = None if groups is None else whole_numbers("groups", groups)
    if group_numbers is not None:
        require(len(group_numbers) == len(values), "partition: groups", len(group_numbers), f"there are {len(values)} labels")
    return draw(scheme, values, class_count("partition", values, classes), clients, seed, group_numbers).parts
