"""What runs are called in MLflow: short, and no two alike."""

from pathlib import Path

import pytest
from small_table import make_run, with_settings

from fedrepro.config.grid import plan
from fedrepro.config.plan import Run
from fedrepro.config.project import load_project
from fedrepro.files import write_text
from fedrepro.tracking import wanted
from fedrepro.tracking.names import run_names
from fedrepro.typed import text, typed

ROOT = Path(__file__).parents[3]


def names_of(*runs):
    return [str(name) for name in run_names({run["run_id"]: (typed(Run, run, "run"), ["FedAvg"]) for run in runs}).values()]


def collected(tmp_path, params=None):
    """The names that FedLAW's Table 3 has at scale demo."""
    made = plan(load_project(ROOT, params), "fedlaw", "table3", "demo")
    return {one.run_id: one.name for one in wanted.collect([write_text(tmp_path / "plan.json", text(made))]).values()}


def test_method_then_model_then_alpha(tmp_path):
    """All 32 of the demo differ within the 22 characters that the UI shows, and none is called FashionMNIST."""
    found = [str(name) for name in collected(tmp_path).values()]
    assert len(set(found)) == len(found) == 32
    assert {"FedAvg MLP α100", "FedLAW-SWA LeNet α0.1"} <= set(found)
    assert max(map(len, found)) <= 22


def test_a_changed_argument_is_in_the_name(tmp_path):
    """Another mu than the paper's is said, the paper's own is not; settings of params.yaml are said too."""
    params = load_project(ROOT).params.model_dump()
    params["methods"]["fedlaw"]["fedprox"]["mu"] = 0.1
    found = {str(name) for name in collected(tmp_path, params).values()}
    assert "FedProx mu=0.1 MLP α0.1" in found
    assert not any(name.startswith("FedProx MLP") for name in found)
    params["settings"] = {"rounds": 5}
    assert "FedProx mu=0.1 MLP α0.1 · rounds 5" in {str(name) for name in collected(tmp_path, params).values()}


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"clients": 9}, "FedAvg MLP α100 · 9 clients"),
        ({"dataset": "mnist"}, "FedAvg MLP α100 · mnist"),
        ({"participation": 0.2}, "FedAvg MLP α100 · participation 0.2"),
        ({"partition": "dirichlet_balanced(alpha=100.0, min_size=10)"}, "FedAvg MLP α100 · balanced"),
        ({"client_lr": 0.1}, "FedAvg MLP α100 · client_lr 0.1"),
        ({"method": "sgd()+mean(weighting=size)"}, "FedAvg weighting=size MLP α100"),
    ],
)
def test_what_is_unusual_tells_runs_apart(settings, name):
    """The value that most runs have goes without saying."""
    usual = [make_run("fedavg", "mlp-a100"), with_settings(make_run("fedavg", "mlp-a100"), rounds=7)]
    other = with_settings(usual[0], **settings)
    other |= {"method": other["config"]["method"]}
    assert names_of(usual[0], with_settings(usual[0], model="lenet"), other)[2] == name


def test_runs_that_say_nothing_different_have_their_hash():
    """Two run_ids are never one name."""
    run = make_run("fedavg", "mlp-a100")
    assert names_of(run, run | {"run_id": "digits-mlp-0a1b2c3d"})[1] == "FedAvg MLP α100 · 0a1b2c3d"


def test_a_long_label_gives_way(tmp_path):
    """Labels that describe a variant are longer than the UI shows; the method's name and what differs say the same."""
    made = plan(load_project(ROOT), "fedgh", "table2-projections", "full")
    found = {str(one.name) for one in wanted.collect([write_text(tmp_path / "plan.json", text(made))]).values()}
    assert "FedAvg 2NN α0.01" in found
    assert all(len(name.partition(" 2NN")[0]) <= 50 for name in found)
    assert any("against=in_place" in name for name in found)
