"""Tuned cells by YAML alone: candidates in the plan, the choice between them, and what the report says."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from small_papers import FULL, Files, cell
from trials import FOLDER, PLACE, report, tried, write_trials

from fedrepro.cli import table_selection
from fedrepro.cli.outcome import Conclusion
from fedrepro.config.grid import every_run
from fedrepro.config.plan import Plan
from fedrepro.config.project import load_project
from fedrepro.engine.receipts import receipt_path
from fedrepro.engine.records import seal
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.files import read_json, write_json
from fedrepro.store import Store
from fedrepro.tracking.planned_runs import _readings
from fedrepro.typed import plain, typed

RATES = {"client_lr": [0.1, 0.02, 0.5], "seeds": [8]}


def tuned(files: Files, tune: dict[str, Any]) -> dict[str, Any]:
    """The plan with FedProx tuned in both columns."""
    files.table["rows"][1]["tune"] = tune
    return files.plan(FULL)


def test_every_combination_is_an_ordinary_run(files: Files) -> None:
    """Two rates and two values of mu give four runs, whose tried values have the source `tuned`. Other rows keep their runs."""
    before = files.plan(FULL)
    made = tuned(files, {"client_lr": [0.1, 0.02], "fedprox.mu": [0.5, 0.05], "seeds": [8]})
    found = cell(made, *PLACE)
    assert (found["tuned"], found["run_id"], found["printed"]) == (True, None, cell(before, *PLACE)["printed"])
    assert [list(one["values"].values()) for one in tried(made)] == [[0.1, 0.5], [0.1, 0.05], [0.02, 0.5], [0.02, 0.05]]
    run = made["runs"][tried(made)[1]["run_id"]]
    assert (run["config"]["client_lr"], run["sources"]["client_lr"]) == (0.1, "tuned")
    assert ("mu=0.05" in run["method"], run["argument_sources"]["fedprox.mu"]) == (True, "tuned")
    assert {one["row"] for one in made["candidates"]} == {"fedprox"}
    assert {tuple(made["seeds_by_run"][one["trial"]["run_id"]]) for one in tried(made)} == {(8,)}
    assert cell(made, "fedavg", "mnist")["run_id"] == cell(before, "fedavg", "mnist")["run_id"]
    assert tuple(made["seeds_by_run"][cell(made, "fedavg", "mnist")["run_id"]]) == (8, 9, 10)


@pytest.mark.parametrize(("scale", "rounds"), [("full", (50, 200)), ("short", (5, 20)), ("demo", (3, 10))])
def test_trials_may_be_shorter(files: Files, scale: str, rounds: tuple[int, int]) -> None:
    """Trials take 50 of the protocol's 200 rounds, and the same share at other scales."""
    files.table["rows"][1]["tune"] = RATES | {"rounds": 50}
    made = files.plan({"scale": scale})
    one = tried(made)[0]
    assert tuple(made["runs"][run_id]["config"]["rounds"] for run_id in (one["trial"]["run_id"], one["run_id"])) == rounds
    assert one["run_id"] not in made["seeds_by_run"]


def test_an_edited_reading_of_tuned_cells_is_not_comparable(files: Files) -> None:
    """All cells are tuned, and params.yaml averages over other rounds than the paper."""
    files.table["rows"] = [files.table["rows"][1] | {"tune": RATES}]
    assert files.plan(FULL)["comparable"]
    assert not files.plan(FULL | {"settings": {"average_last": 3}})["comparable"]


def test_trials_are_runs_that_tables_ask_for(files: Files) -> None:
    """`fedrepro runs --prune` would remove them otherwise."""
    made = tuned(files, RATES | {"rounds": 50})
    trials = {one["trial"]["run_id"] for one in tried(made)}
    assert len(trials) == 3
    assert trials < every_run(load_project(files.root, FULL))


