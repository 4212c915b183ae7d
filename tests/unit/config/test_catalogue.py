"""The catalogue assigns a run that no table asks for to the nearest cell, and plans no more tables than this takes."""

import pytest
from small_papers import FULL, Files

from fedrepro.config.catalogue import Catalogue, cells_of
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from tests.workflow.conftest import ROOT


@pytest.mark.parametrize(
    ("paper", "planned"), [("fedlaw", ["fedlaw/table3"]), ("elastic", ["fedlaw/table3", "elastic/table1"])]
)
def test_the_tables_up_to_its_own_are_planned(paper: str, planned: list[str]) -> None:
    """The tables of params.yaml are planned first. The search ends at the first table with a run that differs in at most one
    setting, and its other scales."""
    project = load_project(ROOT)
    _, run, _ = next(plan(project, *planned[-1].split("/"), "demo").readings())
    config = run.config | {"rounds": run.config["rounds"] + 1}
    found = Catalogue(project)
    found.approach({"changed": config})
    assert [*found.plans] == [(table, "demo") for table in planned]
    (cell, *_), changes = found.find("changed", config)
    assert cell.at == (planned[-1], "demo")
    assert [change.key for change in changes] == ["rounds"]


def test_all_are_planned_where_none_is_so_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the run differs from every cell in several settings, all tables are planned and the nearest cell takes the run."""
    project = load_project(ROOT)
    monkeypatch.setattr(type(project), "table_names", lambda _: ["fedlaw/table3", "fedlaw/table9"])
    _, run, _ = next(plan(project, "fedlaw", "table9", "demo").readings())
    config = run.config | {"rounds": run.config["rounds"] + 1, "client_lr": 0.7}
    found = Catalogue(project)
    found.approach({"changed": config})
    assert {table for table, _ in found.plans} == {"fedlaw/table3", "fedlaw/table9"}
    assert found.find("changed", config)[0][0].at == ("fedlaw/table9", "demo")
    four = config | {"local_epochs": 7, "batch_size": 5}
    assert len(found.find("four", four)[1]) == 4
    assert found.find("five", four | {"clients": 3}) == ([], [])


def test_a_run_belongs_to_its_own_scale(files: Files) -> None:
    """Scale short is planned first, and differs from full in the rounds alone. A run of full is no changed run of short."""
    files.plan(FULL)
    _, run, _ = next(plan(load_project(files.root, FULL), "some", "table1", "full").readings())
    found = Catalogue(load_project(files.root, {"scale": "short"}))
    found.approach({run.run_id: run.config})
    (cell, *_), changes = found.find(run.run_id, run.config)
    assert (cell.at, changes) == (("some/table1", "full"), [])


def test_published_scales_keep_their_seeds() -> None:
    """The seeds of params.yaml apply at its own scale and at scale demo. Scale full keeps its published seeds if params.yaml
    has another scale."""
    for scale, seeds in (("demo", [8, 9, 10]), ("full", [1])):
        found = Catalogue(load_project(ROOT, {"scale": scale, "seeds": [1]}))
        found.add([("fedlaw/table3", "full"), ("fedlaw/table3", "demo")])
        assert [*found.plans["fedlaw/table3", "full"].seeds] == seeds
        assert [*found.plans["fedlaw/table3", "demo"].seeds] == [1]


def test_what_a_candidate_tries(files: Files) -> None:
    """Commas and equals signs inside a value do not split it. The fewer rounds of a trial are not a tried setting."""
    files.table["rows"][1]["tune"] = {
        "schedule": ["cosine(half=true)", "exponential+cyclic(start=150, period=20)"],
        "rounds": 10,
    }
    files.plan(FULL)
    made = plan(load_project(files.root, FULL), "some", "table1", "full")
    found = {(cell.tries, cell.trial) for cell in cells_of(made) if cell.place[2:4] == ("fedprox", "mnist")}
    assert found == {(("schedule",), False), (("schedule",), True)}


def test_changes_are_those_to_the_table_that_is_shown() -> None:
    """With five local epochs in params.yaml a cell of FedLAW's Table 10 is the run that Table 12 has anyway."""
    project = load_project(ROOT, {"scale": "full", "settings": {"local_epochs": 5}})
    found = Catalogue(project)
    found.add([("fedlaw/table10", "full"), ("fedlaw/table12", "full")])
    own = [cell for cell in cells_of(found.plans["fedlaw/table12", "full"]) if cell.config["local_epochs"] == 5]
    shared = next(cell for cell in own if len({one.at for one in found.cells(cell.run_id)}) == 2)
    cells, changes = found.find(shared.run_id, shared.config)
    assert [change.key for change in changes] == ["local_epochs"]
    assert found.changes([cell for cell in cells if cell.at[0] == "fedlaw/table12"], shared.config) == []
