"""A window over rounds: the last weights, and their mean."""

from collections.abc import Sequence

from fedrepro.tree import Tree

Window = tuple[Tree, ...]  # weights of rounds, each [D], oldest first


def last(weights: Sequence[Tree], count: int) -> Window:
    """The last `count` of them, or all if there are fewer."""
    return tuple(weights[max(0, len(weights) - count) :])


def mean(weights: Sequence[Tree]) -> Tree:
    """Added up from the oldest on, so that its bits follow from the weights alone; of one, that one itself."""
    if len(weights) == 1:
        return weights[0]
    total = weights[0].flat.clone()
    for tree in weights[1:]:
        total += tree.flat
    return weights[0].like(total / len(weights))
