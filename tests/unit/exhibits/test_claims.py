"""The verdict follows from the evidence: every verdict of every kind of claim, on made-up evidence."""

from pathlib import Path

import pytest
from fingerprint import judged_alone
from small_table import exhibit, make_evidence, make_plan, make_receipt

from fedrepro.config.claims import KINDS, claims_path, load_claims
from fedrepro.errors import UserError
from fedrepro.exhibits.claims import Number, mean_of
from fedrepro.exhibits.judge import VERDICTS, ClaimVerdict, _describe, _overall, judge, rule
from fedrepro.exhibits.statistics import seeds_needed
from fedrepro.typed import check

A, B = "mlp-a100", "mlp-a01"  # printed FedLAW - FedAvg: -0.78 and +1.19
PAIR = {"fedlaw": "fedavg"}
COMMON = {"id": "X-1", "text": "It is better.", "where": "Table 3", "table": "table3"}
RATIO = {"kind": "level", "of": ["fedlaw"], "columns": [B], "metric": "ratio", "value": 1.0}
# The tests show every verdict for these claims.
CLAIMS = {
    "difference": {"kind": "difference", "pairs": PAIR, "columns": [B]},
    "behind": {"kind": "difference", "pairs": PAIR, "columns": [A]},
    "each": {"kind": "difference", "pairs": PAIR, "columns": [A, B]},
    "mean": {"kind": "difference", "pairs": PAIR, "columns": [A, B], "combine": "mean"},
    "rises": {"kind": "trend", "pairs": PAIR, "columns": [A, B], "direction": "rises"},
    "falls": {"kind": "trend", "pairs": PAIR, "columns": [B, A], "direction": "falls"},
    "ahead": {"kind": "difference", "pairs": PAIR, "columns": [A], "side": "ahead"},
    "small": {"kind": "small", "pairs": PAIR, "columns": [B], "value": 2},
    "steady": {"kind": "steady", "pairs": PAIR, "columns": [A, B], "value": 2},
    "across": {"kind": "across", "of": ["fedlaw"], "columns": [A, B]},
    "across-ahead": {"kind": "across", "of": ["fedlaw"], "columns": [B, A], "side": "ahead"},
    "not-behind": {"kind": "across", "of": ["fedlaw"], "columns": [A, B], "side": "ahead", "behind": 1},
    "equal": {"kind": "equal", "pairs": PAIR, "columns": [B]},
    "level": RATIO | {"side": "above"},
    "below": RATIO | {"side": "below"},
    "cell": {"kind": "level", "of": ["fedlaw"], "columns": [B], "side": "above", "value": 81.0},
    "last": {
        "kind": "level",
        "of": ["fedlaw"],
        "columns": [B],
        "metric": "ratio",
        "side": "above",
        "value": 1.0,
        "read": "last",
    },
    "speed": {"kind": "speed", "pairs": PAIR, "columns": [B]},
}


def claim(name: str):
    """The entry of `CLAIMS`, parsed as in the file."""
    entry = COMMON | CLAIMS[name]
    return check(KINDS[entry["kind"]], entry, name)


def verdict_on(name: str, scale: str = "full", accuracies=None, curves=None, **changes) -> ClaimVerdict:
    """The verdict on a claim for these accuracies and curves."""
    made = make_plan(scale, **changes)
    return judged(name, made, make_evidence(made, accuracies or {}, curves))


def judged(name: str, plan: dict, found: dict) -> ClaimVerdict:
    """The verdict on a claim for a plan and its evidence."""
    return judge([claim(name)], {"table3": exhibit(plan, found)})[0]


def numbers(found: ClaimVerdict) -> list[Number]:
    """The claim's numbers without their verdicts."""
    return [number for number, _ in found.numbers]


def gaps(a: list | None = None, b: list | None = None) -> dict:
    """Accuracies where FedLAW is ahead of FedAvg by these points at each seed, in column A and in column B."""
    found = {}
    for column, ahead in ((A, a), (B, b)):
        if ahead is not None:
            found[("fedavg", column)] = [80.0] * len(ahead)
            found[("fedlaw", column)] = [None if gap is None else 80.0 + gap for gap in ahead]
    return found


