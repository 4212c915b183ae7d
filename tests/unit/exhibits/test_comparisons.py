"""The statistics behind verdicts (by hand and against SciPy), tests across settings, and other readings of a run."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t, wilcoxon
from small_table import exhibit, make_evidence, make_plan, tabulated, typed

from fedrepro import rng
from fedrepro.config.plan import Row
from fedrepro.exhibits.comparisons import Comparison, Score, _score, comparisons, pairs
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.sections.about import about_the_runs
from fedrepro.exhibits.sections.across import across
from fedrepro.exhibits.statistics import (
    MOST,
    holm,
    interval,
    paired_differences,
    printed_gap,
    seeds_needed,
    signed_rank,
    slope_over,
    t_test,
)
from fedrepro.units import decimal

A, B = "mlp-a100", "mlp-a01"


def test_the_interval_by_hand() -> None:
    """1, 2, 3: mean 2, s = 1, t(0.975, 2) / sqrt(3) = 4.302653 / 1.732051 = 2.484138. A single value has no interval."""
    assert interval([1.0, 2.0, 3.0]) == (pytest.approx(2 - 2.484138, abs=1e-6), pytest.approx(2 + 2.484138, abs=1e-6))
    assert interval([5.0]) is None
    assert interval([5.0, 5.0, 5.0]) == (5.0, 5.0)


def test_the_fitted_rise_by_hand() -> None:
    """0, 2, 1: slope (-1 * 0 + 0 * 2 + 1 * 1) / 2 = 0.5, over two steps 1. A straight line rises by last minus first."""
    assert slope_over([0.0, 2.0, 1.0]) == pytest.approx(1.0)
    assert slope_over([3.0, 2.5, 2.0, 1.5]) == pytest.approx(-1.5)
    assert slope_over([4.0, 1.0]) == pytest.approx(-3.0)


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_the_signed_rank_test_is_scipys_where_ranks_differ(count: int) -> None:
    """Without ties SciPy's exact p-value is correct."""
    values = rng.stream(count, "signed-rank").normal(0.3, 1, count)
    assert signed_rank(list(values)) == pytest.approx(wilcoxon(values, method="exact").pvalue)


