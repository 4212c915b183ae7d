"""The statistics behind verdicts: differences over paired seeds with their interval, and an exact test over settings."""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

LEVEL = 0.95
POWER = 0.8  # probability that the number of seeds given for an open claim decides it (our choice)
MOST = 1000  # seeds that `seeds_needed` gives at most
mean = statistics.fmean  # rounded once


def mean_of_all(values: Iterable[float | None]) -> float | None:
    """Returns the mean; None where a value is missing, or there is none: a mean over the others would be optimistic."""
    values = list(values)
    present = [value for value in values if value is not None]
    return mean(present) if present and len(present) == len(values) else None


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95 % t-interval of the mean, mean ± t(0.975, n - 1) s / sqrt(n); None for fewer than two values.

    With three values t is 4.303, so that the interval is the mean ± 2.48 standard deviations.
    """
    if len(values) < 2:
        return None
    from scipy.special import stdtrit  # imported here: it takes 0.2 s, and most commands do not need it

    reach = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * statistics.stdev(values) / math.sqrt(len(values))
    centre = mean(values)
    return centre - reach, centre + reach


def t_test(distance: float, values: Sequence[float]) -> float:
    """The two-sided p-value of a mean of `values` (at least 2) that lies `distance` from where it should: Student's t."""
    from scipy.special import stdtr

    error = statistics.stdev(values) / math.sqrt(len(values))
    return 2 * float(stdtr(len(values) - 1, -abs(distance) / error)) if error else float(not distance)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values for their number; keeps their order. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    raised = accumulate((min(1.0, (len(order) - place) * p_values[i]) for place, i in enumerate(order)), max)
    return [p for _, p in sorted(zip(order, raised, strict=True))]


def seeds_needed(distance: float, values: Sequence[float], tests: int = 1, other: float | None = None) -> int:
    """The number of seeds whose t-interval lies on one side with probability `POWER`, if their mean is truly `distance` away
    and they vary as `values` (at least 2) do; `MOST` where it is that many or more. Level: 95 % for all of `tests` numbers
    together. `other`: the distance from a second border, on the other side; then the interval lies between the two.

    By the noncentral t-distribution. An interval just as long as the distance would lie on one side half of the time.
    """
    from scipy.special import nctdtr, stdtrit

    deviation, distances = statistics.stdev(values), [abs(distance)] if other is None else [abs(distance), abs(other)]

    def power(n: int) -> float:
        least = float(stdtrit(n - 1, 1 - (1 - LEVEL) / 2 / tests))
        return 1 - math.fsum(float(nctdtr(n - 1, math.sqrt(n) * away / deviation, least)) for away in distances)

    return next((n for n in range(2, MOST) if not deviation or power(n) >= POWER), MOST)


def paired_differences(first: Mapping[int, float | None], second: Mapping[int, float | None]) -> dict[int, float | None]:
    """Returns seed -> the first method's value minus the second's, over the seeds that both have; None where either diverged.

    Paired, because both methods of a seed share partition, cohorts and initial model: what the seed adds to both drops out.
    """
    return {seed: difference(value, second[seed]) for seed, value in first.items() if seed in second}


def difference(first: float | None, second: float | None) -> float | None:
    """Subtracts the second value from the first; None where one of them is missing."""
    return None if first is None or second is None else first - second


def printed_gap(first: float | None, second: float | None) -> float | None:
    """Subtracts two printed numbers: 80.47 - 72.05 is exactly 8.42, without the error of floating point."""
    gap = difference(first, second)
    return None if gap is None else round(gap, 6)


def first_reaching(curve: Mapping[int, float], target: float, higher: bool) -> float:
    """Returns the first round of `curve`, round -> value, that reaches `target`; one after its last when none does."""
    reached = (round for round, value in curve.items() if (value >= target if higher else value <= target))
    return float(next(reached, max(curve) + 1))


def slope_over(values: Sequence[float]) -> float:
    """How far the least-squares line through `values`, one step apart, rises from the first to the last (at least 2 values)."""
    steps = [i - (len(values) - 1) / 2 for i in range(len(values))]
    slope = math.fsum(step * value for step, value in zip(steps, values, strict=True)) / math.fsum(s * s for s in steps)
    return slope * (len(values) - 1)


def signed_rank(differences: Sequence[float]) -> float | None:
    """Returns the two-sided p-value of Wilcoxon's signed-rank test, exact also with tied ranks; None when all differences are
    zero.

    Wilcoxon, Biometrics Bulletin 1 (1945) 80-83. Zeros are left out, ties share their mean rank, and every sign of every rank
    is equally likely: W+, the sum of the positive ones, is compared with its distribution over all 2^n signs, counted exactly.
    The smallest p-value of n differences is 2^(1-n): five settings cannot reach 0.05.
    """
    nonzero = sorted((value for value in differences if value), key=abs)
    if not nonzero:
        return None
    sizes = [abs(value) for value in nonzero]
    # Twice the ranks are whole numbers: a mean rank may end in a half.
    doubled = [bisect_left(sizes, size) + bisect_right(sizes, size) + 1 for size in sizes]
    total = sum(doubled)
    ways = [1, *[0] * total]  # number of sign patterns so far that give each doubled W+
    for rank in doubled:
        for reached in range(total, rank - 1, -1):
            ways[reached] += ways[reached - rank]
    positive = sum(rank for rank, value in zip(doubled, nonzero, strict=True) if value > 0)
    tail = sum(ways[: min(positive, total - positive) + 1])
    return min(1.0, 2 * tail / 2 ** len(nonzero))
