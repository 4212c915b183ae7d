"""Runs that `fedrepro run` trained and no plan has: MLflow shows them in an experiment apart."""

import statistics

from small_table import make_plan, make_run, write_result, write_results
from tracked import means_in, opened, runs_in

from fedrepro.config.plan import CONFIGS
from fedrepro.files import read_json, write_json
from fedrepro.tracking import store, sync
from fedrepro.tracking.content import LIVE
from fedrepro.tracking.planned_runs import BY_HAND


def test_they_are_shown_without_a_table(root):
    """The mean has the method's usual name and colour and the value after the last round. A sync of one table writes none of
    them, and retires none."""
    run, other = (make_run("fedavg", "mlp-a100", rounds) for rounds in (7, 9))
    receipts = [read_json(write_result(root, run, seed, accuracy)) for seed, accuracy in ((8, 80.0), (9, 84.0))]
    report = sync([], root)
    assert (report.written, report.unasked) == ([f"{run['run_id']}/seed8", f"{run['run_id']}/seed9"], [])
    (mean,) = means_in(root, BY_HAND)[run["run_id"]]
    assert mean.info.run_name == "FedAvg"
    assert mean.data.metrics["accuracy/mean"] == statistics.fmean(one["curves"]["test_accuracy"][-1] for one in receipts)
    assert {"method_label": "FedAvg", "seed": "mean of 8, 9", "tables": "none"}.items() <= mean.data.tags.items()
    with opened(root) as client:
        note = client.get_experiment_by_name(BY_HAND).tags["mlflow.note.content"]
    assert "no table here shows" in note

    write_result(root, other, 8)
    path = write_results(root, make_plan(seeds=[8]))
    assert other["run_id"] not in {key.partition("/")[0] for key in sync([path], root).written}
    assert LIVE in runs_in(root, BY_HAND)[f"{run['run_id']}/seed8"][0].data.tags
    assert sync([], root).written == [f"{other['run_id']}/seed8"]


def test_a_run_of_the_workflow_is_none(root):
    """After an edit of params.yaml no plan has it. It stays, retired, in the experiment of its table."""
    run = make_run("fedavg", "mlp-a100")
    write_result(root, run, 8)
    write_json(root / CONFIGS / f"{run['run_id']}.json", run)
    report = sync([], root)
    assert (report.written, report.unasked) == ([], [f"{run['run_id']}/seed8"])
    with opened(root) as client:
        assert not store.our_experiments(client)


def test_a_table_that_asks_for_it_takes_it(root):
    plan = make_plan(seeds=[8])
    run = next(iter(plan["runs"].values()))
    write_result(root, run, 8)
    sync([], root)
    write_results(root, plan)
    report = sync([], root)
    assert f"{run['run_id']}/seed8" in report.written
    assert report.retired == [f"{run['run_id']}/seed8"]
    (retired,) = runs_in(root, BY_HAND)[f"{run['run_id']}/seed8"]
    assert retired.data.tags["status"] == "retired: another experiment has it"
    assert runs_in(root)[f"{run['run_id']}/seed8"][0].data.tags["status"] == "finished"


def test_a_damaged_configuration_hides_this_run_alone(root):
    run, other = make_run("fedavg", "mlp-a100"), make_run("fedlaw", "mlp-a100")
    for one in (run, other):
        write_result(root, one, 8)
    (root / "results/runs" / run["run_id"] / "config.json").write_text("{}")
    report = sync([], root)
    assert (report.written, report.unasked) == ([f"{other['run_id']}/seed8"], [f"{run['run_id']}/seed8"])