# With three seeds the interval is the mean ± 2.484 standard deviations.
@pytest.mark.parametrize(
    ("name", "ahead", "verdict"),
    [
        # Printed +1.19: 1.2 ± 0.25 contains it, 2.1 ± 0.25 does not but is within a point, 9 ± 0.25 has only its side.
        ("difference", {"b": [1.1, 1.2, 1.3]}, "reproduced"),
        ("difference", {"b": [2.0, 2.1, 2.2]}, "reproduced"),
        ("difference", {"b": [8.9, 9.0, 9.1]}, "direction only"),
        # 4 ± 2.98 contains the printed number. 7 ± 5.96 does too, but is too wide to confirm the size.
        ("difference", {"b": [2.8, 4.0, 5.2]}, "reproduced"),
        ("difference", {"b": [4.6, 7.0, 9.4]}, "direction only"),
        # 2.5 ± 7.5 reaches below 0 although every seed is ahead. With one seed behind the claim is inconclusive.
        ("difference", {"b": [0.5, 1.0, 6.0]}, "direction only"),
        ("difference", {"b": [-0.1, 1.0, 6.0]}, "inconclusive"),
        ("difference", {"b": [-1.0, -0.5, -6.0]}, "inconclusive"),
        ("difference", {"b": [-1.1, -1.2, -1.3]}, "contradicted"),
        ("difference", {"b": [1.1, None, 1.3]}, "inconclusive"),
        ("difference", {"b": [1.1, 1.2]}, "not run"),
        ("difference", {}, "not run"),
        # Printed -0.78: the claim is that FedLAW is behind.
        ("behind", {"a": [-0.7, -0.8, -0.9]}, "reproduced"),
        ("behind", {"a": [0.7, 0.8, 0.9]}, "contradicted"),
        # The text says ahead, but the printed difference is behind.
        ("ahead", {"a": [0.7, 0.8, 0.9]}, "direction only"),
        ("ahead", {"a": [0.1, 0.15, 0.2]}, "direction only"),  # although print, -0.78, is within a point
        ("ahead", {"a": [-0.7, -0.8, -0.9]}, "contradicted"),
        # At most 2 points on either side: ± 0.25, also on the side that is not printed; 1.9 ± 0.25; 2.9 ± 0.25; one seed
        # beyond.
        ("small", {"b": [1.1, 1.2, 1.3]}, "reproduced"),
        ("small", {"b": [-1.1, -1.2, -1.3]}, "reproduced"),
        ("small", {"b": [1.8, 1.9, 2.0]}, "direction only"),
        ("small", {"b": [-1.8, -1.9, -2.0]}, "direction only"),
        ("small", {"b": [2.8, 2.9, 3.0]}, "contradicted"),
        ("small", {"b": [-2.8, -2.9, -3.0]}, "contradicted"),
        ("small", {"b": [0.5, 1.0, 2.5]}, "inconclusive"),
        ("small", {"b": [0.5, None, 0.5]}, "inconclusive"),
        ("small", {"b": [0.5, 0.5]}, "not run"),
        # Each column has its own verdict.
        ("each", {"a": [-0.7, -0.8, -0.9], "b": [1.1, 1.2, 1.3]}, "reproduced"),
        ("each", {"a": [-0.7, -0.8, -0.9], "b": [8.9, 9.0, 9.1]}, "direction only"),
        ("each", {"a": [-0.7, -0.8, -0.9], "b": [-0.1, 1.0, 6.0]}, "inconclusive"),
        ("each", {"a": [0.7, 0.8, 0.9], "b": [1.1, 1.2, 1.3]}, "contradicted"),
        # -0.93 ± 0.76 alone contradicts, p = 0.034. Among two numbers it does not, 2 p = 0.068, whether the other is as claimed
        # or has no p-value: 5 and 5.1 lie far on the wrong side, and one seed diverged.
        ("difference", {"b": [-1.0, -1.2, -0.6]}, "contradicted"),
        ("each", {"a": [-1.0, -1.1, -1.2], "b": [-1.0, -1.2, -0.6]}, "inconclusive"),
        ("each", {"a": [5.0, 5.1, None], "b": [-1.0, -1.2, -0.6]}, "inconclusive"),
        ("each", {"a": [-0.7, -0.8, -0.9]}, "not run"),
        # Printed mean of both columns +0.205. Seed by seed: 0.2, 0.21, 0.22; 4, 5, 6; 0.1, -0.1, 0.2; -1 and less.
        ("mean", {"a": [-0.8, -0.78, -0.76], "b": [1.2, 1.2, 1.2]}, "reproduced"),
        ("mean", {"a": [4.0, 5.0, 6.0], "b": [4.0, 5.0, 6.0]}, "direction only"),
        ("mean", {"a": [0.1, -0.1, 0.2], "b": [0.1, -0.1, 0.2]}, "inconclusive"),
        ("mean", {"a": [-2.0, -2.1, -2.2], "b": [0.0, 0.0, 0.0]}, "contradicted"),
        ("mean", {"a": [4.0, 5.0, None], "b": [4.0, 5.0, 6.0]}, "inconclusive"),
        # With two columns the line goes through both: printed rise 1.97.
        ("rises", {"a": [0.0, 0.0, 0.0], "b": [1.9, 2.0, 2.1]}, "reproduced"),
        ("rises", {"a": [0.0, 0.0, 0.0], "b": [5.9, 6.0, 6.1]}, "direction only"),
        ("rises", {"a": [0.0, 0.0, 0.0], "b": [0.1, 0.2, 4.0]}, "direction only"),
        ("rises", {"a": [0.0, 0.0, 0.0], "b": [-0.1, 0.2, 4.0]}, "inconclusive"),
        ("rises", {"a": [2.0, 2.1, 2.2], "b": [0.0, 0.0, 0.0]}, "contradicted"),
        ("rises", {"a": [2.0, 2.1, 2.2]}, "not run"),
        ("falls", {"a": [0.0, 0.0, 0.0], "b": [1.9, 2.0, 2.1]}, "reproduced"),
        ("falls", {"a": [2.0, 2.1, 2.2], "b": [0.0, 0.0, 0.0]}, "contradicted"),
        # The line through both columns rises by at most 2: by 1 ± 0.25, by -1, by 1.9 ± 0.25, by 3 and by -3.
        ("steady", {"a": [5.0, 5.0, 5.0], "b": [5.9, 6.0, 6.1]}, "reproduced"),
        ("steady", {"a": [5.9, 6.0, 6.1], "b": [5.0, 5.0, 5.0]}, "reproduced"),
        ("steady", {"a": [5.0, 5.0, 5.0], "b": [6.8, 6.9, 7.0]}, "direction only"),
        ("steady", {"a": [5.0, 5.0, 5.0], "b": [7.9, 8.0, 8.1]}, "contradicted"),
        ("steady", {"a": [7.9, 8.0, 8.1], "b": [5.0, 5.0, 5.0]}, "contradicted"),
        ("steady", {"a": [5.0, 5.0, 5.0], "b": [5.0, 6.0, 7.5]}, "inconclusive"),
        ("steady", {"a": [5.0, 5.0, 5.0]}, "not run"),
        # FedLAW alone, column A minus column B: printed 88.51 - 86.30 = +2.21.
        ("across", {"a": [2.1, 2.2, 2.3], "b": [0.0, 0.0, 0.0]}, "reproduced"),
        ("across", {"a": [8.9, 9.0, 9.1], "b": [0.0, 0.0, 0.0]}, "direction only"),
        ("across", {"a": [0.0, 0.0, 0.0], "b": [2.9, 3.0, 3.1]}, "contradicted"),
        ("across", {"a": [0.0, 0.0, 0.0], "b": [1.0, -1.0, 0.0]}, "inconclusive"),
        ("across", {"a": [1.0, None, 1.0], "b": [0.0, 0.0, 0.0]}, "inconclusive"),
        ("across", {"a": [1.0, 1.0, 1.0]}, "not run"),
        # The text says that column B is ahead, but in print column A is.
        ("across-ahead", {"a": [0.0, 0.0, 0.0], "b": [2.9, 3.0, 3.1]}, "direction only"),
        ("across-ahead", {"a": [2.9, 3.0, 3.1], "b": [0.0, 0.0, 0.0]}, "contradicted"),
        # Column A is claimed to be at most one point behind.
        ("not-behind", {"a": [2.1, 2.2, 2.3], "b": [0.0, 0.0, 0.0]}, "reproduced"),
        ("not-behind", {"a": [0.0, 0.0, 0.0], "b": [0.5, 0.6, 0.7]}, "direction only"),
        ("not-behind", {"a": [0.0, 0.0, 0.0], "b": [0.9, 1.0, 1.1]}, "inconclusive"),
        ("not-behind", {"a": [0.0, 0.0, 0.0], "b": [1.3, 1.4, 1.5]}, "contradicted"),
        # Exactly equal, nearly equal, apart by chance, apart.
        ("equal", {"b": [0.0, 0.0, 0.0]}, "reproduced"),
        ("equal", {"b": [0.0, 0.0, 0.25]}, "direction only"),
        ("equal", {"b": [3.0, -3.0, 0.0]}, "inconclusive"),
        ("equal", {"b": [0.9, 0.95, 1.05]}, "inconclusive"),  # 0.97 ± 0.19: apart, but by at most a point
        ("equal", {"b": [3.0, 3.1, 3.2]}, "contradicted"),
        ("equal", {"b": [0.0, None, 0.0]}, "inconclusive"),
        ("equal", {"b": [-3.0, -0.1, 0.0]}, "inconclusive"),
        ("equal", {"b": [-3.0, -3.1, -3.2]}, "contradicted"),
        ("equal", {"b": [1.0, 0.0, 0.5]}, "direction only"),
        ("small", {"b": [-0.5, -1.0, -2.5]}, "inconclusive"),
        ("small", {"b": [2.0, 2.0, 2.0]}, "reproduced"),
        ("difference", {"b": [2.18, 2.19, 2.2]}, "reproduced"),  # a point from the printed +1.19
        ("equal", {"b": [0.0]}, "not run"),
    ],
)
def test_a_verdict_on_paired_differences(name: str, ahead: dict, verdict: str) -> None:
    """The verdict of each kind that compares rows or columns follows the differences of two rows."""
    assert verdict_on(name, accuracies=gaps(**ahead)).verdict == verdict


