"""Whether a measured mean is the printed number: the rule, and the statistics behind it. Pure."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Literal

from fedrepro.reports.model import Rule, Spread, Status

RULE = Rule()
FIRST_FACTOR = 2.48  # of the first rule, see `first_status`


def judged(difference: float, margin: float | None, rule: Rule = RULE, point: float = 1.0) -> Status:
    """The status of a difference between our mean and the printed number; `margin` is None where one seed shows no spread."""
    distance = round(abs(difference), 6)  # 90.29 - 89.29 is one point, not a hair more
    if distance <= round(rule.tolerance * point, 6):
        return "reproduced"
    if margin is None:
        return "inconclusive"
    if distance > round(margin, 6):
        return "not reproduced"
    return "consistent" if round(margin, 6) <= round(rule.widest * point, 6) else "inconclusive"


def first_status(
    difference: float, spread: Spread | None, point: float = 1.0
) -> Literal["reproduced", "within noise", "not reproduced"]:
    """By the rule that stood before the runs: within 1 point, or within 2.48 pooled deviations.

    2.48 = t(0.975, 2) / sqrt(3) belongs to a deviation from three seeds, not to one pooled over rows, and the printed number
    counted as exact. It stays to show how the counts moved.
    """
    distance = round(abs(difference), 6)
    if distance <= round(point, 6):
        return "reproduced"
    return "within noise" if spread and distance <= round(FIRST_FACTOR * spread.deviation, 6) else "not reproduced"


def margin(spread: Spread, ours: int, printed: int, level: float = RULE.level) -> float:
    """Half the width of the prediction interval of (mean of `ours` seeds - mean of `printed` seeds):
    t((1 + level) / 2, freedom) * deviation * sqrt(1 / ours + 1 / printed)."""
    from scipy.special import stdtrit  # a fifth of a second that most commands need not wait for

    return float(stdtrit(spread.freedom, (1 + level) / 2)) * spread.deviation * math.sqrt(1 / ours + 1 / printed)


def pooled(rows: Iterable[Sequence[float]]) -> Spread | None:
    """The spread over the seeds of every row; None when no row has two seeds."""
    rows = [row for row in rows if len(row) > 1]
    freedom = sum(len(row) - 1 for row in rows)
    if not freedom:
        return None
    squares = math.fsum(statistics.variance(row) * (len(row) - 1) for row in rows)
    return Spread(math.sqrt(squares / freedom), freedom, _equal(rows))


def _equal(rows: list[Sequence[float]]) -> float | None:
    rows = [row for row in rows if len(row) > 2]
    if len(rows) < 2 or not any(map(statistics.variance, rows)):
        return None
    from scipy.stats import levene

    return float(levene(*rows, center="median").pvalue)