def test_trials_of_several_seeds(files: Files, tmp_path: Path) -> None:
    """Nothing is chosen before each candidate has both seeds. One that diverged at a seed is never chosen. Evidence of further
    seeds of a trial is none of the table's."""
    made = tuned(files, RATES | {"seeds": [8, 9]})
    evidence = tmp_path / FOLDER / "evidence"
    path = lambda place, seed: evidence / tried(made)[place]["trial"]["run_id"] / f"seed{seed}.json"  # noqa: E731
    write_trials(made, tmp_path, [50.0, 60.0, 55.5])
    path(2, 9).rename(tmp_path / "seed9.json")
    shown, found = report(made, tmp_path, [])
    assert shown["reason"] == "nothing is chosen yet: 5 of 6 trials of 3 candidates have run"
    assert not any(one["chosen"] for one in found)
    (tmp_path / "seed9.json").rename(path(2, 9))
    assert [one["chosen"] for one in report(made, tmp_path, [])[1]] == [False, True, False]
    lost = read_json(path(1, 9))
    write_json(path(1, 9), seal(lost | {"status": "diverged", "curves": {name: [None] * 2 for name in lost["curves"]}}))
    assert [one["chosen"] for one in report(made, tmp_path, [])[1]] == [False, False, True]
    write_json(path(0, 10), seal(read_json(path(0, 8)) | {"seed": 10}))
    of_table = Exhibit.of(typed(Plan, made, "plan"), Store((evidence,))).evidence
    assert {seed for run_id, receipts in of_table.items() if run_id == path(0, 8).parent.name for seed in receipts} == {8, 9}


def test_seeds_of_trials_are_the_tables(files: Files) -> None:
    files.table["rows"][1]["tune"] = RATES
    made = files.plan({"scale": "demo", "seeds": [21, 22]})
    assert {tuple(one["trial"]["seeds"]) for one in tried(made)} == {(21,)}


@pytest.mark.parametrize(
    ("values", "chosen", "ahead"),
    [
        ([50.0, 60.0, 55.5], 1, 4.5),
        ([50.0, 60.0, 60.0], 1, 0.0),  # a tie: the first one
        ([50.0, None, 40.0], 0, 10.0),  # a diverged candidate is never chosen
        ([None, None, 11.0], 2, None),  # there is no second candidate
    ],
)
def test_the_best_trial_is_shown(
    files: Files, tmp_path: Path, values: list[float | None], chosen: int, ahead: float | None
) -> None:
    made = tuned(files, RATES)
    shown, candidates = report(made, tmp_path, values)
    assert [one["chosen"] for one in candidates] == [place == chosen for place in range(3)]
    assert [one["ahead"] for one in candidates] == [ahead if place == chosen else None for place in range(3)]
    assert (shown["run_id"], candidates[0]["reason"]) == (tried(made)[chosen]["run_id"], None)
    assert [one["mean"] for one in candidates] == values
    assert (shown["mean"], shown["reason"]) == (values[chosen], "2 of 3 seeds not run yet: 9, 10")
    settled = table_selection.with_choices(typed(Plan, made, "plan"), Store((tmp_path / FOLDER / "evidence",)))
    assert cell(plain(settled), *PLACE)["values"] == {"client_lr": RATES["client_lr"][chosen]}


def test_what_a_run_by_hand_says_of_a_chosen_candidate(files: Files, tmp_path: Path) -> None:
    """The chosen candidate is the table's own run: nothing is changed, and the printed number counts."""
    made = tuned(files, RATES)
    write_trials(made, tmp_path, [50.0, 60.0, 55.5])
    project, store = load_project(files.root, dict(FULL)), Store((tmp_path / FOLDER / "evidence",))
    settled = table_selection.with_choices(typed(Plan, made, "plan"), store)
    chosen = next(one for one in settled.cells if (one.row, one.column) == PLACE)
    receipt = store.find(chosen.run_id or "", 8)
    assert receipt is not None
    here = receipt_path(tmp_path, chosen.run_id or "", 8)
    here.parent.mkdir(parents=True)
    shutil.copy(receipt, here)
    first, read, printed, *_ = Conclusion(project, settled, [chosen], [8]).lines()
    assert first.endswith(": 60.00 at seed 8")
    assert "changed" not in read
    assert printed == "  printed 51.00, difference +9.00"


def test_one_candidate_is_chosen_without_a_second(files: Files, tmp_path: Path) -> None:
    _, (only,) = report(tuned(files, {"client_lr": [0.3], "seeds": [8]}), tmp_path, [12.0])
    assert (only["chosen"], only["ahead"]) == (True, None)