def test_rounding_does_not_decide_at_a_bound() -> None:
    """Accuracies of 64.01 and 63.01 % are one point apart, and as floats a little more."""
    point = 100 * 6401 / 10000 - 100 * 6301 / 10000
    assert point > 1
    about = COMMON | {"pairs": PAIR, "columns": [A]}
    equal = check(KINDS["equal"], about | {"kind": "equal"}, "claim")
    small = check(KINDS["small"], about | {"kind": "small", "value": 1}, "claim")
    for claim, values, verdict in (
        (equal, [point, 0.2, 0.1], "direction only"),
        (equal, [point] * 3, "direction only"),
        (small, [point] * 3, "reproduced"),
        (small, [point, 0.2, -0.9], "direction only"),
    ):
        assert judged_alone(claim, [Number("n", A, dict(enumerate(values)), ())]) == verdict


def test_only_a_claim_to_be_ahead_has_a_bound_behind_zero() -> None:
    """A printed difference says on which side it lies, so a bound there is refused."""
    entry = COMMON | CLAIMS["not-behind"] | {"side": "printed"}
    with pytest.raises(UserError, match="behind = 1 needs side: ahead; printed differences have no such bound"):
        check(KINDS["across"], entry, "X-1")


def test_an_interval_on_the_claimed_side_counts_although_a_seed_is_behind() -> None:
    """Nine seeds at 10 and one at -0.1: 8.99 ± 2.28 lies above 0, but is too far from the printed +1.19 for its size."""
    found = verdict_on("difference", accuracies=gaps(b=[*[10.0] * 9, -0.1]), seeds=list(range(8, 18)))
    assert found.verdict == "direction only"


