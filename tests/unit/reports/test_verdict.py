"""The rule of verdicts: by hand, and on simulated papers whose truth is known."""

import numpy as np
import pytest
from scipy import stats

from fedrepro.reports.analysis import verdict
from fedrepro.reports.analysis.verdict import first_status, judged, margin, pooled
from fedrepro.reports.model import Rule, Spread

PAPERS, ROWS, SEEDS = 2000, 8, 3


def test_the_margin_by_hand() -> None:
    """Rows 1, 2, 3 and 4, 4, 7: variances 1 and 3, so 2 over 4 degrees of freedom. t(.975, 4) = 2.77645;
    times sqrt(2) times sqrt(1/3 + 1): 4.5339. A printed mean of three is nearer: sqrt(2/3) gives 3.2060."""
    spread = pooled([[1.0, 2.0, 3.0], [4.0, 4.0, 7.0], [5.0]])
    assert spread is not None
    assert (spread.deviation, spread.freedom) == (pytest.approx(2**0.5), 4)
    assert margin(spread, ours=3, printed=1) == pytest.approx(4.53391, abs=1e-5)
    assert margin(spread, ours=3, printed=3) == pytest.approx(3.20596, abs=1e-5)
    assert pooled([[1.0], [2.0]]) is None


@pytest.mark.parametrize(
    ("difference", "reach", "status"),
    [
        (1.0, 0.2, "reproduced"),  # a tight margin takes nothing away
        (-1.0, None, "reproduced"),
        (1.01, 1.5, "consistent"),
        (-5.0, 5.0, "consistent"),
        (4.0, 5.01, "inconclusive"),
        (24.0, 30.0, "inconclusive"),
        (1.6, 1.5, "not reproduced"),
        (30.1, 30.0, "not reproduced"),
        (2.0, None, "inconclusive"),  # one seed
    ],
)
def test_the_status_of_a_difference(difference: float, reach: float | None, status: str) -> None:
    assert judged(difference, reach) == status
    scaled = reach and reach / 100
    assert judged(difference / 100, scaled, point=0.01) == status


def papers(off: float, deviation: float, printed: int) -> list[str]:
    """Statuses of the first cell in so many papers: its printed number is the mean of `printed` seeds, `off` away in truth."""
    generator = np.random.default_rng(8)
    measured = generator.normal(0, deviation, (PAPERS, ROWS, SEEDS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdict, "_equal", lambda rows: None)  # takes most of the time, and judges nothing
        spreads = [pooled(ours.tolist()) for ours in measured]
    return [
        judged(ours[0].mean() - paper.mean(), margin(spread, SEEDS, printed))
        for ours, paper, spread in zip(measured, generator.normal(off, deviation, (PAPERS, printed)), spreads, strict=True)
        if spread
    ]


def share(statuses: list[str], *wanted: str) -> float:
    return sum(status in wanted for status in statuses) / len(statuses)


@pytest.mark.parametrize("printed", [1, 3])
@pytest.mark.parametrize("deviation", [0.8, 1.5])
def test_the_same_distribution_is_not_reproduced_one_time_in_twenty(deviation: float, printed: int) -> None:
    """The interval covers 95 %, whatever is within a point as well. The share that is reproduced follows from the normal
    distribution of the difference."""
    found = papers(0.0, deviation, printed)
    error = deviation * (1 / SEEDS + 1 / printed) ** 0.5
    within = 1 - 2 * stats.norm.cdf(-1 / error)
    assert share(found, "reproduced") == pytest.approx(within, abs=0.025)
    # Outside the interval, and outside the point that is let pass.
    assert share(found, "not reproduced") <= 0.06
    if within < 0.9:
        assert share(found, "not reproduced") == pytest.approx(0.05, abs=0.012)


@pytest.mark.parametrize(("off", "least"), [(2.0, 0.30), (5.0, 0.99), (20.0, 1.0)])
def test_what_is_off_is_found_as_often_as_theory_says(off: float, least: float) -> None:
    """Deviation 0.8, printed from three seeds. The power is that of a noncentral t, with 16 degrees of freedom."""
    found = papers(off, 0.8, 3)
    shift = off / (0.8 * (2 / 3) ** 0.5)
    reach = stats.t.ppf(0.975, ROWS * (SEEDS - 1))
    power = stats.nct.sf(reach, ROWS * (SEEDS - 1), shift)  # the other side is out of reach
    assert share(found, "not reproduced") == pytest.approx(power, abs=0.025)
    assert power >= least


def test_noisy_runs_cannot_tell() -> None:
    """With a deviation of 6 points neither the truth nor 5 points beside it is called consistent; 30 points are found."""
    for off in (0.0, 5.0):
        found = papers(off, 6.0, 1)
        assert share(found, "consistent") < 0.01
        assert share(found, "inconclusive") > 0.7
    assert share(papers(30.0, 6.0, 1), "not reproduced") > 0.9


def test_unequal_variances_are_noticed() -> None:
    """Levene with medians: about 5 % of columns with equal rows, nearly all with rows ten times as wide and many seeds."""
    generator = np.random.default_rng(9)
    equal = [pooled(generator.normal(0, 1, (ROWS, 5)).tolist()) for _ in range(1000)]
    assert sum(one is not None and one.equal is not None and one.equal < 0.05 for one in equal) / 1000 < 0.07
    wide = [[*map(float, generator.normal(0, s, 10))] for s in (1, 1, 1, 10)]
    spread = pooled(wide)
    assert spread is not None
    assert spread.equal is not None
    assert spread.equal < 0.05
    assert spread.equal == pytest.approx(stats.levene(*wide, center="median").pvalue)


def test_a_rule_with_other_numbers() -> None:
    assert judged(0.6, 0.1, Rule(tolerance=0.5)) == "not reproduced"
    assert judged(2.0, 4.0, Rule(widest=3.0)) == "inconclusive"


def test_the_first_rule_is_kept_to_show_how_counts_moved() -> None:
    """Deviation 2: up to 4.96 points were within noise, with any degrees of freedom; without a spread nothing was."""
    spread = Spread(2.0, 14)
    assert [first_status(value, spread) for value in (1.0, 4.96, 4.97)] == ["reproduced", "within noise", "not reproduced"]
    assert first_status(-1.5, None) == "not reproduced"
