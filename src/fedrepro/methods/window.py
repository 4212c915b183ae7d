"""A window over rounds: the last weights, and their mean."""

from collections.abc import Sequence

from fedrepro.tree import Tree

Window = tuple[Tree, ...]  # weights of rounds, each [D], oldest first


def last(weights: Sequence[Tree], count: int) -> Window:
    """The last `count` weights, or all if there are fewer."""
    return tuple(weights[max(0, len(weights) - count) :])


def mean(weights: Sequence[Tree]) -> Tree:
    """The mean, added up from the oldest on, so that its bits depend only on the weights. A single one is returned
    unchanged."""
    if len(weights) == 1:
        return weights[0]
    total = weights[0].flat.clone()
    for tree in weights[1:]:
        total += tree.flat
    return weights[0].like(total / len(weights))