def test_the_printed_mean_decides_the_side_where_printed_numbers_differ_in_theirs() -> None:
    """The printed -3 and +1 have the mean -1, so the claim is "behind"."""
    each = [Number("n", B, {8: printed}, (), printed=printed, side=side) for printed, side in ((-3.0, -1), (1.0, 1))]
    assert (mean_of(each).printed, mean_of(each).side) == (-1.0, -1)


def test_a_point_of_a_mean_of_losses_is_a_share_of_their_mean() -> None:
    numbers = [Number("n", B, {8: 0.1}, (), unit="loss", against=printed) for printed in (2.0, 0.5)]
    assert mean_of(numbers).against == 1.25


def test_a_metric_that_one_seed_does_not_record_is_not_run() -> None:
    """A level claim is judged if every seed records its metric."""
    plan = make_plan("full")
    evidence = make_evidence(plan, {("fedlaw", B): [80.0] * 3}, {("fedlaw", B): {"ratio": [[1.2] * 5] * 3}})
    assert judged("level", plan, evidence).verdict == "reproduced"
    (seeds,) = (seeds for run, seeds in evidence.items() if "fedlaw" in run)
    del seeds[9]["curves"]["ratio"]
    assert judged("level", plan, evidence).verdict == "not run"


@pytest.mark.parametrize(
    ("name", "lower", "verdict"),
    [
        ("ahead", {"a": [-2.9, -3.0, -3.1]}, "direction only"),
        ("ahead", {"a": [2.9, 3.0, 3.1]}, "contradicted"),
        # Column B is ahead in print too, by 2.21.
        ("across-ahead", {"a": [2.9, 3.0, 3.1], "b": [0.0, 0.0, 0.0]}, "reproduced"),
        ("across-ahead", {"a": [0.0, 0.0, 0.0], "b": [2.9, 3.0, 3.1]}, "contradicted"),
    ],
)
def test_less_is_ahead_where_the_cells_say_so(name: str, lower: dict, verdict: str) -> None:
    """The metric of the cells decides, with lower as better, and not that of the columns, with higher as better."""
    plan = make_plan("full")
    for cell in plan["cells"]:
        cell["metric"] = cell["metric"] | {"better": "lower"}
    assert judged(name, plan, make_evidence(plan, gaps(**lower))).verdict == verdict


