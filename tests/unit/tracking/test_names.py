"""Names of runs in MLflow: short, and no two equal."""

import re
from pathlib import Path

import pytest
from small_table import make_run, with_settings

from fedrepro.config.grid import plan
from fedrepro.config.plan import Run
from fedrepro.config.project import load_project
from fedrepro.files import write_text
from fedrepro.tracking import planned_runs
from fedrepro.tracking.names import run_names
from fedrepro.typed import text, typed

ROOT = Path(__file__).parents[3]
LABELS = {"fedavg": "FedAvg", "fedlaw": "FedLAW"}


def names_of(*runs):
    return [
        str(name)
        for name in run_names({run["run_id"]: (typed(Run, run, "run"), [LABELS[run["method_label"]]]) for run in runs}).values()
    ]


def collected(tmp_path, params=None):
    """The names of FedLAW's Table 3 at scale demo, by run_id."""
    made = plan(load_project(ROOT, params), "fedlaw", "table3", "demo")
    return {one.run_id: one.name for one in planned_runs.collect([write_text(tmp_path / "plan.json", text(made))]).values()}


def test_method_then_model_then_alpha(tmp_path):
    """All 32 names of the demo differ within the 22 characters that the UI shows. None says FashionMNIST."""
    found = [str(name) for name in collected(tmp_path).values()]
    assert len(set(found)) == len(found) == 32
    assert {"FedAvg MLP α100", "FedLAW-SWA LeNet α0.1"} <= set(found)
    assert max(map(len, found)) <= 22


def test_a_table_of_another_paper_moves_no_run(tmp_path):
    """MLflow's order of runs is numbered by experiment, so that a new paper does not rewrite a tag of every run."""
    project = load_project(ROOT)
    files = [
        write_text(tmp_path / f"{paper}.json", text(plan(project, paper, table, "demo")))
        for paper, table in (("elastic", "table1"), ("fedgh", "table2"))
    ]
    alone, both = (planned_runs.collect(plans) for plans in (files[1:], files))
    assert {place: one.place for place, one in both.items() if place in alone} == {p: one.place for p, one in alone.items()}


def test_a_changed_argument_is_in_the_name(tmp_path):
    """The name has another mu than the paper's, and settings of params.yaml. It does not have the paper's mu."""
    params = load_project(ROOT).params.model_dump()
    params["methods"]["fedlaw"]["fedprox"]["mu"] = 0.1
    found = {str(name) for name in collected(tmp_path, params).values()}
    assert "FedProx mu=0.1 MLP α0.1" in found
    assert not any(name.startswith("FedProx MLP") for name in found)
    params["settings"] = {"rounds": 5}
    assert "FedProx mu=0.1 MLP α0.1 rounds=5" in {str(name) for name in collected(tmp_path, params).values()}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"clients": 9}, "FedAvg α100 9 clients"),
        ({"dataset": "mnist"}, "FedAvg α100 mnist"),
        ({"model": "lenet"}, "FedAvg LeNet α100"),
        ({"participation": 0.2}, "FedAvg α100 participation=0.2"),
        ({"partition": "dirichlet_balanced(alpha=100.0, min_size=10)"}, "FedAvg α100 balanced"),
        ({"client_lr": 0.1}, "FedAvg α100 lr=0.1"),
        ({"method": "sgd()+mean(weighting=size)"}, "FedAvg weighting=size α100"),
    ],
)
def test_a_name_tells_what_differs(settings, name):
    """A name has only values that differ from most runs. Names of other runs do not change."""
    usual = [make_run(method, column) for method in ("fedavg", "fedlaw") for column in ("mlp-a100", "mlp-a01")]
    other = with_settings(usual[0], **settings)
    other |= {"method": other["config"]["method"]}
    assert names_of(*usual, other) == ["FedAvg α100", "FedAvg α0.1", "FedLAW α100", "FedLAW α0.1", name]


def test_runs_that_say_nothing_different_have_their_hash():
    """Two run_ids never have the same name."""
    run = make_run("fedavg", "mlp-a100")
    assert names_of(run, run | {"run_id": "digits-mlp-0a1b2c3d"})[1] == "FedAvg 0a1b2c3d"


def test_runs_of_other_parts_are_told_apart_by_them():
    """If runs of one method have different parts, their names have these parts."""
    first, second = make_run("fedavg", "mlp-a100"), make_run("fedavg", "mlp-a01")
    twin = second | {"run_id": "digits-mlp-0a1b2c3d", "method": f"{second['method']}+mean_buffers"}
    assert names_of(first, second, twin)[1:] == ["FedAvg α0.1", "FedAvg mean_buffers α0.1"]


def test_no_two_published_runs_have_one_name(tmp_path):
    """This covers all tables of a paper. A row that varies a method has the method's name and the varied value."""
    project = load_project(ROOT)
    made = [plan(project.as_published("full"), "elastic", table, "full") for table in project.tables_of("elastic")]
    files = [write_text(tmp_path / f"{one.table}.json", text(one)) for one in made]
    found = {one.run_id: str(one.name) for one in planned_runs.collect(files).values()}
    assert len(set(found.values())) == len(found) > 100
    assert any(name.startswith("FedAvg + elastic tau=0.1 ") for name in found.values())
    assert not any(re.search("[0-9a-f]{8}$", name) or "τ" in name for name in found.values())


def test_a_run_without_a_row_is_called_as_its_like():
    """A run without a row takes the label of a run with the same method. A row labelled with a method string takes the method's
    known label."""
    runs = [make_run("fedlaw", "mlp-a100"), make_run("fedlaw", "mlp-a01"), make_run("fedavg", "mlp-a100")]
    labels = [["FedLAW"], [], ["fedavg"]]
    entries = {run["run_id"]: (typed(Run, run, "run"), own) for run, own in zip(runs, labels, strict=True)}
    assert [name.method for name in run_names(entries).values()] == ["FedLAW", "FedLAW", "FedAvg"]
