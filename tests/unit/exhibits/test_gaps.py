"""Differences of two methods, paired by seed, and their picture."""

import math
import re
from dataclasses import replace

import pytest
from small_table import make_plan, typed, write_evidence

from fedrepro.reports import names
from fedrepro.reports.analysis.gaps import gaps, pairs, proposed
from fedrepro.reports.analysis.table import table
from fedrepro.reports.figures import gaps as pictures
from fedrepro.reports.load import load_evidence
from fedrepro.reports.model import Row
from fedrepro.store import Store

A, B = "mlp-a100", "mlp-a01"


def report_of(tmp_path, accuracies, scale="full", **changes):
    """The report of the small table with these accuracies."""
    plan = make_plan(scale, **changes)
    write_evidence(tmp_path, plan, accuracies)
    made, _ = typed(plan)
    return table(made, load_evidence(made, Store((tmp_path,))))


def test_seeds_are_paired(tmp_path):
    """FedLAW is 1, 2 and 0 above FedAvg in the same seed. Its own spread (2 points a seed) does not enter the interval:
    mean 1, deviation 1, half-width 4.302653 / sqrt(3). Printed: 88.51 - 89.29."""
    found = {("fedavg", A): [80.0, 82.0, 84.0], ("fedlaw", A): [81.0, 84.0, 84.0]}
    (gap,) = gaps(report_of(tmp_path, found))
    one = next(one for one in gap.settings if one.setting == A)
    assert one.per_seed == pytest.approx({8: 1.0, 9: 2.0, 10: 0.0})
    assert one.ours == pytest.approx(1.0)
    assert (one.low, one.high) == pytest.approx((1 - 4.302653 / math.sqrt(3), 1 + 4.302653 / math.sqrt(3)), abs=1e-6)
    assert one.printed == pytest.approx(-0.78)
    assert len(one.runs) == 6


def test_only_seeds_of_both_count(tmp_path):
    """Two of three seeds are there for both."""
    (gap,) = gaps(report_of(tmp_path, {("fedavg", A): [80.0, 82.0, 84.0], ("fedlaw", A): [81.0, 84.0]}))
    one = next(one for one in gap.settings if one.setting == A)
    assert list(one.per_seed) == [8, 9]
    assert one.ours == pytest.approx(1.5)


def test_a_diverged_seed_leaves_no_measured_difference(tmp_path):
    """As in the table: a mean over the survivors would flatter the method. The other setting keeps its own."""
    found = {(m, s): [80.0, None if (m, s) == ("fedlaw", A) else 81.0] for m in ("fedavg", "fedlaw") for s in (A, B)}
    (gap,) = gaps(report_of(tmp_path, found))
    by_setting = {one.setting: one for one in gap.settings}
    assert (by_setting[A].ours, by_setting[A].runs, by_setting[A].reason) == (None, (), "a seed diverged")
    assert by_setting[B].ours == pytest.approx(0.0)
    assert "not measured (a seed diverged)" in names.gap_text(gap)


def test_what_the_paper_proposes_is_its_last_printed_row(tmp_path):
    """Of the first table; a row of ours after it has no printed difference, and is taken only if no row has one."""
    (printed,) = gaps(report_of(tmp_path, {(m, A): [80.0, 81.0] for m in ("fedavg", "fedlaw")}))
    ours = replace(printed, method="ours", settings=tuple(replace(one, printed=None) for one in printed.settings))
    elsewhere = replace(printed, table="table4", method="elsewhere")
    assert proposed([replace(printed, method="first"), printed, ours, elsewhere]) is printed
    assert proposed([ours, elsewhere]) is ours


def test_a_pair_without_any_measured_difference_is_left_out(tmp_path):
    """Printed numbers alone make no picture."""
    assert gaps(report_of(tmp_path, {("fedavg", A): [80.0, 81.0, 82.0]})) == []


def test_which_rows_are_held_against_which():
    """A plug-in against its own base, everything else against the first row."""
    keys = ("fedavg", "fedprox", "fedavg+gh", "fedprox+gh", "x+y")
    rows = tuple(Row(key, key, printed=True, variant=None, name=key) for key in keys)
    found = [(row.key, base.key) for row, base in pairs(replace(table(*typed(make_plan())), rows=rows))]
    assert found == [("fedprox", "fedavg"), ("fedavg+gh", "fedavg"), ("fedprox+gh", "fedprox"), ("x+y", "fedavg")]


def test_the_picture_is_byte_stable_and_its_text_has_the_numbers(tmp_path):
    """Same gap, same bytes, wherever it is drawn; the text alternative says printed, measured and interval."""
    found = {("fedavg", A): [80.0, 82.0, 84.0], ("fedlaw", A): [81.0, 84.0, 84.0]}
    (gap,) = gaps(report_of(tmp_path, found))
    first, second = (pictures.draw(gap, tmp_path / name) for name in ("one", "two"))
    assert first.name == second.name == "table3-fedlaw-against-fedavg.svg"
    assert first.read_bytes() == second.read_bytes()
    assert not re.search(rb"dc:date|20\d\d-\d\d-\d\d", first.read_bytes())
    text = names.gap_text(gap)
    assert "FashionMNIST · MLP, α = 100: measured +1.00, 95 % interval −1.48 to +3.48, 3 seeds, printed −0.78" in text


def test_long_names_are_wrapped(tmp_path):
    """No line of a picture is longer than what its width holds; all words are there."""
    found = {("fedavg", A): [80.0, 82.0, 84.0], ("fedlaw", A): [81.0, 84.0, 84.0]}
    (gap,) = gaps(report_of(tmp_path, found))
    first = replace(gap.settings[0], label="the same, no client above its share, at least 10 samples · top-1")
    method = "copies of all updates, divided by the norm of each update itself"
    gap = replace(gap, method_label=method, settings=(first, *gap.settings[1:]))
    text = pictures.draw(gap, tmp_path).read_text()
    lines = re.findall(r">([^<>]+)</(?:text|tspan)>", text)
    assert max(map(len, lines)) <= 50
    words = " ".join(lines).replace("\u00a0", " ")
    for said in (gap.method_label, first.label, "percentage points"):
        assert said in words, words


def test_at_demo_scale_no_printed_number_is_drawn(tmp_path):
    """Other data: the printed difference stays out of picture and text."""
    found = {("fedavg", A): [80.0, 82.0, 84.0], ("fedlaw", A): [81.0, 84.0, 84.0]}
    (gap,) = gaps(report_of(tmp_path, found, "demo"))
    assert "printed" not in names.gap_text(gap)
    assert "printed" not in pictures.draw(gap, tmp_path / "out").read_text()