@pytest.mark.parametrize(
    ("name", "means", "verdict"),
    [
        ("level", [1.15, 1.2, 1.25], "reproduced"),
        ("level", [1.01, 1.2, 3.0], "direction only"),  # 1.74 ± 2.74
        ("level", [0.99, 1.2, 3.0], "inconclusive"),
        ("level", [0.85, 0.8, 0.75], "contradicted"),
        ("level", None, "not run"),
        ("below", [0.85, 0.8, 0.75], "reproduced"),
        ("below", [1.15, 1.2, 1.25], "contradicted"),
    ],
)
def test_a_verdict_on_a_recorded_metric(name: str, means: list[float] | None, verdict: str) -> None:
    """The number is the mean over five rounds, which vary by 0.5 around it. Without a recorded metric nothing has run."""
    curves = {"ratio": [[m - 0.5, m + 0.5, m, m - 0.5, m + 0.5] for m in means]} if means else {}
    found = verdict_on(name, accuracies={("fedlaw", B): [80.0] * 3}, curves={("fedlaw", B): curves})
    assert found.verdict == verdict
    if means:
        assert list(numbers(found)[0].per_seed.values()) == pytest.approx(means)
    else:
        assert "record no ratio" in found.why


@pytest.mark.parametrize(
    ("shown", "verdict"),
    [
        ([82.0, 82.1, 82.2], "reproduced"),
        ([81.1, 82.0, 90.0], "direction only"),
        ([80.9, 82.0, 90.0], "inconclusive"),
        ([80.0, 80.1, 80.2], "contradicted"),
        ([82.0, None, 82.2], "inconclusive"),
        ([82.0], "not run"),
    ],
)
def test_a_verdict_on_what_a_cell_shows(shown: list[float | None], verdict: str) -> None:
    """Without a named metric the cell's own number is compared with 81."""
    found = verdict_on("cell", accuracies={("fedlaw", B): shown})
    assert found.verdict == verdict
    assert numbers(found)[0].label.endswith("(above 81)")


def test_the_last_round_of_a_recorded_metric() -> None:
    """The mean over rounds is below 1, but the last round is above it."""
    curves = {("fedlaw", B): {"ratio": [[0.1, 0.1, 0.1, 0.1, 1.2]] * 3}}
    found = verdict_on("last", accuracies={("fedlaw", B): [80.0] * 3}, curves=curves)
    assert (found.verdict, list(numbers(found)[0].per_seed.values())) == ("reproduced", [1.2] * 3)
    assert "in the last round, above 1" in numbers(found)[0].label


# FedAvg ends at 80, the mean of its last two rounds, and first reaches it in round 4.
SLOW = [50.0, 60.0, 70.0, 80.0, 80.0]
IN_ROUND = {
    1: [80.0] * 5,
    2: [50.0, 81.0, 82.0, 83.0, 84.0],
    3: [50.0, 60.0, 80.0, 83.0, 84.0],
    5: [50.0, 60.0, 70.0, 75.0, 80.0],
    None: [50.0, 60.0, 70.0, 75.0, 79.0],
}


@pytest.mark.parametrize(
    ("reached", "shares", "verdict"),
    [
        ([2, 2, 2], [0.5, 0.5, 0.5], "reproduced"),
        ([3, 1, 3], [0.75, 0.25, 0.75], "direction only"),  # 0.58 ± 0.72
        ([5, 1, 3], [1.25, 0.25, 0.75], "inconclusive"),
        ([None, None, None], [1.5, 1.5, 1.5], "contradicted"),  # never reached counts as one round more than there are
    ],
)
def test_a_verdict_on_speed(reached: list[int | None], shares: list[float], verdict: str) -> None:
    """The rounds to the value that the other row ends with, divided by that row's rounds."""
    curves = {("fedavg", B): {"test_accuracy": [SLOW] * 3}, ("fedlaw", B): {"test_accuracy": [IN_ROUND[t] for t in reached]}}
    found = verdict_on("speed", accuracies=gaps(b=[0.0] * 3), curves=curves)
    assert list(numbers(found)[0].per_seed.values()) == shares
    assert [list(n.per_seed.values()) for n in numbers(found)[1:]] == [[t or 6 for t in reached], [4, 4, 4]]
    assert found.verdict == verdict
    assert ("prints no number" in found.why) == (verdict == "reproduced")
    assert verdict_on("speed", accuracies=gaps(b=[0.0] * 2), curves=curves).verdict == "not run"


