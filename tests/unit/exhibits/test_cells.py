"""The arithmetic of a table: means, spreads, differences, statuses, best marks."""

import math

import pytest
from small_table import exhibit, make_evidence, make_plan, tabulated

from fedrepro.engine.fingerprints import RULE
from fedrepro.exhibits.cells import count_statuses, exchanged, judge_as_mean_of, well_within
from fedrepro.exhibits.sections.words import BORROWED, measured, not_run, outside, told_apart
from fedrepro.exhibits.spreads import spreads
from fedrepro.exhibits.verdict import Rule, estimate
from fedrepro.units import unit


def by_place(cells):
    return {(cell.row.key, cell.column.key): cell for cell in cells}


A, B = "mlp-a100", "mlp-a01"


def test_mean_and_sample_std_over_seeds():
    """(88 + 89 + 91) / 3 = 89.3333. Deviations -4/3, -1/3, 5/3: variance (16 + 1 + 25) / 9 / 2 = 7/3."""
    plan = make_plan("full")
    cell = by_place(tabulated(plan, make_evidence(plan, {("fedavg", A): [88.0, 89.0, 91.0]})))["fedavg", A]
    assert cell.per_seed == {8: 88.0, 9: 89.0, 10: 91.0}
    assert cell.mean == pytest.approx(268 / 3)
    assert cell.std == pytest.approx(math.sqrt(7 / 3))
    assert cell.runs == tuple(f"{cell.run_id}/seed{seed}" for seed in (8, 9, 10))


@pytest.mark.parametrize(
    ("row", "values", "mean", "reason"),
    [
        ("fedavg", [88.0, None, 89.0], None, "1 of 3 seeds diverged: 9"),  # a mean of the others would look too good
        ("fedavg", [89.0, 90.0], 89.5, "1 of 3 seeds not run yet: 10"),
        ("fedavg", [89.0], 89.0, "2 of 3 seeds not run yet: 9, 10"),
        ("fedavg", [], None, "not run yet"),
        ("ours", [], None, "this pair does not exist"),  # the plan's reason
    ],
)
def test_why_there_is_no_number_or_not_of_all_seeds(row, values, mean, reason):
    """Seeds that ran stay visible. The deviation of a single value is unknown and not zero."""
    plan = make_plan("full")
    cell = by_place(tabulated(plan, make_evidence(plan, {(row, B): values})))[row, B]
    assert list(cell.per_seed.values()) == values
    assert (cell.mean, cell.reason) == (mean, reason)
    assert (cell.std is None) == (mean is None or len(values) == 1)
    assert (cell.difference is None) == (mean is None)


def test_a_round_before_a_seed_diverged_has_its_mean():
    """Seed 9 diverges in round 4. Round 3 is 10 + 70 (1 - 1/e²) at seed 8 and 10 + 40 (1 - 1/e²) at seed 9."""
    plan = make_plan("full", seeds=[8, 9])
    place = next(cell for cell in plan["cells"] if (cell["row"], cell["column"]) == ("fedavg", A))
    found = make_evidence(plan, {("fedavg", A): [80.0, None]})

    def read(call):
        table = exhibit(plan | {"cells": [cell | {"read": call} if cell is place else cell for cell in plan["cells"]]}, found)
        (said,) = [one.partition("; ")[2] for one in table.warnings if "diverged" in one]
        cell = by_place(table.cells)["fedavg", A]
        return cell.mean, cell.reason, said

    assert read("at(3)") == (pytest.approx(10 + 55 * (1 - math.exp(-2)), abs=1e-4), None, "the cells show earlier rounds.")
    assert read("at(4)") == (
        None,
        "1 of 2 seeds diverged: 9",
        "these cells have no mean: FedAvg (FashionMNIST · MLP, α = 100).",
    )


