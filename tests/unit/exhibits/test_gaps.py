"""Differences of two methods, paired by seed, and their picture."""

import math
import re
from dataclasses import replace

import pytest
from small_table import exhibit, make_evidence, make_plan

from fedrepro.engine.fingerprints import RULE
from fedrepro.exhibits.comparisons import pictured
from fedrepro.exhibits.pictures import gaps as pictures

pytestmark = pytest.mark.drawn

A, B = "mlp-a100", "mlp-a01"
FOUND = {("fedavg", A): [80.0, 82.0, 84.0], ("fedlaw", A): [81.0, 84.0, 84.0]}


def gaps_of(accuracies, scale="full"):
    """The gaps of the small table with these accuracies."""
    plan = make_plan(scale)
    return exhibit(plan, make_evidence(plan, accuracies)).gaps


def drawn(gap, path):
    pictures.draw(gap, path)
    return path.read_text()


def test_seeds_are_paired():
    """FedLAW is 1, 2 and 0 above FedAvg at the same seeds. Its own spread (2 points) does not enter the interval: mean 1,
    deviation 1, half-width 4.302653 / sqrt(3). Printed: 88.51 - 89.29."""
    assert gaps_of({("fedavg", A): [80.0, 81.0, 82.0]}) == []  # printed numbers alone make no gap
    (gap,) = gaps_of(FOUND)
    one = next(one for one in gap.settings if one.column.key == A)
    assert one.per_seed == pytest.approx({8: 1.0, 9: 2.0, 10: 0.0})
    assert one.ours == pytest.approx(1.0)
    assert (one.low, one.high) == pytest.approx((1 - 4.302653 / math.sqrt(3), 1 + 4.302653 / math.sqrt(3)), abs=1e-6)
    assert one.printed == pytest.approx(-0.78)
    assert len(one.runs) == 6


def test_a_stand_in_compares_with_print_only_what_a_part_adds():
    """A stand-in compares the gap of `x+part` over `x` with the printed one. It does not compare the gap of two different
    methods, since each may depend on the setting."""
    for stand_in, printed in ((None, [1.0, -0.78]), ("Other data.", [1.0])):
        plan = make_plan("full", stand_in=stand_in, comparable=stand_in is None)
        for row in plan["rows"]:
            row["key"] = row["key"].replace("ours", "fedavg+gh")
        for cell in plan["cells"]:
            cell["row"] = cell["row"].replace("ours", "fedavg+gh")
            cell["printed"] = 90.29 if (cell["row"], cell["column"]) == ("fedavg+gh", A) else cell["printed"]
        found = exhibit(plan, make_evidence(plan, FOUND | {("fedavg+gh", A): [81.0, 83.0, 85.0]})).gaps
        settings = {gap.method.key: next(one for one in gap.settings if one.column.key == A) for gap in found}
        assert [round(one.ours) for one in settings.values()] == [1, 1]
        assert sorted(one.printed for one in settings.values() if one.printed is not None) == pytest.approx(sorted(printed))


def test_a_diverged_seed_leaves_no_measured_difference():
    """A mean over the other seeds would make FedLAW look better than it is, as in the table. The other setting keeps its
    difference."""
    found = {(m, s): [80.0, None if (m, s) == ("fedlaw", A) else 81.0] for m in ("fedavg", "fedlaw") for s in (A, B)}
    (gap,) = gaps_of(found)
    by_setting = {one.column.key: one for one in gap.settings}
    assert (by_setting[A].ours, by_setting[A].runs, by_setting[A].reason) == (None, (), "diverged at a seed")
    assert by_setting[B].ours == pytest.approx(0.0)
    assert "not measured (diverged at a seed)" in gap.text


def test_a_cpu_and_a_gpu_are_told_apart():
    """A seed gives other results on a GPU than on a CPU, and the paired difference includes this. The text names both
    devices."""
    plan = make_plan("full")
    found = make_evidence(plan, FOUND)
    fedlaw = next(cell["run_id"] for cell in plan["cells"] if (cell["row"], cell["column"]) == ("fedlaw", A))

    def seeds() -> str:
        (gap,) = exhibit(plan, found).gaps
        return next(one for one in gap.settings if one.column.key == A).seeds

    assert seeds() == "8: +1.00, 9: +2.00, 10: +0.00"
    for receipt in found[fedlaw].values():
        receipt["environment"] = receipt["environment"] | {"device": "cuda"}
    assert seeds() == "8: +1.00, 9: +2.00, 10: +0.00 (a GPU and a CPU)"


