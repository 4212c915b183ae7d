"""Cells that show a diagnostic's metric: read from the parquet file beside the receipt, at the rounds that the plan keeps."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_table import COLUMNS, make_plan, write_evidence

from fedrepro.config.plan import Plan
from fedrepro.engine import measurements
from fedrepro.engine.measurements import Value
from fedrepro.errors import UserError
from fedrepro.exhibits.evidence import load_evidence
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.prose.fill import filled
from fedrepro.exhibits.prose.forms import Facts
from fedrepro.exhibits.sections import words
from fedrepro.store import Store
from fedrepro.typed import typed

CALL = "client_distance(to=after, relative=false)"
PLACE = ("fedavg", "mlp-a100")


def make(root: Path, keep: list[int], read: str) -> tuple[Plan, str]:
    """A plan with one such cell, measured at seeds 8 and 9 and rounds 2, 3 and 4 of five. Round 3 was kept for another
    table."""
    plan = make_plan()
    (found,) = [cell for cell in plan["cells"] if (cell["row"], cell["column"]) == PLACE]
    found |= {"read": read, "metric": found["metric"] | {"name": "client_distance", "unit": "norm", "diagnostic": CALL}}
    plan["runs"][found["run_id"]] |= {"keep": keep, "measures": {CALL: keep}}
    write_evidence(root, plan, {(method, column): [80.0, 81.0, 82.0] for method in ("fedavg", "fedlaw") for column in COLUMNS})
    for seed in (8, 9):
        about = {"run_id": found["run_id"], "seed": seed, "diagnostic": CALL, "reached": 5}
        values = [Value(number, "client_distance", number + seed / 100) for number in (2, 3, 4)]
        path = root / found["run_id"] / measurements.folder(CALL) / f"seed{seed}.parquet"
        measurements.write(
            path, about | {"models": dict.fromkeys("234", "a")}, [*values, Value(2, "client_distance", 9.0, client=1)]
        )
    return typed(Plan, plan, "plan"), found["run_id"]


@pytest.mark.parametrize(
    ("read", "expected"),
    [("last(rounds=1)", 4.0), ("at(round=2)", 2.0), ("at(round=3)", 2.0), ("mean(first=2, last=4)", 3.0), ("best()", 4.0)],
)
def test_a_cell_reads_the_kept_rounds(read: str, expected: float, tmp_path: Path) -> None:
    """Round 3 is not in the plan's `keep`, so it is skipped. A seed that is not measured counts as not run. Other cells are
    unaffected."""
    plan, _ = make(tmp_path, [2, 4], read)
    table = Exhibit.of(plan, Store((tmp_path,)))
    measured, other = table.cell(*PLACE), table.cell("fedlaw", "mlp-a100")
    assert measured
    assert other
    assert measured.per_seed == {8: pytest.approx(expected + 0.08), 9: pytest.approx(expected + 0.09)}
    assert measured.reason == "1 of 3 seeds not run yet: 10"
    assert other.per_seed == {8: 80.0, 9: 81.0, 10: 82.0}


def test_no_earlier_round_stands_in_for_one_without_a_finite_value(tmp_path: Path) -> None:
    """At seed 8 round 4 was measured and has no finite value. The cell says so and is not judged as if a target was missed."""
    plan, run_id = make(tmp_path, [2, 4], "last(rounds=1)")
    path = tmp_path / run_id / measurements.folder(CALL) / "seed8.parquet"
    found = measurements.read(path)
    measurements.write(path, found.about, [value._replace(value=None) if value.round == 4 else value for value in found.values])
    cell = Exhibit.of(replace(plan, comparable=True), Store((tmp_path,))).cell(*PLACE)
    assert cell
    assert cell.per_seed == {8: None, 9: pytest.approx(4.09)}
    assert cell.mean is None
    assert cell.reason == "1 of 2 seeds have no finite value: 8; 1 of 3 seeds not run yet: 10"
    assert cell.status == "inconclusive"
    assert words.measured(cell) == "no finite value at 1 of 2 seeds"
    both = replace(
        cell, per_seed=dict.fromkeys((8, 9)), receipts=cell.receipts | {9: replace(cell.receipts[9], status="diverged")}
    )
    assert words.measured(both) == "no value"
    assert words.measured(replace(both, per_seed={9: None})) == "diverged"
    assert cell.place.reading.number(None) == "no value"


def test_a_seed_counts_as_measured_once_all_kept_rounds_are(tmp_path: Path) -> None:
    """Only rounds that the seed reached count. A folder with all rounds wins over a folder with some, in any order. A damaged
    file is named."""
    plan, run_id = make(tmp_path, [2, 5], "last(rounds=1)")
    cell = Exhibit.of(plan, Store((tmp_path,))).cell(*PLACE)
    assert cell
    assert (cell.per_seed, cell.reason) == ({}, "not run yet")
    path = next((tmp_path / run_id).glob("*/seed8.parquet"))
    about = {"run_id": run_id, "seed": 8, "diagnostic": CALL, "reached": 5, "models": dict.fromkeys("25", "a")}
    whole = tmp_path / "here" / path.relative_to(tmp_path)
    measurements.write(whole, about, [Value(number, "client_distance", float(number)) for number in (2, 5)])
    here = Store((tmp_path, tmp_path / "here"))
    assert load_evidence(plan, here)[run_id][8].curves[f"{CALL}: client_distance"][4] == 5.0
    whole.write_bytes(whole.read_bytes()[:-8])
    with pytest.raises(UserError, match=r"seed8\.parquet: not a readable file of diagnostics"):
        load_evidence(plan, here)
    plan, _ = make(tmp_path, [2, 99], "last(rounds=1)")
    assert load_evidence(plan, Store((tmp_path,)))[run_id][8].curves[f"{CALL}: client_distance"][1] == 2.08


def test_nothing_measured_yet_is_not_run_yet(tmp_path: Path) -> None:
    """The run is there, but without measurements the cell counts as not run."""
    plan, run_id = make(tmp_path, [2, 4], "last(rounds=1)")
    for path in (tmp_path / run_id).glob("*/*.parquet"):
        path.unlink()
    cell = Exhibit.of(plan, Store((tmp_path,))).cell(*PLACE)
    assert cell
    assert (cell.per_seed, cell.status, cell.reason) == ({}, "not run", "not run yet")


def test_a_sentence_reads_another_round_of_what_was_measured(tmp_path: Path) -> None:
    """A sentence can use another measured round at one seed. A sentence over all seeds is left out until every seed is
    measured."""
    table = Exhibit.of(make(tmp_path, [2, 4], "last(rounds=1)")[0], Store((tmp_path,)))
    texts = ["{mean:fedavg/mlp-a100|seed=8, read=at(2)}", "{mean:fedavg/mlp-a100|read=at(2)}"]
    said, waiting = filled(texts, Facts({"table3": table}, own="table3"), "remarks")
    assert said == ["2.080"]
    assert len(waiting) == 1