def test_seeds_of_different_code_make_no_mean_and_no_verdict():
    """Seed 10 has other code than seeds 8 and 9, so the cell counts as not run, and nothing in its column is best yet."""
    plan = make_plan("full")
    found = make_evidence(plan, {("fedlaw", A): [88.51] * 3, ("fedavg", A): [80.0] * 3})
    for seeds in found.values():
        for seed, receipt in seeds.items():
            receipt["code"] = {"part fedlaw": f"{RULE}b" if seed == 10 else f"{RULE}a"}
    cells = tabulated(plan, found)
    cell = by_place(cells)["fedlaw", A]
    assert (cell.mean, cell.status, cell.reason) == (None, "not run", "the seeds are of different code of part fedlaw")
    assert measured(cell) == "seeds of different code or data"
    assert not_run([cell]) == "Not run: 1 of 1 cells (1: the seeds are of different code of part fedlaw)."
    assert not any(cell.best_measured for cell in cells)


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ([90.29, 90.29, 90.29], "reproduced"),  # exactly one point above 89.29, although 90.29 - 89.29 > 1 in floats
        ([90.30, 90.30, 90.30], "not reproduced"),  # no deviation, so no margin
        ([91.38, 91.78, 92.18], "not reproduced"),  # 2.49 away; t(.975, 2) x 0.4 x sqrt(1/3 + 1) = 1.99
        ([90.29, 91.29, 92.29], "consistent"),  # 2.00 away; 4.97 x 1.0
        ([90.19, 91.29, 92.39], "inconclusive"),  # 2.00 away; 4.97 x 1.1 = 5.46, more than five points
        ([91.29], "inconclusive"),  # one seed
        ([89.29, 89.29, None], "not reproduced"),  # one seed diverged
        ([], "not run"),
    ],
)
def test_status_by_the_rule(values, status):
    """The committed rule at full scale, near its thresholds. The printed number is 89.29."""
    plan = make_plan("full")
    assert by_place(tabulated(plan, make_evidence(plan, {("fedavg", A): values})))["fedavg", A].status == status


def test_a_prior_moderates_the_margin_of_every_cell_of_its_metric():
    """The mean is 2.00 off and the deviation 1. Without a prior the margin is t(.975, 2) x sqrt(4/3) = 4.97. A prior of 0.5
    with 2 degrees of freedom gives the variance (2 x 0.25 + 2 x 1) / 4 and the margin t(.975, 4) x sqrt(0.625) x sqrt(4/3) =
    2.53."""
    plan = make_plan("full")
    found = make_evidence(plan, {("fedavg", A): [90.29, 91.29, 92.29]})
    assert by_place(tabulated(plan, found))["fedavg", A].margin == pytest.approx(4.968, abs=1e-3)
    plan["spreads"] = {"test_accuracy": {"deviation": 0.5, "freedom": 2.0, "measurements": 9}}
    assert by_place(tabulated(plan, found))["fedavg", A].margin == pytest.approx(2.535, abs=1e-3)
    plan["spreads"] = {"test_loss": plan["spreads"]["test_accuracy"]}
    assert by_place(tabulated(plan, found))["fedavg", A].margin == pytest.approx(4.968, abs=1e-3)


def test_a_table_that_varies_another_is_not_judged():
    """It has differences and margins but no verdict, since we choose its settings knowing the printed numbers."""
    plan = make_plan("full", variant_of="table2")
    cell = by_place(tabulated(plan, make_evidence(plan, {("fedavg", A): [90.29, 91.29, 92.29]})))["fedavg", A]
    assert (cell.difference, cell.status) == (2.0, "not judged")
    assert cell.margin == pytest.approx(4.968, abs=1e-3)


