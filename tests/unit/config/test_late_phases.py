"""Schedules with late phases in runs of other rounds than the protocol's."""

from typing import Any

import pytest
from small_papers import FULL, Files, cell, run_of, sourced

from fedrepro.errors import UserError

LATE = "exponential+cyclic(start=150, period=20)"  # of the protocol's 200 rounds


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
        ({"scale": "demo"}, late(8, 2)),  # of 10 rounds: 7.5 and 1
        (FULL | {"settings": {"rounds": 100}}, late(75, 10)),
        (FULL | {"settings": {"rounds": 400}}, late(300, 40)),
        ({"scale": "short", "settings": {"rounds": 40}}, late(30, 4)),
        # A person's own schedule is for the person's own rounds.
        ({"scale": "short", "settings": {"rounds": 40, "schedule": "exponential+cyclic(start=5)"}}, late(5, 20)),
        ({"scale": "short", "settings": {"schedule": LATE}}, late(15, 2)),  # says what holds anyway
    ],
)
def test_the_same_share_of_the_rounds(written: Files, params: dict[str, Any], expected: str) -> None:
    """By scale and by params.yaml."""
    assert run_of(written.plan(params), "fedavg")["config"]["schedule"] == expected


def test_epochs_have_phases_too(written: Files) -> None:
    run = run_of(written.plan({"scale": "short"}), "fedavg")
    assert run["config"]["epochs"] == "constant(start=0, value=null)+fewer(start=15, every=2, by=1)"


def test_by_budget(written: Files) -> None:
    """A budget's rounds; a budget's own schedule is for them. What the report says of both."""
    written.table["budget"] = {"full": {"note": "less", "rounds": 40}}
    made = written.plan(FULL)
    run, shown = run_of(made, "fedavg"), cell(made, "fedavg", "mnist")
    assert run["config"]["schedule"] == late(30, 4)
    assert run["sources"]["schedule"] == "paper; its rounds are the same share of 40 as of 200"
    assert (shown["instead_of"]["schedule"], shown["instead_of"]["rounds"]) == (LATE, 200)
    written.table["budget"]["full"]["settings"] = {"schedule": "exponential+cyclic(start=20)"}
    assert run_of(written.plan(FULL), "fedavg")["config"]["schedule"] == late(20, 20)


def test_in_trials(written: Files) -> None:
    """Of 50 of 200 rounds: a quarter, of a schedule that is tried too; and of one that params.yaml writes for 100."""
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
    """Neither the run nor its sources; and a schedule without rounds in it is the same at every scale."""
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
            "params.yaml: settings: schedule = 'exponential+cyclic(start=45)': start = 45 is never reached in 40 rounds",
        ),
        (
            FULL | {"settings": {"rounds": 1}},
            f"table1.yaml: fedavg, mnist: schedule = {LATE!r}: 2 phases do not fit into 1 rounds; give it fewer",
        ),
    ],
)
def test_a_phase_without_a_round_is_refused(written: Files, params: dict[str, Any], says: str) -> None:
    """In one line that names the file."""
    with pytest.raises(UserError) as caught:
        written.plan(params)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


OWN = "exponential+constant(start=method, value=0.001)"


def own(start: float) -> str:
    return f"exponential(start=0, factor=null)+constant(start={start}, value=0.001)"


@pytest.fixture
def averaged(files: Files) -> Files:
    """One schedule for rows with and without IMA, which starts where the paper says: in round 150 of 200."""
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
        # A person's own round is for the person's own rounds; a share is a share.
        (FULL | {"settings": {"rounds": 100}, "methods": {"some": {"ima": {"start": 60}}}}, 60),
        ({"scale": "short", "methods": {"some": {"ima": {"start": 0.5}}}}, 0.5),
    ],
)
def test_a_phase_starts_with_the_method(averaged: Files, params: dict[str, Any], start: float) -> None:
    """By scale and by params.yaml; a row without IMA has no such phase, and the run that it always had."""
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
    """Of 50 of 200 rounds a quarter, and of those that params.yaml makes; what is tried is the protocol's."""
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
    with pytest.raises(UserError) as caught:
        averaged.plan(FULL)
    assert "table1.yaml" in str(caught.value)
    assert "the method has ima_averages(start=0.75) and ima(start=150); give them one" in str(caught.value)
    assert "\n" not in str(caught.value)
