"""A partition scheme: a registered frozen dataclass that is called with labels and returns one part per client."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedrepro.registry import Registry

SCHEMES = Registry("partition scheme")


@dataclass(frozen=True)
class Draw:
    """The result of one scheme. No sample is in two parts. The scheme decides whether every sample is in one."""

    parts: list[np.ndarray]  # [n] of int64 [N_i]: indices into the training set; a part may be empty
    redraws: int = 0  # draws thrown away before this one, for schemes that repeat until a condition holds


class GroupedScheme:
    """Base class of the schemes that also read each sample's group. They are called with `groups`, int64 [N]."""


class Scheme(Protocol):
    """The arguments are the dataclass's fields, checked in `__post_init__`; all randomness comes from `rng`."""

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """labels: int64 [N]. classes: the number of classes, including those that do not occur. clients: n >= 1, at most N."""
        ...