def test_a_measurement_counts_once_for_the_prior():
    """A run that two rows show counts once, and so do seeds that another run repeats bit for bit. A measurement with a diverged
    seed does not count. Three distinct measurements remain."""
    plan = make_plan("full")
    places = {(cell["row"], cell["column"]): cell for cell in plan["cells"]}
    places["ours", A]["run_id"] = places["fedavg", A]["run_id"]
    values = {("fedavg", A): [89.0, 90.0, 91.0], ("fedavg", B): [80.0, 84.0, 81.0], ("fedlaw", A): [70.0, 70.5, 70.1]}
    found = make_evidence(plan, values | {("fedlaw", B): [89.0, 90.0, 91.0]})
    alone = spreads([exhibit(plan, found)])["test_accuracy"]
    assert alone == estimate(list(values.values()))
    assert alone.measurements == 3
    diverged = make_evidence(plan, values | {("fedlaw", B): [50.0, None, 91.0]})
    assert spreads([exhibit(plan, diverged)]) == {"test_accuracy": alone}
    assert spreads([exhibit(plan, found), exhibit(plan, found)]) == {"test_accuracy": alone}
    assert spreads([exhibit(plan | {"comparable": False}, found)]) == {}


def test_what_is_read_of_a_curve_in_another_way_is_another_quantity():
    """Accuracy and rounds until 85 are different quantities, so the seeds of one do not enter the spread of the other. One
    column has both, and each spread is estimated from its own two cells."""
    plan = make_plan("full")
    values = {("fedavg", A): [89.0, 90.0, 91.0], ("fedavg", B): [80.0, 84.0, 81.0]}
    rounds = {("fedlaw", A): [90.0, 95.0, 99.0], ("fedlaw", B): [88.0, 87.0, 92.0]}
    evidence = make_evidence(plan, values | rounds)
    assert spreads([exhibit(plan, evidence)])["test_accuracy"].measurements == 4
    for cell in plan["cells"]:
        if cell["row"] == "fedlaw":
            cell["read"] = "first_reaching(85)"
    for (row, column), seeds in rounds.items():
        run = next(cell["run_id"] for cell in plan["cells"] if (cell["row"], cell["column"]) == (row, column))
        for place, (receipt, value) in enumerate(zip(evidence[run].values(), seeds, strict=True)):
            receipt["curves"]["test_accuracy"] = [0.0] * (place + len(column)) + [value]
    found = spreads([exhibit(plan, evidence)])
    assert found["test_accuracy"] == estimate(list(values.values()))
    assert found["test_accuracy, rounds to a target"].measurements == 2
    plan["spreads"] = {"test_accuracy": {"deviation": 50.0, "freedom": 100.0, "measurements": 9}}
    cells = by_place(tabulated(plan, evidence))
    assert cells["fedavg", A].margin > 100
    assert cells["fedlaw", A].margin < 10


def test_below_full_scale_nothing_is_compared():
    """At demo scale there is no difference, even if the numbers agree."""
    plan = make_plan("demo")
    cells = tabulated(plan, make_evidence(plan, {("fedavg", A): [89.29] * 3, ("ours", A): [90.0] * 3}))
    assert all(cell.difference is None for cell in cells)
    found = by_place(cells)
    assert found["fedavg", A].status == "not comparable"
    assert found["ours", A].status == "not printed"
    assert found["fedlaw", A].status == "not run"


@pytest.mark.parametrize(("average_last", "value"), [(1, 90.0), (2, 85.0), (4, (60 + 80 + 90) / 3), (5, 70.0), (50, 70.0)])
def test_a_seeds_value_is_the_mean_of_the_last_rounds(average_last, value):
    """Accuracies 50, none, 60, 80, 90: a round without a value is skipped, and a mean over more rounds than there are is over
    all of them. Another average_last gives other numbers from the same evidence."""
    plan = make_plan("full")
    evidence = make_evidence(plan, {("fedavg", A): [0.0]})
    (receipt,) = evidence[plan["cells"][0]["run_id"]].values()
    receipt["curves"]["test_accuracy"] = [50.0, None, 60.0, 80.0, 90.0]
    plan["cells"][0]["read"] = f"last({average_last})"
    cell = by_place(tabulated(plan, evidence))["fedavg", A]
    assert cell.per_seed[8] == pytest.approx(value)