def test_where_less_is_better_a_curve_reaches_what_it_falls_to() -> None:
    """FedAvg ends at 2 and reaches it in round 4, FedLAW in round 2: half as many rounds."""
    plan = make_plan("full")
    for cell in plan["cells"]:
        cell["metric"] = cell["metric"] | {"better": "lower"}
    falls = {"fedavg": [5.0, 4.0, 3.0, 2.0, 2.0], "fedlaw": [5.0, 2.0, 2.0, 2.0, 2.0]}
    curves = {(row, B): {"test_accuracy": [curve] * 3} for row, curve in falls.items()}
    found = judged("speed", plan, make_evidence(plan, gaps(b=[0.0] * 3), curves))
    assert [list(number.per_seed.values()) for number in numbers(found)] == [[0.5] * 3, [2.0] * 3, [4.0] * 3]


def test_speed_on_what_a_diagnostic_measures() -> None:
    """FedLAW reaches the end of FedAvg's curve in half as many rounds. It is not run while a seed of FedLAW is not measured."""
    plan = make_plan("full")
    for place in (*plan["columns"], *plan["cells"]):
        place["metric"] = place["metric"] | {"name": "heterogeneity_cosine", "diagnostic": "heterogeneity()"}
    curve = exhibit(plan).cell("fedlaw", B).place.reading.curve
    curves = {("fedavg", B): {curve: [SLOW] * 3}, ("fedlaw", B): {curve: [IN_ROUND[2]] * 3}}
    found = make_evidence(plan, gaps(b=[0.0] * 3), curves)
    assert list(numbers(judged("speed", plan, found))[0].per_seed.values()) == [0.5] * 3
    (run,) = (run for run in found if "fedlaw" in run)
    del found[run][9]["curves"][curve]
    assert judged("speed", plan, found).verdict == "not run"


def test_what_is_open_says_how_many_seeds_it_takes() -> None:
    """If the mean lies on the border, no number of seeds decides. Here both rows need the same rounds at every seed."""
    curves = {("fedavg", B): {"test_accuracy": [SLOW] * 3}, ("fedlaw", B): {"test_accuracy": [SLOW] * 3}}
    found = verdict_on("speed", accuracies=gaps(b=[0.0] * 3), curves=curves)
    assert (found.verdict, found.numbers[0][0].values) == ("inconclusive", [1.0, 1.0, 1.0])
    assert found.why.endswith(". A mean lies on the border itself, where no number of seeds decides")
    found = verdict_on("difference", accuracies=gaps(b=[0.0, 1.0, 2.0]))
    assert found.why.endswith(". With a probability of 80 % about 10 seeds would decide it")
    found = verdict_on("equal", accuracies=gaps(b=[0.7, 1.2, 0.8]))  # neither equal nor a point apart, with any seeds
    assert found.verdict == "inconclusive"
    assert found.why.endswith(", printed +1.19")
    found = verdict_on("small", accuracies=gaps(b=[-2.1, 0.0, 2.1]))  # 95 % of one side would take 12
    assert found.why.endswith(f"about {seeds_needed(2.0, [-2.1, 0.0, 2.1], other=2.0)} seeds would decide it")


@pytest.mark.parametrize(("a", "least"), [([0.0, -1.0, -2.0], 10), ([0.0, 1.0, 2.0], 13)])
def test_of_several_open_numbers_the_first_and_the_last_to_be_decided_are_named(a: list[float], least: int) -> None:
    """Column B is half a deviation on the claimed side and needs 34 seeds. Column A is one deviation off: it needs 10 seeds on
    the claimed side, and 13 to contradict among two numbers."""
    found = verdict_on("each", accuracies=gaps(a=a, b=[-0.5, 0.5, 1.5]))
    said = f". With a probability of 80 % about {least} seeds would decide one of these numbers, and about 34 all of them"
    assert found.why.endswith(said)


def test_seeds_do_not_decide_a_number_that_a_seed_has_not() -> None:
    """One seed of column A diverged; more seeds decide column B alone."""
    found = verdict_on("each", accuracies=gaps(a=[None, 1.0, 2.0], b=[-0.5, 0.5, 1.5]))
    assert found.why.endswith(" seeds would decide one of these numbers")


