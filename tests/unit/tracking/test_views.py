"""How the UI shows an experiment: the tags in the database, and what the first page sets in the browser."""

import json

from small_table import make_plan, write_results
from tracked import all_in, means_in, opened

from fedrepro.files import write_json
from fedrepro.tracking import sync, views
from fedrepro.tracking.backend import our_runs

SMALL = {"seeds": [8, 9]}


def test_accuracy_comes_first_and_cost_last(root):
    """MLflow sorts sections by prefix, then metrics without a prefix, then system metrics. No metric repeats another."""
    path = write_results(root, make_plan(**SMALL))
    sync([path], root)
    found = means_in(root)
    assert len(found) == 5
    for (run,) in found.values():
        assert sorted(name for name in run.data.metrics if not name.startswith("system/")) == [
            "accuracy/curve",
            "accuracy/mean",
            "accuracy/std",
            "loss/curve",
        ]
        assert {name for name in run.data.metrics if name.startswith("system/")} == {
            "system/wall_s",
            "system/peak_mib",
            "system/mb_sent",
        }


def test_an_experiment_opens_as_model_training(root):
    """The experiment has a kind and a saved view for each setting, with search, columns and order. Views that no longer apply
    are deleted."""
    path = write_results(root, make_plan(seeds=[8]))
    sync([path], root)
    with opened(root) as client:
        experiment = client.get_experiment_by_name("fedlaw/demo")
        client.set_experiment_tag(experiment.experiment_id, "mlflow.experimentKind", "genai_development")
        client.set_experiment_tag(experiment.experiment_id, f"{views.SAVED}stale", "{}")
        client.set_experiment_tag(experiment.experiment_id, "mlflow.sharedViewState.of-a-person", "{}")
    sync([path], root)
    with opened(root) as client:
        tags = client.get_experiment_by_name("fedlaw/demo").tags
    assert tags["mlflow.experimentKind"] == "custom_model_development"
    assert tags["mlflow.experiment.primaryMetric.name"] == "accuracy/mean"
    assert tags["mlflow.note.content"].startswith(
        "Runs of papers/fedlaw at scale demo. A line is the mean of one method in one setting over the seeds of the first table"
    )
    assert "`accuracy/mean`, for example: mean of the last 2 of 5 rounds" in tags["mlflow.note.content"]
    assert f"{views.SAVED}stale" not in tags
    assert "mlflow.sharedViewState.of-a-person" in tags
    with opened(root) as client:
        client.set_experiment_tag(experiment.experiment_id, "mlflow.note.content", "my words")
    sync([path], root)
    with opened(root) as client:
        assert client.get_experiment_by_name("fedlaw/demo").tags["mlflow.note.content"] == "my words"
    saved = {
        view["name"]: json.loads(view["state"])
        for key, text in tags.items()
        if views.SAVED in key
        for view in [json.loads(text)]
    }
    assert saved.keys() == {"All runs", "α100", "α0.1", "Seeds and trials below their means"}
    state = saved["α0.1"]
    assert state["selectedColumns"][:2] == ["metrics.`accuracy/mean`", "metrics.`accuracy/std`"]
    with opened(root) as client:
        found = client.search_runs(
            [experiment.experiment_id], filter_string=state["searchFilter"], order_by=[state["orderByKey"]]
        )
    assert [run.info.run_name for run in found] == ["FedAvg α0.1", "FedLAW α0.1"]


def test_no_data_set_is_called_what_it_is_not(root):
    """At scale demo the table's columns are labelled FashionMNIST, but the data are digits. MLflow shows digits."""
    sync([write_results(root, make_plan(seeds=[8]))], root)
    assert b"FashionMNIST" not in (root / "mlflow.db").read_bytes()
    assert {run.data.params["dataset"] for (run,) in all_in(root).values()} == {"digits"}


def test_the_first_page_shows_the_curves_of_one_setting(root):
    """The page draws the curves of the first ten means and hides those of other settings than the first."""
    sync([write_results(root, make_plan(**SMALL))], root)
    with opened(root) as client:
        identity = client.get_experiment_by_name("fedlaw/demo").experiment_id
        found = views.page(identity, our_runs(client, identity))
    state = json.loads(found["state"])
    names = {run.info.run_id: run.info.run_name for (run,) in means_in(root).values()}
    assert sorted(names[one] for one in state["runsVisibilityMap"]) == ["FedAvg α0.1", "FedLAW α0.1"]
    assert state["selectedColumns"][0] == "metrics.`accuracy/mean`"


def test_what_no_table_asks_for_comes_last(root):
    """The page opens on the setting of the first run that a table asks for, even if a retired run came before it. A run that is
    asked for again gets its old place back."""
    path = write_results(root, plan := make_plan(**SMALL))
    sync([path], root)
    first = {key: run.data.tags["order"] for key, (run,) in means_in(root).items()}
    setting = next(cell["column"] for cell in plan["cells"])
    write_json(path, plan | {"cells": [cell for cell in plan["cells"] if cell["column"] != setting]})
    sync([path], root)
    with opened(root) as client:
        identity = client.get_experiment_by_name("fedlaw/demo").experiment_id
        state = json.loads(views.page(identity, our_runs(client, identity))["state"])
    hidden = {key for key, (run,) in means_in(root).items() if run.info.run_id in state["runsVisibilityMap"]}
    retired = {key for key, (run,) in means_in(root).items() if "fedrepro.live" not in run.data.tags}
    assert hidden == retired != set()
    order = {key: run.data.tags["order"] for key, (run,) in means_in(root).items()}
    assert order == {key: f"retired.{place}" if key in retired else order[key] for key, place in first.items()}
    write_json(path, plan)
    sync([path], root)
    assert {key: run.data.tags["order"] for key, (run,) in means_in(root).items()} == first


def test_an_empty_database_leads_to_the_list_of_experiments(root):
    """The list is in the part of the UI that shows runs."""
    assert views.address(None) == "/experiments?workflowType=machine_learning"
