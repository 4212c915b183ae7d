"""The rule of verdicts: worked out by hand, and on simulated papers with known truth."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma

from fedrepro.config.spreads import Spread
from fedrepro.exhibits.verdict import Rule, estimate, judged, margin

SEEDS = 3
Draw = dict[str, np.ndarray]


def test_the_margin_by_hand() -> None:
    """Seeds 1, 2, 3: variance 1 with 2 degrees of freedom. With s0 = 2 and d0 = 2 the moderated variance is (2 * 4 + 2 * 1) / 4
    = 2.5 with 4 degrees of freedom. The margin is t(.975, 4) = 2.77645 times sqrt(2.5) times sqrt(1/3 + 1): 5.0690. For a
    printed mean of three seeds the last factor is sqrt(2/3): 3.5843."""
    spread = Spread(2.0, 2.0, 10)
    assert margin([1.0, 2.0, 3.0], spread, printed=1) == pytest.approx(5.06903, abs=1e-4)
    assert margin([1.0, 2.0, 3.0], spread, printed=3) == pytest.approx(3.58434, abs=1e-4)


def test_the_margin_without_a_prior_is_students_and_with_a_prior_worth_much_the_normals() -> None:
    """t(.975, 2) = 4.30265 times 1 times sqrt(4/3): 4.9683. With a huge d0 only s0 counts: 1.95996 * 2 * sqrt(4/3) = 4.5264."""
    assert margin([1.0, 2.0, 3.0], None, printed=1) == pytest.approx(4.96827, abs=1e-4)
    assert margin([1.0, 2.0, 3.0], Spread(2.0, 1e7, 10), printed=1) == pytest.approx(4.52635, abs=1e-4)


def test_one_seed_has_the_priors_margin_and_none_without_it() -> None:
    """t(.975, 2) times 2 times sqrt(1 + 1)."""
    assert margin([5.0], Spread(2.0, 2.0, 10), printed=1) == pytest.approx(4.30265 * 2 * 2**0.5, abs=1e-3)
    assert margin([5.0], None, printed=1) is None


@pytest.mark.parametrize(
    ("difference", "reach", "status"),
    [
        (1.0, 0.2, "reproduced"),  # a tight margin changes nothing
        (-1.0, None, "inconclusive"),  # the spread of seeds is unknown
        (1.01, 1.5, "consistent"),
        (-5.0, 5.0, "consistent"),
        (4.0, 5.01, "inconclusive"),
        (0.5, 5.01, "inconclusive"),  # near by luck: seeds 62.0, 78.6 and 83.5 reproduce nothing
        (24.0, 30.0, "inconclusive"),
        (1.6, 1.5, "not reproduced"),
        (30.1, 30.0, "not reproduced"),
    ],
)
def test_the_status_of_a_difference(difference: float, reach: float | None, status: str) -> None:
    assert judged(difference, reach) == status
    scaled = reach and reach / 100
    assert judged(difference / 100, scaled, point=0.01) == status


def test_a_rule_with_other_numbers() -> None:
    assert judged(0.6, 0.1, Rule(tolerance=0.5)) == "not reproduced"
    assert judged(2.0, 4.0, Rule(widest=3.0)) == "inconclusive"


def test_the_prior_solves_smyths_equations() -> None:
    """Section 6.2: e = log s^2 - digamma(d/2) + log(d/2) has the mean and variance of the fitted prior."""
    groups = [[1.0, 2.0, 4.0], [10.0, 10.5, 10.1], [3.0, 9.0, 1.0], [5.0, 5.2], [7.0, 7.0, 8.0, 6.5]]
    found = estimate([*groups, [4.0], [2.0, 2.0, 2.0]])  # a single seed and equal seeds have no logarithm of a variance
    assert found is not None
    assert found.measurements == 5
    halves = [(len(values) - 1) / 2 for values in groups]
    logs = [math.log(statistics.variance(v)) - digamma(h) + math.log(h) for v, h in zip(groups, halves, strict=True)]
    left = np.var(logs, ddof=1) - np.mean([polygamma(1, half) for half in halves])
    assert polygamma(1, found.freedom / 2) == pytest.approx(left, rel=1e-6)
    half = found.freedom / 2
    assert 2 * math.log(found.deviation) == pytest.approx(np.mean(logs) + digamma(half) - math.log(half), rel=1e-6)


def test_equal_variances_have_a_prior_worth_much_and_unequal_ones_little() -> None:
    """The true d0 is infinite for equal variances. It is 2 for variances 4 times 2 over chi-square with 2 degrees of
    freedom."""
    generator = np.random.default_rng(8)
    alike = estimate(generator.normal(0, 2.0, (2000, SEEDS)).tolist())
    assert alike is not None
    assert 30 < alike.freedom <= 4000
    assert alike.deviation == pytest.approx(2.0, rel=0.05)
    deviations = 2.0 * np.sqrt(2 / generator.chisquare(2, 5000))
    unlike = estimate((generator.normal(0, 1, (5000, SEEDS)) * deviations[:, None]).tolist())
    assert unlike is not None
    assert unlike.freedom == pytest.approx(2.0, rel=0.1)
    assert unlike.deviation == pytest.approx(2.0, rel=0.05)


def test_two_measurements_that_are_alike_are_worth_the_degrees_of_freedom_that_they_have() -> None:
    """By hand: both variances are 1 with two degrees of freedom each, so t(0.975, 4) = 2.776. The paper has one seed."""
    found = estimate([[1.0, 2.0, 3.0], [11.0, 12.0, 13.0]])
    assert found is not None
    assert (found.freedom, found.measurements) == (4.0, 2)
    assert found.deviation**2 == pytest.approx(math.exp(-digamma(1)))
    assert margin([7.0], Spread(1.0, 4.0, 2), 1) == pytest.approx(2.776445 * math.sqrt(2), rel=1e-5)


def test_too_few_measurements_have_no_prior() -> None:
    assert estimate([[1.0, 2.0, 3.0], [5.0], [4.0, 4.0]]) is None


def deviations(kind: str, generator: np.random.Generator, measurements: int) -> np.ndarray:
    """The true deviation of each measurement: all equal, log-normal variances, or half of them ten times as large."""
    if kind == "equal":
        return np.full(measurements, 2.0)
    if kind == "two groups":
        return np.where(np.arange(measurements) % 2, 0.4, 4.0)
    return np.exp(generator.normal(0, float(kind.rpartition(" ")[2]) / 2, measurements))


def simulated(kind: str, measurements: int, papers: int, off: float = 0.0, printed: int = 1) -> Draw:
    """Simulates papers whose printed numbers come from our distributions, shifted by `off` deviations. Returns for each number
    whether it lies outside its margin, the margin in true deviations, and the true deviation."""
    generator = np.random.default_rng(measurements)
    outside, reach, truth = [], [], []
    for _ in range(papers):
        sigma = deviations(kind, generator, measurements)
        ours = generator.normal(0, 1, (measurements, SEEDS)) * sigma[:, None]
        prints = (generator.normal(0, 1, (measurements, printed)).mean(1) + off) * sigma
        spread = estimate(ours.tolist())
        found = [margin(values, spread, printed) or math.nan for values in ours.tolist()]
        outside += (np.abs(ours.mean(1) - prints) > found).tolist()
        reach += (np.array(found) / sigma).tolist()
        truth += sigma.tolist()
    return {"outside": np.array(outside), "reach": np.array(reach), "truth": np.array(truth)}


@pytest.mark.parametrize(
    ("kind", "measurements", "papers"),
    [
        ("equal", 16, 150),
        ("log-normal 1.5", 50, 60),
        ("log-normal 3", 16, 150),
        ("log-normal 3", 150, 20),
        ("two groups", 16, 150),
        ("two groups", 150, 20),
    ],
)
def test_a_printed_number_of_the_same_distribution_lies_outside_one_time_in_twenty(
    kind: str, measurements: int, papers: int
) -> None:
    """For all variances the coverage is near 95 %, and at least 87 % in the half of the measurements with the larger
    variance."""
    found = simulated(kind, measurements, papers)
    assert 0.93 <= 1 - found["outside"].mean() <= 0.975
    noisier = found["truth"] >= np.median(found["truth"])
    assert 1 - found["outside"][noisier].mean() >= 0.87


@pytest.mark.parametrize("kind", ["equal", "log-normal 1.5", "log-normal 3", "two groups"])
def test_with_two_measurements_it_is_up_to_one_time_in_ten(kind: str) -> None:
    """Two measurements say little about the spread of seeds, even with equal true variances."""
    assert 0.03 <= simulated(kind, 2, 800)["outside"].mean() <= 0.11


@pytest.mark.parametrize(("off", "least"), [(3.0, 0.45), (6.0, 0.95)])
def test_what_is_off_is_found(off: float, least: float) -> None:
    """A printed number of one seed is `off` true deviations away, and all variances are equal. With the prior three seeds find
    it at least that often. Student's t alone, with two degrees of freedom, finds a third of numbers 3 deviations off."""
    power = simulated("equal", 50, 40, off)["outside"].mean()
    shift = off / math.sqrt(1 / SEEDS + 1)
    alone = stats.nct.sf(stats.t.ppf(0.975, SEEDS - 1), SEEDS - 1, shift)
    assert power >= least
    assert power > alone + 0.02


def test_unequal_variances_cost_power_and_not_coverage() -> None:
    """A measurement with small variance that is 6 of its own deviations off is found less often than if all variances were
    equal."""
    mixed = simulated("two groups", 50, 40, 6.0)
    alike = simulated("equal", 50, 40, 6.0)
    steady = mixed["truth"] < 1
    assert 0.3 < mixed["outside"][steady].mean() < alike["outside"].mean()
