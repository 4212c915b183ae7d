"""Whether a measured mean is the printed number: the rule, and the statistics behind it. Pure.

Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray experiments", Statistical
Applications in Genetics and Molecular Biology 3 (2004), article 3: three seeds say little of a variance, so it is moderated by
what the paper's other measurements of the metric say.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from fedrepro.config.spreads import Spread

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


RULE = Rule()


def judged(difference: float, margin: float | None, rule: Rule = RULE, point: float = 1.0) -> Status:
    """Returns the status of a difference between our mean and the printed number.

    `margin` is None if the spread of seeds is unknown; then the status is inconclusive.
    """
    if margin is None:
        return "inconclusive"
    distance, reach, tolerance = round(abs(difference), 6), round(margin, 6), round(rule.tolerance * point, 6)
    if distance > max(reach, tolerance):
        return "not reproduced"
    if reach > round(rule.widest * point, 6):
        return "inconclusive"
    return "reproduced" if distance <= tolerance else "consistent"


def margin(values: Sequence[float], spread: Spread | None, printed: int, level: float = RULE.level) -> float | None:
    """Returns half the width of the prediction interval of (mean of `values` - mean of `printed` seeds of the paper):
    t((1 + level) / 2, d0 + d) * sqrt((d0 s0^2 + d s^2) / (d0 + d)) * sqrt(1 / n + 1 / printed), d = n - 1.

    Without a `spread` d0 is 0; None where d is 0 too.
    """
    from scipy.special import stdtrit  # imported here: it takes 0.2 s, and most commands do not need it

    sample_freedom, prior = len(values) - 1, spread.freedom if spread else 0.0
    freedom = prior + sample_freedom
    if not freedom:
        return None
    variance = statistics.variance(values) if sample_freedom else 0.0
    squares = prior * (spread.deviation if spread else 0.0) ** 2 + sample_freedom * variance
    return float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(squares / freedom) * math.sqrt(1 / len(values) + 1 / printed)


def estimate(measurements: Iterable[Sequence[float]]) -> Spread | None:
    """Estimates s0 and d0 of Smyth (2004), section 6.2, from the seeds of each measurement; None for fewer than two that vary.

    A measurement of one seed, or whose seeds all have the same value, says nothing of log s^2 and is left out. Where variances
    differ by no more than chance, Smyth's d0 is infinite. Here it is at most the sum of the measurements' degrees of freedom:
    two measurements do not make a known variance. Our choice, as the package limma bounds d0 + d.
    """
    from scipy.special import digamma, polygamma

    logs, halves = [], []
    for values in measurements:
        if len(values) > 1 and (variance := statistics.variance(values)) > 0:
            half = (len(values) - 1) / 2
            logs.append(math.log(variance) - float(digamma(half)) + math.log(half))
            halves.append(half)
    if len(logs) < 2:
        return None
    excess = statistics.variance(logs) - statistics.fmean(float(polygamma(1, half)) for half in halves)
    half = _inverse_trigamma(excess) if excess > 0 else math.inf
    log_s0 = statistics.fmean(logs) + (float(digamma(half)) - math.log(half) if math.isfinite(half) else 0.0)
    return Spread(math.exp(log_s0 / 2), min(2 * half, 2 * sum(halves)), len(logs))


def _inverse_trigamma(value: float) -> float:
    """Returns the x > 0 at which trigamma is `value`."""
    from scipy.optimize import brentq
    from scipy.special import polygamma

    root: float = brentq(lambda log: float(polygamma(1, math.exp(log))) - value, -30, 30, xtol=1e-13)  # type: ignore[assignment]
    return math.exp(root)
