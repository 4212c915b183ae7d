"""`keep:` and metrics of diagnostics in a table: the plan, and mistakes."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_papers import FULL, Files, cell, ids, run_of

from fedrepro.config.plan import Plan
from fedrepro.config.project import load_project
from fedrepro.errors import UserError
from fedrepro.files import read_json
from fedrepro.typed import typed
from fedrepro.workflow import jobs
from tests.helpers.one_line import one_line

METRIC = {"name": "client_distance", "unit": "norm", "description": "distance", "diagnostic": "client_distance(to=before)"}
CALL = "client_distance(to=before, relative=false)"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """A table with three columns on one data set: accuracy, and client distances after round 50 and at the end."""
    monkeypatch.chdir(tmp_path)
    made = Files(tmp_path)
    column = made.table["columns"][0]
    own = {name: value for name, value in column.items() if name != "published"}
    found: list[dict[str, Any]] = [{"key": "middle", "metric": METRIC, "read": "at(50)"}, {"key": "end", "metric": METRIC}]
    made.table["columns"] = [column, *(copy.deepcopy(own | one | {"label": one["key"]}) for one in found)]
    made.table["keep"] = [1, 50, 200]
    return made


def configs(files: Files, *plans: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The configuration of each run's job, by run_id, after the workflow has written these plans."""
    for made in plans:
        jobs.write_configs(load_project(files.root, dict(FULL)), typed(Plan, made, "plan"))
    return {path.stem: read_json(path) for path in Path(jobs.CONFIGS).glob("*.json")}


def test_rounds_are_scaled_as_readings_are(files: Files) -> None:
    """Rounds 1, 50 and 200 of 200 become the same share of 20 and of 10 rounds, rounded up."""
    for params, expected in ((FULL, [1, 50, 200]), ({"scale": "short"}, [1, 5, 20]), ({"scale": "demo"}, [1, 3, 10])):
        made = files.plan(params)
        assert {tuple(run["keep"]) for run in made["runs"].values()} == {tuple(expected)}
        assert cell(made, "fedavg", "middle")["read"] == f"at(round={expected[1]}, mean=1)"


def test_keeping_is_no_part_of_a_run(files: Files) -> None:
    """Without `keep` and diagnostics the run_ids and configs are the same."""
    with_keep = files.plan(FULL)
    files.table["columns"] = files.table["columns"][:1]
    del files.table["keep"]
    without = files.plan(FULL)
    assert ids(with_keep)["fedavg", "end"] == ids(without)["fedavg", "mnist"]
    mine, other = run_of(with_keep, "fedavg"), run_of(without, "fedavg")
    assert other["keep"] == []
    assert mine | {"keep": [], "measures": {}} == other


def test_a_diagnostics_metric_in_the_plan(files: Files) -> None:
    """The metric has the diagnostic's call with every argument. It is read at the last round unless the table says otherwise.
    Its curve is separate from the run's own curves."""
    made = files.plan(FULL)
    found = cell(made, "fedavg", "end")
    assert found["read"] == "last(rounds=1)"
    assert found["metric"] == {
        "name": "client_distance",
        "unit": "norm",
        "description": "distance",
        "better": "higher",
        "ranked": True,
        "diagnostic": CALL,
    }
    plan = typed(Plan, made, "plan")
    shown = next(one for one in plan.cells if (one.row, one.column) == ("fedavg", "end"))
    assert shown.diagnostic == CALL
    assert shown.reading.curve == f"{CALL}: client_distance"
    assert shown.reading.of({"status": "finished", "curves": {f"{CALL}: client_distance": [1.0, None, 3.0]}}) == 3.0
    assert cell(made, "fedavg", "mnist")["metric"]["diagnostic"] is None
    assert len({one.curve for _, _, one in plan.readings()}) == 2
    told = configs(files, made, made)
    assert told[found["run_id"]]["keep"] == [1, 50, 200]
    assert [one["measures"] for one in told.values()] == [{CALL: [50, 200]}] * 3  # two columns share each row's run


def test_two_calls_of_one_diagnostic_are_two_cells(files: Files) -> None:
    """Two calls can measure one run under one metric name. The same call twice is refused."""
    files.table["columns"][1] |= {"metric": METRIC | {"diagnostic": "client_distance"}, "read": "at(200)"}
    files.table["columns"][2]["read"] = "at(200)"
    made = files.plan(FULL)
    assert cell(made, "fedavg", "middle")["metric"]["diagnostic"] != cell(made, "fedavg", "end")["metric"]["diagnostic"]
    plan = typed(Plan, made, "plan")
    calls = dict.fromkeys(one.diagnostic for one in plan.cells if one.row == "fedavg" and one.diagnostic)
    run_id = cell(made, "fedavg", "end")["run_id"]
    assert configs(files, made)[run_id]["measures"].keys() == calls.keys()
    assert len(calls) == 2
    files.table["columns"][1]["metric"] = METRIC
    with pytest.raises(UserError, match="are the same run"):
        files.plan(FULL)


