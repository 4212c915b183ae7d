"""Other ways to read the same runs: papers differ in whether they print the last round, the best one, or a mean of several."""

from dataclasses import dataclass

from fedrepro.config.reading import Reading
from fedrepro.exhibits.paired import mean
from fedrepro.exhibits.receipt import Receipt

USUAL = 10  # last rounds, which most papers that average take


@dataclass(frozen=True)
class Readings:
    """The same runs at the last round, at the best one, and as the mean of the last k, by k; means over seeds."""

    last: float
    best: float
    mean_of_last: dict[int, float]


def other_readings(own: Reading, receipts: dict[int, Receipt]) -> Readings | None:
    """One cell read in other ways, for k the table's own and 10 where every seed has as many rounds, up to the round at which
    the table's `own` reading ends.

    None where there is no run, a seed diverged before that round, or the table reads something else than the metric's values:
    rounds to a target, or jumps. The best round is picked on the test set, which is
    optimistic.
    """
    if not receipts or own.derived or any(receipt.diverges(own) for receipt in receipts.values()):
        return None
    curves = [receipt.curves[own.curve][: own.until] for receipt in receipts.values()]
    curves = [[value for value in curve if value is not None] for curve in curves]
    if not all(curves):  # a diagnostic found no finite value
        return None
    best = max if own.better == "higher" else min
    fitting = [k for k in sorted({own.averaged or USUAL, USUAL}) if all(len(curve) >= k for curve in curves)]
    return Readings(
        last=mean([curve[-1] for curve in curves]),
        best=mean([best(curve) for curve in curves]),
        mean_of_last={k: mean([mean(curve[-k:]) for curve in curves]) for k in fitting},
    )
