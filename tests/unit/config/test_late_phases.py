"""Schedules with late phases, in runs with other rounds than the protocol."""

from typing import Any

import pytest
from small_papers import FULL, Files, cell, run_of, sourced

from tests.helpers.one_line import one_line

LATE = "exponential+cyclic(start=150, period=20)"  # in the protocol's 200 rounds


def late(start: int, period: int) -> str:
    return f"exponential(start=0, factor=null)+cyclic(start={start}, period={period}, lowest=5e-05)"


@pytest.fixture
def written(files: Files) -> Files:
    files.paper["protocol"] |= sourced(schedule=LATE, epochs="constant+fewer(start=150)")
    return files


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (FULL, late(150, 20)),
        ({"scale": "short"}, late(15, 2)),
        ({"scale": "demo"}, late(8, 2)),  # of 10 rounds: 7.5 rounded up, and 1 raised to 2
        (FULL | {"settings": {"rounds": 100}}, late(75, 10)),
        (FULL | {"settings": {"rounds": 400}}, late(300, 40)),
        ({"scale": "short", "settings": {"rounds": 40}}, late(30, 4)),
        # A schedule in params.yaml refers to the run's own rounds.
        ({"scale": "short", "settings": {"rounds": 40, "schedule": "exponential+cyclic(start=5)"}}, late(5, 20)),
        ({"scale": "short", "settings": {"schedule": LATE}}, late(15, 2)),  # equal to the protocol's schedule
    ],
)
def test_the_same_share_of_the_rounds(written: Files, params: dict[str, Any], expected: str) -> None:
    """Late phases start at the same share of the rounds, at every scale and with params.yaml's rounds."""
    assert run_of(written.plan(params), "fedavg")["config"]["schedule"] == expected


def test_epochs_have_phases_too(written: Files) -> None:
    run = run_of(written.plan({"scale": "short"}), "fedavg")
    assert run["config"]["epochs"] == "constant(start=0, value=null)+fewer(start=15, every=2, by=1)"


def test_by_budget(written: Files) -> None:
    """Phases scale with the budget's rounds. A schedule in the budget itself is not scaled. The cell shows the paper's schedule
    and rounds under `instead_of`."""
    written.table["budget"] = {"full": {"note": "less", "rounds": 40}}
    made = written.plan(FULL)
    run, shown = run_of(made, "fedavg"), cell(made, "fedavg", "mnist")
    assert run["config"]["schedule"] == late(30, 4)
    assert run["sources"]["schedule"] == "paper; its rounds are the same share of 40 as of 200"
    assert (shown["instead_of"]["schedule"], shown["instead_of"]["rounds"]) == (LATE, 200)
    written.table["budget"]["full"]["settings"] = {"schedule": "exponential+cyclic(start=20)"}
    assert run_of(written.plan(FULL), "fedavg")["config"]["schedule"] == late(20, 20)


def test_in_trials(written: Files) -> None:
    """Trials of 50 of 200 rounds scale phases to a quarter, also in a schedule that is tried, and in one of params.yaml for 100
    rounds."""
    written.table["rows"][1]["tune"] = {"schedule": [LATE, "cosine"], "rounds": 50}
    made = written.plan(FULL)
    runs = {made["runs"][one["trial"]["run_id"]]["config"]["schedule"] for one in made["candidates"]}
    assert runs == {late(38, 5), "cosine(start=0, half=true)"}
    written.table["rows"][1]["tune"] = {"client_lr": [0.1, 0.2], "rounds": 50}
    made = written.plan(FULL | {"settings": {"rounds": 100, "schedule": "exponential+cyclic(start=60)"}})
    for one in made["candidates"]:
        configs = (made["runs"][run_id]["config"] for run_id in (one["run_id"], one["trial"]["run_id"]))
        assert [(one["rounds"], one["schedule"]) for one in configs] == [(100, late(60, 20)), (25, late(15, 5))]