def test_tables_that_share_a_run_keep_the_rounds_of_both(files: Files) -> None:
    """Both tables' rounds are kept in one training. A variant takes the `keep` of its table."""
    files.write()
    first = files.plan(FULL)
    files.more["table2"] = copy.deepcopy(files.table) | {"keep": [7, 50, 200]}
    files.more["table3"] = {"title": "v", "source": "v", "variant_of": "table1", "rows": files.table["rows"][:1]}
    found = configs(files, first, files.plan(FULL, "table2"), first)
    assert found[cell(first, "fedavg", "end")["run_id"]]["keep"] == [1, 7, 50, 200]
    assert run_of(files.plan(FULL, "table3"), "fedavg")["keep"] == [1, 50, 200]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda t: t.update(keep=[1, 50, 201, 200]), ["table1.yaml", "keep = [1, 50, 201, 200]", "200 rounds"]),
        (lambda t: t.update(keep=[0, 200]), ["table1.yaml", "keep: entry 1 = 0"]),
        (lambda t: t.pop("keep"), ["table1.yaml", "client_distance", "add `keep:`"]),
        (lambda t: t["columns"][1].update(read="at(100)"), ["table1.yaml", "at(round=100", "add one to keep"]),
        (lambda t: t.update(keep=[50]), ["table1.yaml", "last()", "add one to keep"]),
        (
            lambda t: t["columns"][1]["metric"].update(diagnostic="client_distnce"),
            ["table1.yaml", "'client_distnce'", "'client_distance'"],
        ),
        (lambda t: t["columns"][1]["metric"].update(name="distance"), ["table1.yaml", "'distance'", "'client_distance'"]),
        (lambda t: t["columns"][1]["metric"].update(diagnostic="client_distance(at=1)"), ["table1.yaml", "'at'"]),
    ],
)
def test_mistakes_are_one_line(spoil: Callable[[dict], object], words: list[str], files: Files) -> None:
    """The line names the file, the mistake, and what to do."""
    files.table = copy.deepcopy(files.table)
    spoil(files.table)
    with one_line() as error:
        files.plan({"scale": "demo"})
    assert all(word in str(error.value) for word in words), error.value


def of_rounds(files: Files, call: str) -> None:
    metric = {"name": call.partition("(")[0] + "_loss", "unit": "loss", "description": "loss", "better": "lower"}
    files.table["columns"] = [files.table["columns"][0], files.table["columns"][-1] | {"metric": metric | {"diagnostic": call}}]


@pytest.mark.parametrize(
    ("call", "full", "short"),
    [
        ("plane(through=rounds)", [1, 48, 49, 50, 198, 199, 200], [1, 3, 4, 5, 18, 19, 20]),
        ("line(apart=0.25)", [1, 50, 150, 200], [1, 5, 15, 20]),  # apart by 50 and by 5 rounds; round 50 would need round 0
        ("plane(through=clients)", [1, 50, 200], [1, 5, 20]),
    ],
)
def test_rounds_that_a_diagnostic_needs_are_kept(files: Files, call: str, full: list[int], short: list[int]) -> None:
    """For each kept round the plan also keeps the other rounds that the diagnostic needs, if they exist. A share of the rounds
    scales with the run. All cells share the run."""
    of_rounds(files, call)
    for params, expected in ((FULL, full), ({"scale": "short"}, short)):
        assert {tuple(run["keep"]) for run in files.plan(params)["runs"].values()} == {tuple(expected)}


def test_a_protocol_that_is_too_short_for_a_diagnostic(files: Files) -> None:
    """If a kept round's partner would be round 0, one line refuses the table. A scale with too few rounds measures none and is
    accepted."""
    of_rounds(files, "plane(through=rounds, apart=100)")
    files.table["columns"][1].pop("read", None)
    files.table["keep"] = [50, 200]
    with pytest.raises(UserError, match=r"keep = \[50, 200\]: plane measures round 200 with round 0; keep a later round"):
        files.plan(FULL)
    of_rounds(files, "plane(through=rounds, apart=80)")
    assert {tuple(run["keep"]) for run in files.plan({"scale": "short"})["runs"].values()} == {(5, 20)}