@pytest.mark.parametrize(
    ("key", "values", "what"),
    [
        ("code", ({"part fedlaw": f"{RULE}a"}, {"part fedlaw": f"{RULE}b"}), "different code of part fedlaw"),
        ("inputs", ({"arrays": "a"}, {"arrays": "b"}), "different arrays of the data set"),
    ],
)
def test_seeds_of_different_code_or_data_leave_no_measured_difference(key, values, what):
    """There is no mean in other readings either, and none in the cell."""
    plan = make_plan("full")
    found = make_evidence(plan, FOUND | {("fedavg", B): [80.0] * 3, ("fedlaw", B): [81.0] * 3})
    fedlaw = next(cell["run_id"] for cell in plan["cells"] if (cell["row"], cell["column"]) == ("fedlaw", A))
    for seed, receipt in found[fedlaw].items():
        receipt[key] = values[seed == 10]
    table = exhibit(plan, found)
    (gap,) = table.gaps
    one = next(one for one in gap.settings if one.column.key == A)
    assert (one.ours, one.per_seed, one.reason) == (None, {}, f"the seeds are of {what}")
    cell = table.cell("fedlaw", A)
    assert (cell.mean, cell.readings, cell.reason) == (None, None, one.reason)
    assert table.cell("fedavg", A).readings is not None


def test_the_pictured_row_is_the_one_named_or_the_last_printed_one():
    """Without a name it is the last row with a printed difference in the first table. A row of ours is taken only if no row has
    a printed difference."""
    (printed,) = gaps_of({(m, A): [80.0, 81.0] for m in ("fedavg", "fedlaw")})
    ours = replace(printed, settings=tuple(replace(one, printed=None) for one in printed.settings))
    elsewhere = replace(printed, plan=replace(printed.plan, table="table4"))
    named = replace(printed, method=replace(printed.method, key="named"))
    assert pictured([replace(printed), printed, ours, elsewhere]) is printed
    assert pictured([ours, elsewhere]) is ours
    assert [pictured([named, printed, ours], row) for row in ("named", "no such row")] == [named, printed]


def test_the_picture_is_byte_stable_and_its_text_has_the_numbers(tmp_path):
    """The same gap gives the same bytes in any file. The text alternative has printed number, measured number and interval."""
    (gap,) = gaps_of(FOUND)
    assert pictures.name(gap) == "table3-fedlaw-against-fedavg.svg"
    first = drawn(gap, tmp_path / "one.svg")
    assert drawn(gap, tmp_path / "two.svg") == first
    assert not re.search(r"dc:date|20\d\d-\d\d-\d\d", first)
    assert "FashionMNIST · MLP, α = 100: measured +1.00, 95 % interval −1.48 to +3.48, 3 seeds, printed −0.78" in gap.text


def test_long_names_are_wrapped(tmp_path):
    """No line in the picture is longer than the picture is wide, and all words are there."""
    (gap,) = gaps_of(FOUND)
    setting = replace(gap.settings[0].column, label="the same, no client above its share, at least 10 samples · top-1")
    method = replace(gap.method, label="copies of all updates, divided by the norm of each update itself")
    gap = replace(gap, method=method, settings=(replace(gap.settings[0], column=setting), *gap.settings[1:]))
    lines = re.findall(r">([^<>]+)</(?:text|tspan)>", drawn(gap, tmp_path / "a.svg"))
    assert max(map(len, lines)) <= 50
    words = " ".join(lines).replace("\u00a0", " ")
    for said in (method.label, setting.label, "percentage points"):
        assert said in words, words


def test_at_demo_scale_no_printed_number_is_drawn(tmp_path):
    """Scale demo has other data, so picture and text have no printed difference."""
    (gap,) = gaps_of(FOUND, "demo")
    assert "printed" not in gap.text
    assert "printed" not in drawn(gap, tmp_path / "a.svg")
