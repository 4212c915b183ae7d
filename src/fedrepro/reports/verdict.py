"""Whether a measured mean is the printed number: the rule, and the statistics behind it. Pure."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

STATUSES = ("reproduced", "consistent", "inconclusive", "not reproduced", "not run", "not printed", "not comparable")


@dataclass(frozen=True)
class Rule:
    """When a measured mean counts as the printed number.

    `tolerance`: points of difference that still count as `reproduced` (>= 0). One point is 0.01 for a metric that is not in
    percent. 1.0 is our choice: two sets of three seeds with a standard deviation of 0.5 differ by up to 1.13 points by chance
    (Welch, 95 %).
    `widest`: the largest margin, in points, with which runs can tell anything (> 0). 5.0 is our choice: with a wider one a
    method that is several points better or worse than the printed one would still count as `consistent`.
    `level`: of the prediction interval.
    """

    tolerance: float = 1.0
    widest: float = 5.0
    level: float = 0.95

    def status(self, difference: float, margin: float | None, point: float = 1.0) -> str:
        """Of a difference between our mean and the printed number; `margin` is None where one seed shows no spread."""
        distance = round(abs(difference), 6)  # 90.29 - 89.29 is one point, not a hair more
        if distance <= round(self.tolerance * point, 6):
            return "reproduced"
        if margin is None:
            return "inconclusive"
        if distance > round(margin, 6):
            return "not reproduced"
        return "consistent" if round(margin, 6) <= round(self.widest * point, 6) else "inconclusive"


RULE = Rule()


@dataclass(frozen=True)
class Spread:
    """How far seeds of one setting lie apart, pooled over rows.

    `deviation`: the root of the variance over seeds, weighted by degrees of freedom. `freedom`: their number.
    `equal`: the p-value of Levene's test, with medians (Brown and Forsythe 1974), that all rows vary alike; None where fewer
    than two rows have three seeds.
    """

    deviation: float
    freedom: int
    equal: float | None = None

    def margin(self, ours: int, printed: int, level: float = RULE.level) -> float:
        """Half the width of the prediction interval of (mean of `ours` seeds - mean of `printed` seeds):
        t((1 + level) / 2, freedom) * deviation * sqrt(1 / ours + 1 / printed)."""
        from scipy.special import stdtrit  # a fifth of a second that most commands need not wait for

        return float(stdtrit(self.freedom, (1 + level) / 2)) * self.deviation * math.sqrt(1 / ours + 1 / printed)


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
