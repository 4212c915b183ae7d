"""When something starts in a run: a round (from 0), or a share of the rounds. One rule for schedules and methods; no torch."""

import math

from fedrepro.registry import require

Start = int | float


def require_start(where: str, start: Start) -> None:
    """UserError unless `start` is a round (a whole number from 0 on) or a share between 0 and 1."""
    valid = start >= 0 if isinstance(start, int) else 0 < start < 1
    require(valid, where, start, "must be a round (a whole number, at least 0) or a share of the rounds (above 0 and below 1)")


def first_round(start: Start, rounds: int) -> int:
    """The round that `start` names in a run of `rounds` rounds. A whole number is the round itself; a share is rounded up.

    A share always leaves a round for what starts there. A whole number from `rounds` on is never reached.
    """
    if isinstance(start, int):
        return start
    return max(0, min(math.ceil(round(start * rounds, 9)), rounds - 1))  # 0.07 x 100 is 7, not slightly more


def scaled(start: int, rounds: int, original_rounds: int) -> int:
    """Converts `start`, a round of a run of `original_rounds` rounds, to a run of `rounds`: the same share of the rounds,
    rounded up.

    A round that the first run reaches is reached in the second, too.
    """
    scaled_round = -(-start * rounds // original_rounds)
    return min(scaled_round, rounds - 1) if start < original_rounds else scaled_round
