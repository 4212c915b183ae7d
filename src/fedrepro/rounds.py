"""Where in a run something starts: a round (from 0), or a share of the rounds. One rule for schedules and methods; no torch."""

import math

from fedrepro.registry import require

Start = int | float


def require_start(where: str, start: Start) -> None:
    """UserError unless it is a round, a whole number from 0 on, or a share between 0 and 1."""
    good = start >= 0 if isinstance(start, int) else 0 < start < 1
    require(good, where, start, "must be a round (a whole number, at least 0) or a share of the rounds (above 0 and below 1)")


def first(start: Start, rounds: int) -> int:
    """The round that `start` names in a run of `rounds` rounds. A whole number is the round; a share is rounded up.

    A share always leaves a round to what starts there; a whole number from `rounds` on is never reached.
    """
    if isinstance(start, int):
        return start
    return max(0, min(math.ceil(round(start * rounds, 9)), rounds - 1))  # 0.07 x 100 is 7, not a hair more


def scaled(start: int, rounds: int, of: int) -> int:
    """A round of a run of `of`, in one of `rounds`: the same share of them, rounded up.

    What is reached in the one is reached in the other.
    """
    found = -(-start * rounds // of)
    return min(found, rounds - 1) if start < of else found