def test_the_signed_rank_test_with_ties_by_hand() -> None:
    """All positive: 2 / 2^n. 1, 1, -1: three ranks of 2, W- <= 2 in 4 of 8 cases, doubled: 1. Zeros are left out. FedGH's Table
    3, +6.42 +11.46 -1.79 -0.24 +8.42: W- = 1 + 2, sums up to 3 in 5 of 32 cases, doubled."""
    assert signed_rank([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 32)
    assert signed_rank([1.0, 1.0, -1.0]) == 1.0
    assert signed_rank([0.0, 0.0]) is None
    assert signed_rank([1.0, 0.0, 2.0]) == signed_rank([1.0, 2.0]) == pytest.approx(0.5)
    assert signed_rank([6.42, 11.46, -1.79, -0.24, 8.42]) == pytest.approx(2 * 5 / 32)


def test_differences_are_paired_by_seed() -> None:
    """The pairs are the seeds of both runs, in the first one's order. A diverged seed has no difference. Printed differences
    are rounded."""
    assert paired_differences({9: 2.0, 8: 1.0, 10: 5.0}, {8: 0.5, 9: None, 11: 1.0}) == {9: None, 8: 0.5}
    assert printed_gap(80.47, 72.05) == 8.42
    assert printed_gap(None, 1.0) is None


def compared(plan: dict, evidence: dict) -> dict[tuple[str, str], Comparison]:
    return {(one.baseline.key, one.method.key): one for one in comparisons(typed(plan)[0], tabulated(plan, evidence))}


def test_wins_ties_and_losses_over_settings() -> None:
    """FedLAW against FedAvg: printed -0.78 and +1.19, measured a tie at two decimals and a loss of 2. A single loss has p =
    1."""
    plan = make_plan("full")
    accuracies = {
        ("fedavg", A): [88.0, 88.0, 88.0],
        ("fedlaw", A): [88.001, 88.002, 88.0],
        ("fedavg", B): [85.0, 86.0, 87.0],
        ("fedlaw", B): [83.0, 84.0, 85.0],
    }
    found = compared(plan, make_evidence(plan, accuracies))["fedavg", "fedlaw"]
    assert found.columns == (A, B)
    printed, ours = found.printed, found.measured
    assert (printed.wins, printed.ties, printed.losses, printed.p_value) == (1, 0, 1, 1.0)
    assert printed.mean_difference == pytest.approx((1.19 - 0.78) / 2)
    assert (ours.settings, ours.wins, ours.ties, ours.losses, ours.p_value) == (2, 0, 1, 1, 1.0)
    assert ours.mean_difference == pytest.approx((0.001 - 2.0) / 2)
    for place in (*plan["columns"], *plan["cells"]):
        place["metric"] = {**place["metric"], "better": "lower"}
    flipped = compared(plan, make_evidence(plan, accuracies))["fedavg", "fedlaw"].measured
    assert (flipped.wins, flipped.losses) == (1, 0)
    assert flipped.mean_difference == ours.mean_difference


def test_a_setting_is_compared_on_the_seeds_that_both_have() -> None:
    """FedLAW has no seed 10 and is 1 and 2 points ahead at seeds 8 and 9. If FedAvg diverged at seed 9, the setting has no
    difference."""
    plan = make_plan("full")
    accuracies = {("fedavg", A): [80.0, 80.0, 90.0], ("fedlaw", A): [81.0, 82.0]}
    found = compared(plan, make_evidence(plan, accuracies))["fedavg", "fedlaw"].measured
    assert (found.settings, found.mean_difference) == (1, pytest.approx(1.5))
    accuracies["fedavg", A] = [80.0, None, 90.0]
    assert compared(plan, make_evidence(plan, accuracies))["fedavg", "fedlaw"].measured == Score(0, 0, 0, 0, None, None)


def test_columns_that_read_one_run_are_one_setting() -> None:
    """Column B reads an earlier round of column A's runs, so only column A is compared. A column with another metric is
    compared separately."""
    plan = make_plan("full")
    places = {(cell["row"], cell["column"]): cell for cell in plan["cells"]}
    for (row, column), cell in places.items():
        if column == B:
            cell |= {"run_id": places[row, A]["run_id"], "read": "at(3, mean=2)"}
    accuracies = {(row, A): [80.0] * 3 for row in ("fedavg", "fedlaw", "ours")}
    assert compared(plan, make_evidence(plan, accuracies))["fedavg", "fedlaw"].columns == (A,)
    for place in (plan["columns"][1], *(cell for cell in plan["cells"] if cell["column"] == B)):
        place["metric"] = {**place["metric"], "name": "test_loss"}
    both = comparisons(typed(plan)[0], tabulated(plan, make_evidence(plan, accuracies)))
    assert [(one.metric.name, one.columns) for one in both if one.method.key == "fedlaw"] == [
        ("test_accuracy", (A,)),
        ("test_loss", (B,)),
    ]


def test_what_is_not_ranked_is_not_compared() -> None:
    """The metric is not ranked, so there is no best mark, no gap and no win."""
    plan = make_plan("full")
    for place in (*plan["columns"], *plan["cells"]):
        place["metric"] = {**place["metric"], "ranked": False}
    made = exhibit(plan, make_evidence(plan, {("fedavg", A): [80.0] * 3, ("fedlaw", A): [90.0] * 3}))
    assert comparisons(made.plan, made.cells) == []
    assert across(made) == []
    assert made.gaps == []
    assert not any(cell.best_measured or cell.best_printed for cell in made.cells)
    assert "better" not in metric_of(made)


def test_rows_that_show_different_things_are_not_compared() -> None:
    """FedLAW shows another metric than FedAvg, so the two have no comparison and no gap. The best mark goes to one of the other
    rows."""
    plan = make_plan("full")
    shared = plan["columns"][0]["metric"]
    other = {**shared, "name": "personal_client_mean", "description": "accuracy of the clients' own models"}
    for place in (*plan["rows"], *plan["cells"]):
        if "fedlaw" in (place.get("key"), place.get("row")):
            place["metric"] = other
    evidence = make_evidence(
        plan, {(row, A): [value] * 3 for row, value in (("fedavg", 80.0), ("fedlaw", 90.0), ("ours", 70.0))}
    )
    for record in [record for records in evidence.values() for record in records.values()]:
        record["curves"]["personal_client_mean"] = record["curves"]["test_accuracy"]
    assert {*compared(plan, evidence)} == {("fedavg", "ours")}
    made = exhibit(plan, evidence)
    assert {(gap.method.key, gap.base.key) for gap in made.gaps} == {("ours", "fedavg")}
    best = {cell.row.key for cell in made.cells if cell.best_measured and cell.column.key == A}
    assert best == {"fedavg"}
    own = "FedLAW: accuracy of the clients' own models (percent, higher is better)"
    assert metric_of(made) == f"{shared['description']} (percent, higher is better); {own}"


def metric_of(table: Exhibit) -> str:
    """The entry on the metric on a table's page."""
    ((facts,),) = (one.blocks for one in about_the_runs(table))
    return dict(facts.pairs)["metric"][0]


def keys_of(rows: list[Row]) -> list[tuple[str, str]]:
    return [(base.key, method.key) for base, method in pairs(rows)]


def test_which_rows_are_compared() -> None:
    """Each row is compared with the first printed row, and x+y also with x."""
    keys = ["fedavg", "fedavg+gh", "fedprox", "fedprox+gh"]
    rows = [Row(key, key, printed=True, variant=None, name=key) for key in keys]
    assert keys_of(rows) == [
        ("fedavg", "fedavg+gh"),
        ("fedavg", "fedprox"),
        ("fedavg", "fedprox+gh"),
        ("fedprox", "fedprox+gh"),
    ]
    assert set(keys_of([replace(rows[0], printed=False), *rows[1:3]])) == {
        ("fedavg+gh", "fedprox"),
        ("fedavg+gh", "fedavg"),
        ("fedavg", "fedavg+gh"),
    }


def reading_of(accuracies, curves, average_last=2, until=None, better="higher"):
    plan = make_plan("demo")
    plan["columns"][0]["metric"] = {**plan["columns"][0]["metric"], "better": better}
    read = f"at({until}, mean={average_last})" if until else f"last({average_last})"
    plan["cells"][0] |= {"read": read, "metric": plan["columns"][0]["metric"]}
    evidence = make_evidence(plan, {("fedavg", A): accuracies}, {("fedavg", A): {"test_accuracy": curves}} if curves else None)
    return tabulated(plan, evidence)[0].readings


TWO = [[50.0, 90.0, 60.0, 70.0], [40.0, 50.0, 80.0, 60.0]]


def test_other_readings_by_hand() -> None:
    """Last 70 and 60, best 90 and 80, mean of the last two 65 and 70. Up to round 2: last 90 and 50. A mean of ten needs ten
    rounds, each of them measured."""
    assert reading_of([0.0, 0.0], TWO) == {"last": 65.0, "best": 85.0, "mean_of_last": {2: 67.5}}
    assert reading_of([0.0, 0.0], TWO, until=2) == {"last": 70.0, "best": 70.0, "mean_of_last": {2: 57.5}}
    assert reading_of([0.0, 0.0], TWO, average_last=7, better="lower") == {"last": 65.0, "best": 45.0, "mean_of_last": {}}
    long = [float(value) for value in range(12)]
    assert reading_of([0.0], [long], average_last=1) == {"last": 11.0, "best": 11.0, "mean_of_last": {1: 11.0, 10: 6.5}}
    every_second = [float(round) if round % 2 else None for round in range(24)]
    assert reading_of([0.0], [every_second], average_last=1) == {"last": 23.0, "best": 23.0, "mean_of_last": {1: 23.0}}


def test_a_diverged_seed_leaves_no_readings() -> None:
    """A cell that was not run has none either."""
    assert reading_of([80.0, None], None) is None
    assert reading_of([], None) is None


def test_how_many_seeds_would_tell() -> None:
    """For a power of 80 % a t-test needs 10 seeds if the mean is one deviation off, and 34 at half a deviation (Cohen, 1988).
    In simulated samples at least 80 % of intervals lie on that side, and with one seed less fewer do. Two numbers share the 5
    %."""
    assert seeds_needed(1.0, [0.0, 1.0, 2.0]) == 10
    assert seeds_needed(-0.5, [0.0, 1.0, 2.0]) == 34
    assert seeds_needed(1.0, [1.0, 1.0, 1.0]) == 2
    drawn = np.random.default_rng(8).normal(1.0, 1.0, (100_000, 13))
    for tests, needed in ((1, 10), (2, 13)):
        assert seeds_needed(1.0, [0.0, 1.0, 2.0], tests) == needed
        for seeds in (needed, needed - 1):
            some, level = drawn[:, :seeds], 1 - 0.05 / tests / 2
            low = some.mean(1) - t.ppf(level, seeds - 1) * some.std(1, ddof=1) / seeds**0.5
            assert ((low > 0).mean() >= 0.8) == (seeds == needed)
    assert seeds_needed(1e-4, [0.0, 1.0, 2.0]) == MOST


def test_how_many_seeds_put_the_interval_between_two_borders() -> None:
    """In simulated samples at least 80 % of intervals lie within the bound, and with one seed less fewer do."""
    drawn = np.random.default_rng(8).normal(0.25, 1.0, (100_000, 25))
    needed = seeds_needed(0.75, [0.0, 1.0, 2.0], other=1.25)
    assert needed > seeds_needed(0.75, [0.0, 1.0, 2.0])
    for seeds in (needed, needed - 1):
        some = drawn[:, :seeds]
        reach = abs(some.mean(1)) + t.ppf(0.975, seeds - 1) * some.std(1, ddof=1) / seeds**0.5
        assert ((reach <= 1).mean() >= 0.8) == (seeds == needed)


def test_a_tie_of_decimals_reads_the_same_however_it_was_computed() -> None:
    """The float 3.535 is slightly more than 3.535, and a difference of means may be slightly less."""
    assert f"{3.535:.2f}" == "3.54"
    assert f"{3.534999999999997:.2f}" == "3.53"
    assert decimal(3.534999999999997) == decimal(3.535) == "3.54"
    assert decimal(-3.534999999999997, sign="+") == decimal(-3.535, sign="+") == "−3.54"
    assert decimal(None) == decimal(None, sign="+") == "–"


def test_a_p_value_by_hand() -> None:
    """1, 2, 3 against 0 or 4: t = 2 / (1 / sqrt(3)) = sqrt(12). With 2 degrees of freedom the two-sided p = 1 - t / sqrt(t^2 +
    2) = 1 - sqrt(6 / 7). Without any deviation p is 0, or 1 if the mean is exact."""
    assert t_test(2.0, [1.0, 2.0, 3.0]) == pytest.approx(1 - (6 / 7) ** 0.5, abs=1e-12)
    assert t_test(-2.0, [1.0, 2.0, 3.0]) == pytest.approx(1 - (6 / 7) ** 0.5, abs=1e-12)
    assert [t_test(distance, [1.0, 1.0]) for distance in (1.0, 0.0)] == [0.0, 1.0]


def test_p_values_adjusted_by_hand() -> None:
    """Holm: 3 * 0.01, then 2 * 0.04, then 0.05, which is raised to the one before. The order stays, and 1 is the maximum."""
    assert holm([0.05, 0.01, 0.04]) == pytest.approx([0.08, 0.03, 0.08])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_tie_has_no_rank() -> None:
    """Values that read the same at the decimals shown are tied, so one loss is left, whose p-value is 1."""
    metric = tabulated(make_plan("full"), {})[0].metric
    score = _score([-0.001, -2.0], metric)
    assert (score.ties, score.losses, score.p_value) == (1, 1, 1.0)