def test_speed_needs_values_of_the_metric() -> None:
    """A column that shows rounds or jumps is refused in one line, since a curve cannot reach them."""
    made = make_plan("full")
    made["cells"] = [one | {"read": "first_reaching(target=64)"} for one in made["cells"]]
    with pytest.raises(UserError, match=r"^papers/fedlaw/claims.yaml: .*: mlp-a01 shows test_accuracy, rounds to a target"):
        judged("speed", made, make_evidence(made, gaps(b=[0.0] * 3)))


@pytest.mark.parametrize("name", CLAIMS)
def test_below_full_scale_the_paper_is_not_judged(name: str) -> None:
    """At scale demo, for a stand-in and for an edited protocol our numbers are shown without a verdict on the paper."""
    values, curves = gaps(a=[-0.8] * 3, b=[1.2] * 3), {("fedlaw", B): {"ratio": [[1.2] * 5] * 3}}
    assert verdict_on(name, accuracies=values, curves=curves).verdict in VERDICTS[:4]
    for scale, changes, why in (
        ("demo", {}, "scale demo"),
        ("full", {"comparable": False, "stand_in": "Other data."}, "Other data."),
        ("full", {"comparable": False}, "edited"),
    ):
        found = verdict_on(name, scale, values, curves, **changes)
        assert found.verdict == "not comparable"
        assert why in found.why
        assert {verdict for _, verdict in found.numbers} <= {"not comparable", None}
        assert numbers(found)[0].mean is not None
        assert verdict_on(name, scale, **changes).verdict == "not run"


def test_a_number_carries_its_seeds_its_interval_and_its_runs() -> None:
    """1.0, 1.2, 1.4: mean 1.2, s = 0.2, t(0.975, 2) = 4.3027, interval 1.2 ± 0.4968. Printed 86.30 - 85.11."""
    (number,) = numbers(verdict_on("difference", accuracies=gaps(b=[1.0, 1.2, 1.4])))
    assert number.mean == pytest.approx(1.2)
    assert number.interval == (pytest.approx(0.703172, abs=1e-6), pytest.approx(1.696828, abs=1e-6))
    assert number.printed == 1.19
    assert number.column == B
    assert list(number.per_seed) == [8, 9, 10]
    assert number.label == "FedLAW − FedAvg, FashionMNIST · MLP, α = 0.1"
    made = make_plan("full")
    ids = [next(c["run_id"] for c in made["cells"] if (c["row"], c["column"]) == (row, B)) for row in ("fedlaw", "fedavg")]
    assert number.runs == tuple(f"{run_id}/seed{seed}" for run_id in ids for seed in (8, 9, 10))


def test_a_claim_over_many_numbers_counts_what_is_missing() -> None:
    """Eight cells that wait for runs give a count and an example. Up to four are listed."""
    reasons = [f"table3: fedlaw, {column}: not run yet; table3: fedavg, {column}: not run yet" for column in "abcd"]
    (verdict, why) = _overall([("not run", reason) for reason in reasons])
    assert (verdict, why) == ("not run", "4 of 4 numbers wait for runs, for example table3: fedlaw, a: not run yet")
    (_, why) = _overall([("reproduced", ""), *(("not run", reason) for reason in reasons[:2])])
    assert why.count("not run yet") == 4


def test_what_is_missing_is_named() -> None:
    """The reason names a seed, a cell, a column that the scale does not show, or a whole table."""
    assert "FedLAW, FashionMNIST · MLP, α = 0.1: no seed 10 yet" in verdict_on("difference", accuracies=gaps(b=[1.0, 1.1])).why
    assert (
        "FedAvg, FashionMNIST · MLP, α = 0.1: not run yet"
        in verdict_on("difference", accuracies={("fedlaw", B): [81.0] * 3}).why
    )
    made = make_plan("full")
    made["cells"] = [cell for cell in made["cells"] if cell["column"] == A]
    run = made["runs"][made["cells"][0]["run_id"]]
    found = judged("difference", made, {run["run_id"]: {8: make_receipt(run, 8)}})
    assert "FedLAW, FashionMNIST · MLP, α = 0.1: not in the table at scale full" in found.why
    found = judged("difference", made, {})
    assert (found.verdict, found.why) == ("not run", "nothing of table3 has been run")
    (found,) = judge([claim("difference")], {})
    assert (found.verdict, found.why, found.numbers) == ("not run", "there is no table3 here", ())