def test_at_full_scale_nothing_changes(written: Files) -> None:
    """Neither the run nor its sources change. A schedule without rounds is the same at every scale."""
    run = run_of(written.plan(FULL), "fedavg")
    assert (run["sources"]["schedule"], run["config"]["schedule"]) == ("paper", late(150, 20))
    written.paper["protocol"] |= sourced(schedule="cosine")
    for scale in ("demo", "short", "full"):
        made = written.plan({"scale": scale})
        assert run_of(made, "fedavg")["config"]["schedule"] == "cosine(start=0, half=true)"
        assert "schedule" not in cell(made, "fedavg", "mnist")["instead_of"]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (
            FULL | {"settings": {"rounds": 40, "schedule": "exponential+cyclic(start=45)"}},
            "params.yaml: settings.schedule = 'exponential+cyclic(start=45)': start = 45 is never reached in 40 rounds",
        ),
        (
            FULL | {"settings": {"rounds": 1}},
            f"table1.yaml: fedavg, mnist: schedule = {LATE!r}: 2 phases do not fit into 1 rounds; give it fewer",
        ),
    ],
)
def test_a_phase_without_a_round_is_refused(written: Files, params: dict[str, Any], says: str) -> None:
    """One line names the file."""
    with one_line() as caught:
        written.plan(params)
    assert says in str(caught.value)


OWN = "exponential+constant(start=method, value=0.001)"


def own(start: float) -> str:
    return f"exponential(start=0, factor=null)+constant(start={start}, value=0.001)"


@pytest.fixture
def averaged(files: Files) -> Files:
    """All rows share one schedule whose late phase starts where the paper starts IMA, in round 150 of 200. Only one row has
    IMA."""
    files.paper["protocol"] |= sourced(schedule=OWN)
    files.paper["methods"]["ima"] = sourced(start=150)
    files.table["rows"][1]["method"] = "fedprox+ima"
    return files


@pytest.mark.parametrize(
    ("params", "start"),
    [
        (FULL, 150),
        ({"scale": "short"}, 15),
        ({"scale": "demo"}, 8),
        (FULL | {"settings": {"rounds": 100}}, 75),
        # A round in params.yaml refers to the run's own rounds, and a share stays a share.
        (FULL | {"settings": {"rounds": 100}, "methods": {"some": {"ima": {"start": 60}}}}, 60),
        ({"scale": "short", "methods": {"some": {"ima": {"start": 0.5}}}}, 0.5),
    ],
)
def test_a_phase_starts_with_the_method(averaged: Files, params: dict[str, Any], start: float) -> None:
    """The phase starts with IMA at every scale and with params.yaml's edits. A row without IMA has no such phase, and its run
    is unchanged."""
    made = averaged.plan(params)
    run = run_of(made, "fedprox")
    assert run["config"]["schedule"] == own(start)
    assert f"ima(window=5, start={start})" in run["config"]["method"]
    assert "schedule" not in run_of(made, "fedavg")["config"]
    without = run_of(made, "fedavg")
    del averaged.paper["protocol"]["schedule"]
    assert run_of(averaged.plan(params), "fedavg") == without | {"sources": run_of(averaged.plan(params), "fedavg")["sources"]}


def test_a_round_in_the_tables_own_text_is_one_of_the_protocol(averaged: Files) -> None:
    averaged.table["rows"][1]["method"] = "fedprox+ima(start=101)"
    run = run_of(averaged.plan({"scale": "short"}), "fedprox")
    assert run["config"]["schedule"] == own(11)  # 10.1, rounded up
    assert "start=11" in run["config"]["method"]


def test_a_methods_start_in_trials(averaged: Files) -> None:
    """Trials of 50 of 200 rounds scale the start to a quarter, and likewise with params.yaml's rounds. Tried starts refer to
    the protocol's rounds."""
    averaged.table["rows"][1]["tune"] = {"ima.start": [100, 0.5], "rounds": 50}
    made = averaged.plan(FULL)
    trials = {made["runs"][one["trial"]["run_id"]]["config"]["schedule"] for one in made["candidates"]}
    whole = {made["runs"][one["run_id"]]["config"]["schedule"] for one in made["candidates"]}
    assert trials == {own(25), own(0.5)}
    assert whole == {own(100), own(0.5)}
    averaged.table["rows"][1]["tune"] = {"client_lr": [0.1, 0.2], "rounds": 50}
    made = averaged.plan(FULL | {"settings": {"rounds": 100}, "methods": {"some": {"ima": {"start": 60}}}})
    assert {made["runs"][one["trial"]["run_id"]]["config"]["schedule"] for one in made["candidates"]} == {own(15)}


def test_two_starts_are_refused(averaged: Files) -> None:
    averaged.table["rows"][1]["method"] = "fedadam+ima+ima_averages"
    with one_line() as caught:
        averaged.plan(FULL)
    assert "table1.yaml" in str(caught.value)
    assert "the method has ima_averages(start=0.75) and ima(start=150); give them one" in str(caught.value)