def test_nothing_is_chosen_before_all_have_run(files: Files, tmp_path: Path) -> None:
    shown, candidates = report(tuned(files, RATES), tmp_path, [90.0, 95.0])
    assert not any(one["chosen"] for one in candidates)
    assert (shown["run_id"], shown["mean"], shown["status"]) == (None, None, "not run")
    assert shown["reason"] == candidates[0]["reason"] == "nothing is chosen yet: 2 of 3 trials of 3 candidates have run"


@pytest.mark.parametrize(
    ("values", "planned"),
    [
        ([90.0, 95.0], 22),  # two tuned cells have three trials at seed 8 each, and later the chosen run's seeds 9 and 10
        ([90.0, 95.0, 93.0], 22),  # one cell's choice does not change the count
        ([None] * 3, 20),  # all of one cell diverged: no run follows
    ],
)
def test_runs_that_follow_a_choice_are_counted_before_it(
    files: Files, tmp_path: Path, values: list[float | None], planned: int
) -> None:
    """The untuned cells have 12 runs."""
    report(tuned(files, RATES), tmp_path, values)
    text = (tmp_path / FOLDER / "table1.md").read_text()
    assert f"Incomplete: {len(values)} of {planned} runs" in text
    assert f"{len(values)} of {planned} runs |" in text


def test_a_page_says_that_trials_are_shorter(files: Files, tmp_path: Path) -> None:
    """A trial of 50 rounds is shorter than its run of 200. A trial of all rounds is the run itself."""
    for rounds, said in (({"rounds": 50}, True), ({}, False)):
        report(tuned(files, RATES | rounds), tmp_path, [50.0, 60.0, 55.0])
        text = (tmp_path / FOLDER / "table1.md").read_text()
        assert ("A trial ends early: after 50 of 200 rounds." in text) == said


def test_where_all_diverge_the_cell_says_so(files: Files, tmp_path: Path) -> None:
    """The cell is not reproduced, like an untuned cell whose seeds diverged. Its record names the run of the first
    candidate."""
    made = tuned(files, RATES)
    shown, _ = report(made, tmp_path, [None, None, None])
    assert (shown["mean"], shown["status"], shown["run_id"]) == (None, "not reproduced", tried(made)[0]["run_id"])
    assert shown["reason"] == "all 3 candidates diverged, or never reached the target"
    exhibit = Exhibit.of(typed(Plan, made, "plan"), Store((tmp_path / FOLDER / "evidence",)))
    assert tried(made)[0]["run_id"] not in exhibit.following  # its other seeds are not needed
    assert f"{len(exhibit.receipts)} of {sum(map(len, exhibit.seeds_by_run.values()))}" == "3 of 20"
    of_cell = [seeds for place, run_id, *_, seeds in _readings(exhibit.plan) if (place.row, place.column) == PLACE and run_id]
    assert {*of_cell[:1]} == {(8,)}  # MLflow waits for no other seeds of its run
    assert exhibit.missing(PLACE) == ""  # a claim on this cell is inconclusive, and no run is missing


def test_a_trial_of_other_rounds_is_no_evidence_of_the_cell(files: Files, tmp_path: Path) -> None:
    """The chosen candidate must still run at full length."""
    made = tuned(files, RATES | {"rounds": 50})
    shown, candidates = report(made, tmp_path, [50.0, 60.0, 55.0])
    assert shown["run_id"] == tried(made)[1]["run_id"] != candidates[1]["run_id"]
    assert (shown["mean"], shown["reason"]) == (None, "not run yet")