@pytest.mark.parametrize(("better", "best"), [("higher", {"fedavg", "ours"}), ("lower", {"fedlaw"})])
def test_best_of_a_column_marks_every_tie(better, best):
    """Means that are equal at two decimals tie. The best printed number is marked separately."""
    plan = make_plan("demo")
    for place in (*plan["columns"], *plan["cells"]):
        place["metric"]["better"] = better
    found = {("fedavg", A): [90.001] * 3, ("ours", A): [90.0] * 3, ("fedlaw", A): [89.0] * 3}
    cells = tabulated(plan, make_evidence(plan, found))
    assert {cell.row.key for cell in cells if cell.column.key == A and cell.best_measured} == best
    assert {cell.row.key for cell in cells if cell.column.key == A and cell.best_printed} == {
        "fedavg" if better == "higher" else "fedlaw"
    }


def test_means_over_different_seeds_have_no_best():
    """A missing third seed may be a bad one: 92, 92 and 40 have the mean 74.67. Printed numbers are still marked."""
    plan = make_plan("demo")
    found = {("fedavg", A): [90.0] * 3, ("fedlaw", A): [92.0, 92.0]}
    cells = tabulated(plan, make_evidence(plan, found))
    assert not any(cell.best_measured for cell in cells)
    assert any(cell.best_printed for cell in cells)
    cells = tabulated(plan, make_evidence(plan, found | {("fedlaw", A): [92.0, 92.0, 40.0]}))
    assert [cell.row.key for cell in cells if cell.best_measured] == ["fedavg"]


def test_nothing_is_best_while_a_printed_row_has_not_run():
    """FedAvg has not run yet and may be better than FedLAW's 88. The row `ours` is not printed, so nothing waits for it."""
    plan = make_plan("full")
    found = {("fedlaw", A): [88.0] * 3}
    assert not any(cell.best_measured for cell in tabulated(plan, make_evidence(plan, found)))
    cells = tabulated(plan, make_evidence(plan, found | {("fedavg", A): [87.0] * 3}))
    assert [cell.row.key for cell in cells if cell.best_measured] == ["fedlaw"]


def test_without_printed_numbers_nothing_is_best_while_any_row_has_not_run():
    """All rows of a table of ours count. A diverged row has run, and a cell without a run is waited for only if it is tuned."""
    plan = make_plan("full")
    for cell in plan["cells"]:
        cell["printed"] = None
    found = {("fedlaw", A): [88.0] * 3, ("fedavg", A): [None] * 3, ("fedlaw", B): [85.0] * 3, ("fedavg", B): [84.0] * 3}

    def best(more):
        return {
            place for place, cell in by_place(tabulated(plan, make_evidence(plan, found | more))).items() if cell.best_measured
        }

    assert best({}) == {("fedlaw", B)}
    assert best({("ours", A): [87.0] * 3}) == {("fedlaw", A), ("fedlaw", B)}
    plan["cells"][-1]["tuned"] = True
    assert best({}) == set()


def test_counts_follow_the_rule():
    """A wider tolerance makes the number reproduced. The counts of all statuses add up to the number of cells."""
    plan = make_plan("full")
    evidence = make_evidence(plan, {("fedavg", A): [91.0] * 3})
    assert count_statuses(tabulated(plan, evidence))["not reproduced"] == 1
    assert count_statuses(tabulated(plan, evidence, Rule(tolerance=2.0)))["reproduced"] == 1
    assert sum(count_statuses(tabulated(plan, evidence)).values()) == len(plan["cells"])


@pytest.mark.parametrize(
    ("unit", "printed", "values"),
    [("fraction", 0.950, (0.959, 0.962)), ("norm", 20.0, (20.4, 20.5))],  # a point is 0.01, or 2 % of a printed norm
)
def test_points_of_other_units(unit, printed, values):
    plan = make_plan("full")
    plan["columns"][0]["metric"]["unit"] = plan["cells"][0]["metric"]["unit"] = unit
    plan["cells"][0]["printed"] = printed
    for value, status in zip(values, ("reproduced", "not reproduced"), strict=True):
        assert by_place(tabulated(plan, make_evidence(plan, {("fedavg", A): [value] * 3})))["fedavg", A].status == status


