"""The status of a cell, and the rule behind it."""

from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal[
    "reproduced", "consistent", "inconclusive", "not reproduced", "not run", "not printed", "not comparable", "not judged"
]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True)
class Rule:
    """When a measured mean counts as the printed number.

    `tolerance`: points of difference that still count as `reproduced` (>= 0). What a point is, the unit says
    (`fedrepro.units`). 1.0 is our choice: two sets of three seeds with a standard deviation of 0.5 differ by up to 1.13 points
    by chance (Welch, 95 %).
    `widest`: the widest margin, in points, with which runs can tell anything (> 0). 5.0 is our choice: with a wider one a
    method that is several points better or worse than the printed one would still pass.
    `level`: of the prediction interval.
    """

    tolerance: float = 1.0
    widest: float = 5.0
    level: float = 0.95


@dataclass(frozen=True)
class Alternative:
    """The counts under other thresholds."""

    tolerance: float
    widest: float
    counts: dict[Status, int]