def test_a_forecast_counts_candidates(files: Files, tmp_path: Path) -> None:
    """The forecast counts three trials at seed 8, and after them the chosen candidate at the table's seeds. Before the choice
    it counts the first candidate."""
    made = tuned(files, RATES)
    plan = typed(Plan, made, "plan")
    places = [one for one in [*plan.cells, *plan.candidates] if (one.row, one.column) == PLACE]
    for values, chosen, words in (
        (
            [],
            0,
            "3 candidates of 1 tuned cells, 0 of which are chosen; of the others the first candidate is counted as the chosen",
        ),
        ([50.0, 40.0, 60.0], 2, "3 candidates of 1 tuned cells, 1 of which are chosen"),
        ([None] * 3, None, "3 candidates of 1 tuned cells, 0 of which are chosen; in 1 of them no candidate has a value"),
    ):
        write_trials(made, tmp_path, values)
        follow, said = table_selection.cells_after_trials(
            plan, places, Store((tmp_path / "none", tmp_path / FOLDER / "evidence"))
        )
        assert said.startswith(words)
        jobs = {run.run_id: seeds for run, seeds in table_selection.jobs(plan, [*places, *follow], [8, 9, 10])}
        shown = [] if chosen is None else [tried(made)[chosen]["run_id"]]
        assert jobs == {one["run_id"]: [8] for one in tried(made)} | {key: [8, 9, 10] for key in shown}
        following = Exhibit.of(plan, Store((tmp_path / "none", tmp_path / FOLDER / "evidence"))).following
        other = tried(made, ("fedprox", "fashion_mnist"))[0]  # the first candidate of a cell without trials
        assert {*following} == {other["run_id"], *shown}  # as the workflow announces
    assert table_selection.cells_after_trials(plan, plan.cells, Store((tmp_path,))) == ([], "")


def test_a_value_of_ones_own_leaves_one_candidate(files: Files) -> None:
    files.table["rows"][1]["tune"] = RATES
    made = files.plan({"scale": "full", "settings": {"client_lr": 0.7}})
    assert [candidate["values"] for candidate in tried(made)] == [{"client_lr": 0.7}]
    assert made["runs"][tried(made)[0]["run_id"]]["config"]["client_lr"] == 0.7


GRID = {"client_lr": [0.1, 0.02, 0.5], "fedprox.mu": [0.5, 0.05]}


def budgeted(files: Files, table: dict[str, Any], column: dict[str, Any] | None = None, scale: str = "full") -> dict[str, Any]:
    """The plan with FedProx tuned by its row, and with tuning budgets of the table and of its first column."""
    files.table["rows"][1]["tune"] = GRID | {"seeds": [8], "rounds": 100}
    files.table["budget"] = {scale: {"note": "less", "tune": table}}
    if column is not None:
        files.table["columns"][0]["budget"] = {scale: {"tune": column}}
    return files.plan({"scale": scale})


def test_a_budget_replaces_the_values_that_it_names(files: Files) -> None:
    """The budget replaces the values of one of the row's two keys. Seeds and rounds of trials stay, and so does FedLAW, which
    is not tuned."""
    made = budgeted(files, {"client_lr": [0.1, 0.3]})
    values = [list(one["values"].values()) for one in tried(made)]
    assert values == [[0.1, 0.5], [0.1, 0.05], [0.3, 0.5], [0.3, 0.05]]
    assert {tuple(one["trial"]["seeds"]) for one in tried(made)} == {(8,)}
    assert {made["runs"][one["trial"]["run_id"]]["config"]["rounds"] for one in tried(made)} == {100}
    assert {one["row"] for one in made["candidates"]} == {"fedprox"}
    assert cell(made, "fedlaw", "mnist")["run_id"]


def test_a_budget_is_of_its_scale(files: Files) -> None:
    budgeted(files, {"client_lr": [0.1]})
    assert len(tried(files.plan({"scale": "short"}))) == 6


def test_a_columns_budget_wins_over_the_tables(files: Files) -> None:
    """The column's budget wins for a key that both name. The table's other keys hold for the column too."""
    made = budgeted(files, {"client_lr": [0.1, 0.3], "fedprox.mu": [0.5], "seeds": [9]}, {"client_lr": [0.7]})
    values = lambda column: [list(one["values"].values()) for one in made["candidates"] if one["column"] == column]  # noqa: E731
    assert values("mnist") == [[0.7, 0.5]]
    assert values(next(one["key"] for one in made["columns"] if one["key"] != "mnist")) == [[0.1, 0.5], [0.3, 0.5]]
    assert {tuple(one["trial"]["seeds"]) for one in made["candidates"]} == {(9,)}