def test_one_seed_has_no_interval() -> None:
    """One seed can show the direction, but can neither reproduce nor contradict."""
    for gap, verdict in ((1.2, "direction only"), (-9.0, "inconclusive")):
        found = verdict_on("difference", accuracies=gaps(b=[gap]), seeds=[8])
        assert found.verdict == verdict
        assert numbers(found)[0].interval is None


@pytest.mark.parametrize(("unit", "said"), [("percent", "+3.00 points"), ("rounds", "+3.0 rounds"), ("count", "+3")])
def test_a_difference_is_described_in_its_own_unit(unit: str, said: str) -> None:
    assert _describe(Number("n", B, {8: 3.0}, (), unit=unit)) == f"{said}, one seed, no interval"


def test_a_fraction_has_smaller_points() -> None:
    """0.02 is two points of a fraction, so it is too far from the printed 0.001 to confirm the size."""
    for gap, verdict in ((0.02, "direction only"), (0.008, "reproduced")):
        seeds = {8: gap, 9: gap + 0.0001, 10: gap + 0.0002}
        assert judged_alone(claim("difference"), [Number("n", B, seeds, (), printed=0.001, side=1, unit="fraction")]) == verdict


@pytest.mark.parametrize(("baseline", "tolerated"), [(2.0, True), (0.5, False)])
def test_a_point_of_a_loss_is_a_share_of_the_loss_and_not_of_the_difference(baseline: float, tolerated: bool) -> None:
    """0.03 is within 2 % of a loss of 2.0 and not within 2 % of a loss of 0.5. The printed difference is 0."""
    seeds = {8: 0.03, 9: 0.0301, 10: 0.0302}
    number = Number("n", B, seeds, (), printed=0.0, unit="loss", against=baseline)
    for one in (number, mean_of([number, number])):
        assert judged_alone(claim("equal"), [one]) == ("direction only" if tolerated else "contradicted")
    (made,) = numbers(verdict_on("difference", accuracies=gaps(b=[1.1, 1.2, 1.3])))
    assert (made.printed, made.against) == (1.19, 85.11)


def test_where_no_difference_is_printed_no_side_is_claimed() -> None:
    """Far ahead and far behind are both inconclusive."""
    for gap in (9.0, -9.0):
        seeds = {8: gap, 9: gap + 0.1, 10: gap + 0.2}
        assert judged_alone(claim("difference"), [Number("n", B, seeds, (), printed=0.0)]) == "inconclusive"


def test_the_rule_is_printed_whole() -> None:
    """Every kind's rule has its verdicts, and for several numbers says how they make one verdict."""
    for name, entry in CLAIMS.items():
        said = rule(claim(name))
        for word in ("eproduced", "irection only", "ontradicted", "nconclusive", "diverged or did not reach its target"):
            assert word in said, (name, word)
        assert ("Of several numbers" in said) == (name in ("each", "mean"))
        assert "\n" not in said
        assert entry["kind"] != "speed" or "one round more" in said


def write(root: Path, text: str) -> Path:
    path = claims_path(root, "some")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


GOOD = "- {id: S-1, text: t, where: w, kind: difference, table: table1, pairs: {fedlaw: fedavg}, columns: [a]}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("columns", "colums"), "S-1: unknown key 'colums'; did you mean 'columns'?"),
        (GOOD.replace("difference", "diffrence"), "S-1: unknown kind 'diffrence'; did you mean 'difference'?"),
        (GOOD.replace("difference", "[difference]"), "S-1: unknown kind \\['difference'\\]"),
        (GOOD.replace(", columns: [a]", ""), "S-1: key 'columns' is missing"),
        (GOOD.replace("[a]", "[]"), "S-1: columns = \\[\\]"),
        (GOOD + GOOD, "id = 'S-1' is used twice"),
        ("claims: 3\n", "give a list of claims"),
        ("- S-1\n", "claim 1: 'S-1' is not a valid claim"),
        (GOOD.replace("difference", "trend"), "S-1: "),
    ],
)
def test_a_mistake_in_the_file_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    """The line names the file and the claim, and what is wrong."""
    path = write(tmp_path, text)
    with pytest.raises(UserError, match=said) as caught:
        load_claims(tmp_path, "some")
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_paper_without_the_file_claims_nothing(tmp_path: Path) -> None:
    """An empty file claims nothing either."""
    assert load_claims(tmp_path, "some") == []
    write(tmp_path, "")
    assert load_claims(tmp_path, "some") == []