def test_a_point_of_an_eigenvalue_is_a_share_of_its_size():
    """Eigenvalues may be negative. 2 % of -2.0 is 0.04."""
    assert (unit("eigenvalue").one_point(-2.0), unit("percent").one_point(-2.0)) == (0.04, 1.0)


def test_reproduced_numbers_that_are_near_with_their_whole_margin():
    """The printed number is 89.29. Seeds within 0.02 have a small margin, so 0.3 off plus the margin stays within one point.
    Seeds a point apart do not, nor does 0.99 off, above or below. A point of a fraction is 0.01."""
    plan = make_plan("full")

    def near(*values: float) -> tuple[str, int]:
        cell = by_place(tabulated(plan, make_evidence(plan, {("fedavg", A): list(values)})))["fedavg", A]
        return cell.status, well_within([cell])

    assert near(89.58, 89.59, 89.60) == ("reproduced", 1)
    assert near(88.6, 89.6, 90.6) == ("reproduced", 0)
    assert near(90.27, 90.28, 90.29) == ("reproduced", 0)
    assert near(88.30, 88.31, 88.32) == ("reproduced", 0)
    plan["columns"][0]["metric"]["unit"] = plan["cells"][0]["metric"]["unit"] = "fraction"
    plan["cells"][0]["printed"] = 0.950
    assert near(0.957, 0.958, 0.959) == ("reproduced", 0)
    assert near(0.9519, 0.952, 0.9521) == ("reproduced", 1)


def test_how_many_means_would_pass_beside_the_number_of_another_row():
    """Column A prints 89.29 for FedAvg and 88.51 for FedLAW, column B 85.11 and 86.30. FedAvg's 88.9 is within a point of
    FedLAW's number, its 85.0 in B is not. Of a row that has not run nothing is counted."""
    plan = make_plan("full")
    values = {("fedavg", A): [88.89, 88.90, 88.91], ("fedavg", B): [84.99, 85.0, 85.01]}
    cells = tabulated(plan, make_evidence(plan, values))
    assert (exchanged(cells), exchanged(cells[:1])) == ((2, 1), (0, 0))
    said = "Compared with the number printed for another row, 1 of 2 means would count as reproduced."
    assert told_apart(2, 1) == said
    assert told_apart(0, 0) == ""


def test_more_seeds_behind_a_printed_number_narrow_its_margin():
    """Without a prior the margin is t(0.975, 2) s sqrt(1/3 + 1/m) with s = 1: 4.97 for one printed seed, 3.51 for three. 4
    points off are consistent with the first and not reproduced with the second."""
    plan = make_plan("full", printed_seeds={"value": None, "source": "not given"}, spreads={})
    made = exhibit(plan, make_evidence(plan, {("fedavg", A): [92.29, 93.29, 94.29]}))
    assert by_place(made.cells)["fedavg", A].status == "consistent"
    assert [cell.status for cell in judge_as_mean_of(1, made.cells, made.plan)] == ["consistent"]
    assert [cell.status for cell in judge_as_mean_of(3, made.cells, made.plan)] == ["not reproduced"]


def test_the_page_counts_what_lies_outside_its_margin_and_passes_all_the_same():
    """Printed 89.29 and 85.11, seeds that hardly differ: 0.9 off and 3 off are both outside their margin. The first is still
    reproduced."""
    plan = make_plan("full")
    values = {("fedavg", A): [90.19, 90.20, 90.18], ("fedavg", B): [88.11, 88.12, 88.10]}
    said = outside(tabulated(plan, make_evidence(plan, values)))
    assert said.startswith(
        "2 of 2 judged numbers lie outside their margin. 1 of them still counts as reproduced, since a difference of up to one "
        "point is tolerated. "
    )
    assert said.endswith("about 0.1 would lie outside by chance.")
    plan["spreads"] = {"test_accuracy": {"deviation": 0.5, "freedom": 2.0, "measurements": 9}}  # one seed needs a prior
    assert outside(tabulated(plan, make_evidence(plan, values | {("fedlaw", A): [88.5]}))).endswith(BORROWED)