def test_rounds_of_trials_are_those_of_the_columns_budget(files: Files) -> None:
    """The table's budget has 40 rounds, and that of the first column 20."""
    made = budgeted(files, {"rounds": 40}, {"rounds": 20})
    rounds = {one["column"]: made["runs"][one["trial"]["run_id"]]["config"]["rounds"] for one in made["candidates"]}
    assert rounds == {"mnist": 20, "fashion_mnist": 40}


def test_a_cell_that_does_not_tune_the_key_keeps_its_own(files: Files) -> None:
    """FedLAW tunes another key."""
    files.table["rows"][2]["tune"] = {"fedlaw.server_lr": [0.1, 0.2]}
    made = budgeted(files, {"client_lr": [0.1]})
    found = [one["values"] for one in made["candidates"] if (one["row"], one["column"]) == ("fedlaw", "mnist")]
    assert found == [{"fedlaw.server_lr": 0.1}, {"fedlaw.server_lr": 0.2}]


def test_rounds_of_a_budgets_trials_are_the_scales(files: Files) -> None:
    made = budgeted(files, {"rounds": 7}, scale="short")
    assert {made["runs"][one["trial"]["run_id"]]["config"]["rounds"] for one in tried(made)} == {7}


def test_trials_of_all_rounds_are_the_run_itself(files: Files) -> None:
    """A budget may make trials as long as the run. Then nothing trains twice, and the run's source gives the rounds."""
    made = budgeted(files, {"rounds": 10}, scale="demo")
    assert {one["trial"]["run_id"] == one["run_id"] for one in tried(made)} == {True}
    assert made["runs"][tried(made)[0]["run_id"]]["sources"]["rounds"] == "scale"


def test_fewer_rounds_than_the_trials_make_them_whole_runs(files: Files) -> None:
    """params.yaml sets fewer rounds than the budget gives to trials."""
    budgeted(files, {"rounds": 7}, scale="short")
    made = files.plan({"scale": "short", "settings": {"rounds": 2}})
    assert {one["trial"]["run_id"] == one["run_id"] for one in tried(made)} == {True}
    assert {run["config"]["rounds"] for run in made["runs"].values()} == {2}


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ({"client_rl": [0.1]}, None, ["budget of the table: tune", "client_rl", "did you mean 'client_lr'"]),
        ({}, {"server_lr": [0.1]}, ["budget of column mnist: tune", "server_lr"]),
        ({"rounds": 201}, None, ["fedprox, mnist: tune: rounds = 201", "scale full", "200 rounds"]),
        ({"client_lr": []}, None, ["budget.full.tune.grid.client_lr"]),
    ],
)
def test_mistakes_of_budgets_are_named(files: Files, table: dict, column: dict | None, words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        budgeted(files, table, column)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("tune", "words"),
    [
        ({"client_rl": [0.1]}, ["fedprox, mnist", "client_rl", "client_lr"]),
        ({"fedlaw.server_lr": [0.1]}, ["fedprox, mnist: tune", "fedlaw.server_lr"]),
        ({"client_lr": [0.1], "rounds": 900}, ["fedprox, mnist: tune: rounds = 900", "200 rounds"]),
        ({"client_lr": []}, ["tune.grid.client_lr"]),
        ({"seeds": [8]}, ["tune.grid"]),
    ],
)
def test_mistakes_are_named(files: Files, tune: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        tuned(files, tune)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_what_a_diagnostic_measures_cannot_decide(files: Files) -> None:
    """The trials would be trained before it is known."""
    metric = {"name": "client_distance", "unit": "percent", "description": "x", "diagnostic": "client_distance"}
    files.table["rows"][1] |= {"metric": metric, "tune": RATES}
    files.table["keep"] = [100]
    with pytest.raises(
        UserError, match=r"fedprox, mnist: tune: candidates are compared by what runs record, and client_distance"
    ):
        files.plan(FULL)


def test_what_the_method_writes_cannot_be_tuned(files: Files) -> None:
    files.table["rows"][1]["method"] = "fedprox(mu=0.3)"
    with pytest.raises(UserError, match=r"fedprox, mnist: tune: the method writes fedprox\.mu itself"):
        tuned(files, {"fedprox.mu": [0.1, 0.2]})
