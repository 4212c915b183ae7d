"""MLflow is a view of the result folders: it can be repeated and rebuilt, and has no run twice. Every test uses a real SQLite
file."""

import errno
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_table import make_plan, make_run, write_evidence, write_result, write_results
from tracked import all_in, means_in, opened, runs_in

from fedrepro.errors import UserError
from fedrepro.exhibits.names import volume
from fedrepro.files import lock, write_json
from fedrepro.tracking import prune, rows, store, sync
from fedrepro.tracking.backend import Backend
from fedrepro.tracking.content import DIGEST, KEY, LIVE, PARENT
from fedrepro.tracking.planned_runs import plan_files
from fedrepro.tracking.rows import Rows
from tests.helpers.one_line import one_line

SMALL = {"seeds": [8, 9]}


def picture_of(everything: dict[str, list]) -> dict[str, tuple]:
    """Everything that a user sees of each run, without MLflow's random ids."""
    shown = {}
    names = {run.info.run_id: key for key, (run,) in everything.items()}
    for key, (run,) in everything.items():
        data, info = run.data, run.info
        tags = data.tags | {PARENT: names.get(data.tags.get(PARENT))}
        datasets = sorted((item.dataset.name, item.dataset.digest, item.tags[0].value) for item in run.inputs.dataset_inputs)
        times = (info.status, info.start_time, info.end_time, info.run_name)
        shown[key] = (data.params, data.metrics, tags, datasets, times)
    return shown


def artifact_folder(run) -> Path:
    return Path(run.info.artifact_uri.removeprefix("file://"))


def test_an_empty_sync_makes_the_database(empty_database):
    """The database is complete after one sync, without a partial file beside it."""
    assert sorted(path.name for path in empty_database.parent.iterdir()) == ["mlartifacts", "mlflow.db"]


def test_a_run_as_it_is_shown(root):
    """A run has parameters, arguments of the method, every metric of every round, summary, cost, inputs, tags, times and
    artifacts."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    partition = next(iter(plan["runs"].values()))["inputs"]["partition"]
    (root / "data" / "partitions" / partition).mkdir(parents=True)
    (root / "data" / "partitions" / partition / "seed8.svg").write_text("<svg/>")
    write_json(root / "data" / "partitions" / partition / "seed8.json", {"sizes": [5, 7]})
    report = sync([path], root)
    assert len(report.written) == 5 * 2
    assert not report.problems
    run_id = make_run("fedlaw", "mlp-a100")["run_id"]
    (run,) = runs_in(root)[f"{run_id}/seed8"]
    assert run.info.run_name == "FedLAW α100 · seed 8"
    assert (run.info.status, run.info.start_time, run.info.end_time) == ("FINISHED", 1795168800000, 1795168808000)
    arguments = {"fedlaw.server_lr": "0.01", "fedlaw.server_epochs": "100"}
    assert ({"client_lr": "0.08", "seed": "8", "partition.alpha": "100.0"} | arguments).items() <= run.data.params.items()
    tags = {
        "paper": "fedlaw",
        "scale": "demo",
        "tables": "table3",
        "method_label": "FedLAW",
        "setting": "α100",
        "commit": "0a1b2c3d",
    }
    assert (tags | {LIVE: "true"}).items() <= run.data.tags.items()
    values = {
        "accuracy/mean": 88.0,
        "loss/curve": 0.885,
        "system/wall_s": 2.5,
        "system/peak_mib": 410.0,
        "system/mb_sent": 0.24,
    }
    assert run.data.metrics == values | {"accuracy/curve": 88.5}
    with opened(root) as client:
        history = client.get_metric_history(run.info.run_id, "accuracy/curve")
    assert [metric.step for metric in history] == [1, 2, 3, 4, 5]
    assert (history[0].value, history[-1].timestamp) == (10.0, run.info.end_time)
    datasets = {item.tags[0].value: item.dataset for item in run.inputs.dataset_inputs}
    assert datasets.keys() == {"arrays", "partition", "proxy"}
    assert datasets["partition"].profile == '{"sizes": [5, 7]}'
    names = {item.name for item in artifact_folder(run).iterdir()}
    assert names == {"receipt.json", "config.json", "env.json", "model.safetensors", "partition.svg"}


def test_files_are_linked_or_else_copied(root, monkeypatch):
    """A model is on disk once. If the results are on another file system, it is copied."""
    plan = make_plan(seeds=[8])
    path = write_results(root, plan)
    run_id = next(iter(plan["runs"]))
    model = root / "results" / "runs" / run_id / "seed8" / "model.safetensors"
    sync([path], root)
    (run,) = runs_in(root)[f"{run_id}/seed8"]
    assert (artifact_folder(run) / model.name).samefile(model)
    (root / "mlflow.db").unlink()
    refuse = OSError(errno.EXDEV, "Invalid cross-device link")
    monkeypatch.setattr(os, "link", lambda *paths: (_ for _ in ()).throw(refuse))
    sync([path], root)
    (run,) = runs_in(root)[f"{run_id}/seed8"]
    copied = artifact_folder(run) / model.name
    assert not copied.samefile(model)
    assert copied.read_bytes() == model.read_bytes()


def test_files_go_to_a_new_folder_that_the_environment_names(root, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root / 'shared.db'}")
    monkeypatch.setenv("MLFLOW_DEFAULT_ARTIFACT_ROOT", (root / "new/files").as_uri())
    shutil.copyfile(root / "mlflow.db", root / "shared.db")
    sync([write_results(root, make_plan(seeds=[8]))], root)
    assert len([*root.glob("new/files/fedlaw/demo/*/artifacts/model.safetensors")]) == 5


def test_a_long_sync_says_how_far_it_is(root, monkeypatch, capsys):
    """A line names the seeds so far, the rate and the time left. A short sync has none."""
    path = write_results(root, make_plan(**SMALL))
    monkeypatch.setattr(Rows, "batch", 2)
    monkeypatch.setattr(sys.modules[sync.__module__], "PROGRESS_S", 0.0)
    sync([path], root)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2
    assert all(re.fullmatch(r"MLflow: \d of 10 finished seeds looked at, \d+ a second, .* left", line) for line in lines)
    shutil.rmtree(root / "results/runs")
    monkeypatch.undo()
    sync([write_results(root, make_plan(**SMALL), 70.0)], root)
    assert capsys.readouterr().err == ""


def test_syncing_twice_writes_once(root):
    """The second sync writes nothing: the database has the same bytes."""
    path = write_results(root, make_plan(**SMALL))
    first = sync([path], root)
    before = (root / "mlflow.db").read_bytes()
    second = sync([path], root)
    assert (len(first.written), len(second.written), len(second.unchanged)) == (10, 0, 10)
    assert (root / "mlflow.db").read_bytes() == before
    assert str(second).startswith("MLflow: 0 runs written, 10 unchanged")


def test_nothing_to_do_is_known_without_mlflow(root, monkeypatch):
    """A sync without new results does not open the database. If the UI has deleted a run, the next sync writes it again."""
    path = write_results(root, make_plan(seeds=[8]))
    sync([path], root)
    with monkeypatch.context() as patch:
        patch.setattr(store, "connected", None)
        assert len(sync([path], root).unchanged) == 5
    seen = root / "mlartifacts/.seen.json"
    before = seen.read_bytes()
    seen.write_text("{")  # a damaged file costs the sync its seconds, and is written anew
    assert len(sync([path], root).unchanged) == 5
    assert seen.read_bytes() == before
    (run, *_), *_ = runs_in(root).values()
    with opened(root) as client:
        client.delete_run(run.info.run_id)
    report = sync([path], root)
    assert (len(report.written), len(report.unchanged)) == (1, 4)


def test_two_at_once_write_once(root):
    """Two processes sync the same results, as two reports of one workflow do. There is no database at first."""
    (root / "mlflow.db").unlink()
    path = write_results(root, make_plan(**SMALL))
    script = f"from pathlib import Path; from fedrepro.tracking import sync; sync([Path({str(path)!r})], Path({str(root)!r}))"
    children = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    found = runs_in(root)
    assert len(found) == 10
    assert all(len(runs) == 1 for runs in found.values())


@pytest.mark.parametrize(
    ("kind", "call", "number", "whole", "left"),
    [
        (Rows, "_insert", 16, 2, []),  # the last statement of a transaction, which is rolled back
        (Rows, "_insert", 17, 2, ["ended", "ended"]),  # the digests, which follow it
        (Rows, "_insert", 19, 4, []),  # the second statement of the next transaction
        (Backend, "log_batch", 3, 3, ["reserved"]),  # a mean and a seed are written at once, and one is left reserved
        (Backend, "log_inputs", 1, 3, ["values"]),
        (Backend, "set_terminated", 3, 3, ["inputs"]),
        (Backend, "set_tag", 3, 3, ["ended"]),
        (Backend, "create_run", 5, 4, ["reserved"]),  # the second of two runs that are reserved together
    ],
)
def test_a_run_left_half_way_is_repaired(root, monkeypatch, kind, call, number, whole, left):
    """The sync is killed before a statement or call of the second or third batch, after `number` calls of that name. Then
    `whole` runs have a digest, and `left` has the stages of the unfinished runs. The next sync completes them, and every run
    exists once."""
    from mlflow import MlflowClient

    plan = make_plan(seeds=[8])
    path = write_results(root, plan)
    monkeypatch.setattr(kind, "batch", 2)
    monkeypatch.setattr(store, "Rows", kind)
    where, calls = rows if kind is Rows else MlflowClient, iter(range(1000))
    real = getattr(where, call)

    def die(*arguments, **options):
        if next(calls) == number:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(where, call, die)
        with pytest.raises(KeyboardInterrupt):
            sync([path], root)
    found = all_in(root)
    half = {key: run for key, (run,) in found.items() if DIGEST not in run.data.tags}
    assert [_stage(key, run) for key, run in half.items()] == left
    assert len(found) == whole + len(left)
    report = sync([path], root)
    assert len(report.unchanged) + len(report.retagged) + len(report.written) == 5
    found = all_in(root)
    assert len(found) == 10
    assert all(len(runs) == 1 and DIGEST in runs[0].data.tags for runs in found.values())
    parents = {key: run.info.run_id for key, (run,) in found.items() if "/" not in key}
    assert len(parents) == 5
    assert all(run.data.tags[PARENT] == parents[key.partition("/")[0]] for key, (run,) in found.items() if "/" in key)
    assert len(list((root / "mlartifacts" / "fedlaw" / "demo").iterdir())) == 5


def _stage(key: str, run) -> str:
    """The last stage that a run reached. Means have no inputs."""
    if run.info.status != "RUNNING":
        return "ended"
    if not run.data.metrics:
        return "reserved"
    return "inputs" if run.inputs.dataset_inputs or "/" not in key else "values"


def test_rows_and_calls_write_the_same(root, tmp_path_factory, monkeypatch):
    """Writing many runs in one transaction gives the same as calls of MLflow's client."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    run = next(iter(plan["runs"].values()))
    write_result(root, run, 9, None)
    partition = root / "data" / "partitions" / run["inputs"]["partition"]
    write_json(partition / "seed8.json", {"sizes": [5, 7]})
    (partition / "seed8.svg").write_text("<svg/>")
    sync([path], root)
    slow = tmp_path_factory.mktemp("slow") / "project"
    shutil.copytree(root, slow, ignore=shutil.ignore_patterns("mlflow.db", "mlartifacts"))
    monkeypatch.setattr(store, "Rows", Backend)
    sync([slow / path.relative_to(root)], slow)
    called, written = all_in(slow), all_in(root)
    assert picture_of(called) == picture_of(written)
    assert histories(slow, called) == histories(root, written)
    assert {key: stored(run) for key, (run,) in called.items()} == {key: stored(run) for key, (run,) in written.items()}


def histories(root: Path, everything: dict[str, list]) -> dict[str, dict]:
    """Every value of every metric of every run."""
    found = {}
    with opened(root) as client:
        for key, (run,) in everything.items():
            points = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
            found[key] = {name: [(p.step, p.timestamp, p.value) for p in some] for name, some in points.items()}
    return found


def stored(run) -> tuple:
    """What MLflow stores of a run but does not show, and its files."""
    info, folder = run.info, artifact_folder(run)
    files = {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}
    return info.user_id, info.lifecycle_stage, run.data.tags.get("mlflow.runName"), files


def test_a_deleted_database_is_rebuilt(root):
    """The next sync makes the same database again."""
    path = write_results(root, make_plan(**SMALL))
    sync([path], root)
    before = picture_of(all_in(root))
    (root / "mlflow.db").unlink()
    shutil.rmtree(root / "mlartifacts")
    assert len(sync([path], root).written) == 10
    assert picture_of(all_in(root)) == before


def test_a_changed_receipt_replaces_its_run(root):
    """Only that run is written again, with its new numbers. No run is there twice."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    sync([path], root)
    run = next(iter(plan["runs"].values()))
    write_result(root, run, 8, 91.5)
    assert sync([path], root).written == [f"{run['run_id']}/seed8"]
    found = runs_in(root)
    assert all(len(runs) == 1 for runs in found.values())
    assert found[f"{run['run_id']}/seed8"][0].data.metrics["accuracy/mean"] == 91.5
    assert len(list((root / "mlartifacts" / "fedlaw" / "demo").iterdir())) == 10


def test_a_diverged_run_is_shown_as_failed(root):
    """The rounds before it diverged are there. A missing mean is not shown as zero."""
    plan = make_plan(seeds=[8])
    path = write_results(root, plan, accuracy=None)
    sync([path], root)
    found = runs_in(root)
    assert len(found) == 5
    for (run,) in found.values():
        assert (run.info.status, run.data.tags["status"]) == ("FAILED", "diverged")
        assert "accuracy/mean" not in run.data.metrics
        assert "accuracy/curve" in run.data.metrics


def test_a_shared_cell_is_one_run_that_names_its_tables(root):
    """A second table with the same cells changes a tag and writes no run. A sync of one plan alone changes nothing."""
    path = write_results(root, make_plan(**SMALL))
    sync([path], root)
    other = write_json(path.with_name("table5.json"), make_plan(table="table5", **SMALL))
    report = sync([other], root)
    assert (len(report.written), len(report.retagged)) == (0, 10)
    assert {run.data.tags["tables"] for (run,) in runs_in(root).values()} == {"table3, table5"}
    assert len(sync([path], root).unchanged) == 10


def test_a_database_of_an_older_version_is_brought_up_to_date(root):
    """Version 2 wrote runs without means. They are written again under their new names, and none of the old ones is left."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    with opened(root) as client:
        location = (root / "mlartifacts" / "fedlaw" / "demo").as_uri()
        identity = client.create_experiment("fedlaw/demo", artifact_location=location, tags={store.OURS: "true"})
        for run in plan["runs"]:
            for seed in SMALL["seeds"]:
                name = f"FedLAW · FashionMNIST α=100 · seed {seed}"
                client.create_run(
                    identity, tags={KEY: f"{run}/seed{seed}", DIGEST: "of version 2", LIVE: "true"}, run_name=name
                )
    assert len(sync([path], root).written) == 10
    found = all_in(root)
    assert (len(found), len(means_in(root))) == (15, 5)
    assert all(len(runs) == 1 for runs in found.values())


def test_the_number_shown_is_the_reports(root):
    """The number is the table's mean over the last rounds. If two tables read different rounds, the first one has the plain
    name. A new reading writes its runs again."""
    plan = make_plan(seeds=[8])
    path = write_results(root, plan)
    sync([path], root)
    key = f"{plan['cells'][0]['run_id']}/seed8"
    curve = json.loads((root / "results/runs" / key).with_suffix(".json").read_text())["curves"]["test_accuracy"]
    (run,) = runs_in(root)[key]
    assert run.data.metrics["accuracy/mean"] == pytest.approx(sum(curve[-2:]) / 2) == 88.0
    other = make_plan(table="table5", seeds=[8])
    for cell in other["cells"]:
        cell["read"] = cell["run_id"] and "last(3)"
    write_json(path.with_name("table5.json"), other)
    assert len(sync([path], root).written) == 5
    (run,) = runs_in(root)[key]
    assert run.data.metrics["accuracy/mean"] == 88.0
    assert run.data.metrics["accuracy/mean_last3"] == pytest.approx(sum(curve[-3:]) / 3, abs=1e-4)


def test_unfinished_runs_wait(root):
    """A folder without a receipt is a run in progress."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    run_id = next(iter(plan["runs"]))
    (root / "results" / "runs" / run_id / "seed9.json").unlink()
    report = sync([path], root)
    assert report.waiting == [f"{run_id}/seed9"]
    assert len(report.written) == 9


@pytest.mark.parametrize("content", [b"{", b'{\n "code": {"part \xff": "2:0"}}', b'{\n "code": 5}'])
def test_a_damaged_receipt_does_not_stop_the_others(content, root):
    """One line of the report names the file."""
    plan = make_plan(seeds=[8])
    path = write_results(root, plan)
    broken = root / "results" / "runs" / next(iter(plan["runs"])) / "seed8.json"
    broken.write_bytes(content)
    report = sync([path], root)
    assert len(report.written) == 4
    assert len(report.problems) == 1
    assert str(broken) in report.problems[0]
    assert "\n" not in str(report)


def test_evidence_alone_is_enough(root):
    """In a fresh clone with only the reports' evidence, runs are shown without their models, but with their receipts."""
    plan = make_plan("full", seeds=[8])
    path = write_json(root / "results" / "plans" / "full" / "fedlaw" / "table3.json", plan)
    evidence = root / "reports" / "full" / "fedlaw" / "evidence"
    write_evidence(evidence, plan, {("fedavg", "mlp-a100"): [89.0]})
    assert len(sync([path], root).written) == 1
    ((run,),) = runs_in(root, "fedlaw/full").values()
    (published,), (shown,) = evidence.glob("*/seed8.json"), artifact_folder(run).iterdir()
    assert shown.name == "receipt.json"
    assert shown.samefile(published)


def test_what_no_plan_asks_for_retires_and_is_pruned(root):
    """The run loses its live tag and gets it back if a plan asks for it again. prune first lists and then removes results and
    runs."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    sync([path], root)
    write_json(path, make_plan(seeds=[8]))
    report = sync([path], root)
    assert len(report.retired) == 5
    assert all(key.endswith("seed9") for key in report.retired)
    assert sum(LIVE in run.data.tags for (run,) in runs_in(root).values()) == 5
    write_json(path, plan)
    assert len(sync([path], root).retagged) == 5 * 2  # the runs of seed 8 hang below a new mean
    write_json(path, make_plan(seeds=[8]))
    some = next(iter(plan["runs"]))
    for place in (f"kept/{some}", "kept/gone", "diagnostics/gone/call"):
        for seed in (8, 9):
            write_json(root / "results" / place / f"seed{seed}.json", {})
    sizes = [path.stat().st_size for path in root.glob("results/runs/*/seed9*/**/*") if path.is_file()]
    sizes += [path.stat().st_size for path in root.glob("results/runs/*/seed9.json")]
    planned = [*prune(root, dry_run=True)]
    empty = (root / "results/kept/gone/seed8.json").stat().st_size
    more = [
        f"results/kept/{some}/seed9.json: {empty} B",
        f"results/kept/gone: {2 * empty} B",
        f"results/diagnostics/gone: {2 * empty} B",
    ]
    assert len(planned) == 5 * (2 + 1) + len(more) + 1
    assert {*more} < {*planned}
    assert planned[-1] == f"in all: {volume(sum(sizes) + 5 * empty)} of results, 5 runs in MLflow"
    assert len(runs_in(root)) == 10
    assert [*prune(root)] == planned
    assert len(runs_in(root)) == 5
    assert not list(root.glob("results/runs/*/seed9*"))
    assert len(list(root.glob("results/runs/*/seed8.json"))) == 5
    assert [*prune(root)] == []


def test_prune_names_each_result_once_it_is_gone_and_leaves_what_a_link_names(root):
    """Each line comes with its removal. If a run's folder is a link, the link is removed and its target stays."""
    plan = make_plan(seeds=[8])
    path = write_results(root, plan)
    first, second = sorted(plan["runs"])[:2]
    runs, there = root / "results/runs", root / "elsewhere"
    (runs / first).rename(there)
    (runs / first).symlink_to(there)
    plan["cells"] = [cell for cell in plan["cells"] if cell["run_id"] not in (first, second)]
    write_json(path, plan)
    said = prune(root)
    assert (runs / first).is_symlink()
    assert next(said) == f"results/runs/{first}: a link; {there} stays"
    assert not (runs / first).is_symlink()
    assert (there / "seed8.json").exists()
    assert (runs / second).exists()
    assert next(said).startswith(f"results/runs/{second}: ")
    assert not (runs / second).exists()


def test_prune_keeps_in_mlflow_what_a_table_asks_for_without_a_plan(root):
    """`prune` keeps the seeds and the mean of a run in `asked_runs` even if no plan has the run. Without `asked_runs` it
    removes both from MLflow."""
    plan = make_plan(seeds=[8])
    path = write_results(root, plan)
    sync([path], root)
    asked = next(iter(plan["runs"]))
    plan["cells"] = [cell for cell in plan["cells"] if cell["run_id"] != asked]
    write_json(path, plan)
    assert [*prune(root, asked_runs={asked})] == []
    assert {asked, f"{asked}/seed8"} <= all_in(root).keys()
    assert [line.partition(": ")[2] for line in prune(root) if line.startswith("MLflow")] == [asked, f"{asked}/seed8"]


def test_prune_removes_nothing_while_mlflow_does_not_answer(root, monkeypatch):
    """One line says so, and every result stays."""
    plan = make_plan(seeds=[8])
    path = write_results(root, plan)
    plan["cells"] = plan["cells"][:1]
    write_json(path, plan)
    before = sorted(root.glob("results/runs/*/*"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"MLflow at http://127\.0\.0\.1:9 does not answer"):
        list(prune(root))
    assert sorted(root.glob("results/runs/*/*")) == before


def test_a_result_that_is_gone_retires_until_it_is_back(root):
    """The seed is retired, and the mean too if it has no seed left. `prune` removes neither. Once the results are restored, no
    run is written twice."""
    plan = make_plan(**SMALL)
    path = write_results(root, plan)
    sync([path], root)
    first, second = list(plan["runs"])[:2]
    before = all_in(root)
    results = root / "results" / "runs"
    (results / first).rename(root / "first")
    (results / second / "seed9.json").rename(root / "second")
    report = sync([path], root)
    assert sorted(report.retired) == sorted([f"{first}/seed8", f"{first}/seed9", f"{second}/seed9"])
    after = all_in(root)
    retired = {key for key, runs in after.items() if LIVE not in runs[0].data.tags}
    assert retired == {first, *report.retired}
    assert {after[key][0].data.tags["status"] for key in retired} == {"retired: its result is gone"}
    assert {after[key][0].data.tags["tables"] for key in retired} == {"table3"}
    assert after[second][0].info.run_name.endswith(" (1 of 2 seeds)")
    assert [*prune(root)] == []
    (root / "first").rename(results / first)
    (root / "second").rename(results / second / "seed9.json")
    assert sync([path], root).problems == []
    back = all_in(root)
    assert {key: [run.info.run_id for run in runs] for key, runs in back.items() if key != second} == {
        key: [run.info.run_id for run in runs] for key, runs in before.items() if key != second
    }
    assert {key: one.data.tags for key, (one,) in back.items() if "/" not in key} == {
        key: one.data.tags for key, (one,) in before.items() if "/" not in key
    }
    assert back[second][0].info.run_name == before[second][0].info.run_name


def test_a_retired_run_names_no_table(root):
    """No list of the UI shows it as a run of a table."""
    path = write_results(root, make_plan(**SMALL))
    sync([path], root)
    write_json(path, make_plan(seeds=[8]))
    gone = sync([path], root).retired
    for key in gone:
        (run,) = runs_in(root)[key]
        assert (run.data.tags["tables"], run.data.tags["status"]) == ("none", "retired: no table asks for it")
        assert run.data.tags["order"].startswith("retired.")
    write_json(path, make_plan(**SMALL))
    sync([path], root)
    assert {runs_in(root)[key][0].data.tags["tables"] for key in gone} == {"table3"}


def test_a_sync_that_ended_while_it_retired_runs_is_completed(root, monkeypatch):
    """The next one sorts them as if there had been one sync."""
    path = write_results(root, make_plan(**SMALL))
    sync([path], root)
    before = {key: runs[0].data.tags["order"] for key, runs in runs_in(root).items()}
    write_json(path, make_plan(seeds=[8]))

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Rows, "untag", killed)
        with pytest.raises(KeyboardInterrupt):
            sync([path], root)
    assert any(runs[0].data.tags["order"].startswith("retired.") for runs in runs_in(root).values())
    gone = sync([path], root).retired
    assert len(gone) == 5
    assert {key: runs_in(root)[key][0].data.tags["order"] for key in gone} == {key: f"retired.{before[key]}" for key in gone}


def test_prune_removes_checkpoints_that_no_table_asks_for(root):
    """They stay if a table asks for their seed, and if several runs share them."""
    plan = make_plan(seeds=[8])
    write_results(root, plan)
    asked, checkpoints = next(iter(plan["runs"])), root / "results/checkpoints"
    for name in (f"{asked}/seed8.pt", f"{asked}/seed8-kept.pt", f"{asked}/seed9.json", "gone/seed8.pt", "forks/0123/seed8.pt"):
        (checkpoints / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoints / name).write_text("state")
    (checkpoints / "finished").mkdir()
    said = [f"results/checkpoints/{asked}/seed9.json: 5 B", "results/checkpoints/gone: 5 B"]
    assert [*prune(root)] == [*said, "in all: 10 B of results, 0 runs in MLflow"]
    left = {path.relative_to(checkpoints).as_posix() for path in checkpoints.glob("*/**/*") if path.is_file()}
    assert left == {f"{asked}/seed8.pt", f"{asked}/seed8-kept.pt", "forks/0123/seed8.pt"}


def test_prune_keeps_a_run_in_training_and_refuses_without_plans(root):
    """A run's folder is removed only if no process trains in it. Without plans everything would go, so prune refuses."""
    plan = make_plan(seeds=[8])
    path = write_results(root, plan)
    gone = next(iter(plan["runs"]))
    plan["cells"] = [cell for cell in plan["cells"] if cell["run_id"] != gone]
    write_json(path, plan)
    for held in (gone, f"{gone}-seed8-kept"):  # the second one trains a finished seed for its models
        with lock(root / "results" / "checkpoints" / f"{held}.lock", busy=print):
            assert [*prune(root)] == [f"results/runs/{gone}: kept, a training is using it"]
    assert [*prune(root, asked_runs={gone})] == []
    removed, _ = prune(root)
    assert removed.startswith(f"results/runs/{gone}: ")
    path.unlink()
    with pytest.raises(UserError, match="no plans"):
        prune(root)


def test_a_moved_project_makes_its_experiment_again(root, tmp_path_factory):
    """Artifact links are absolute, so an experiment from another place is put aside and written again."""
    path = write_results(root, make_plan(seeds=[8]))
    sync([path], root)
    new = tmp_path_factory.mktemp("moved") / "project"
    shutil.copytree(root, new)
    assert len(sync([new / path.relative_to(root)], new).written) == 5
    (run, *_), *_ = runs_in(new).values()
    assert artifact_folder(run).is_relative_to(new)


def test_a_foreign_file_is_one_line(tmp_path):
    """A file that is no database is named and left alone."""
    (tmp_path / "mlflow.db").write_text("not a database, but long enough to be looked at" * 50)
    with one_line(r"mlflow\.db"):
        sync([], tmp_path)


def test_sync_is_quiet(root, capfd, caplog):
    """The user does not see messages of MLflow and Alembic."""
    with caplog.at_level(logging.WARNING):
        sync([write_results(root, make_plan(seeds=[8]))], root)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_plans_of_an_older_version_are_passed_over(tmp_path: Path) -> None:
    """This holds for a sync that names no plans too. A damaged plan is named."""
    plan, old = write_results(tmp_path, make_plan(**SMALL)), tmp_path / "results/plans/edited-demo/table3.json"
    write_json(old, json.loads(plan.read_text()) | {"schema": 8})
    assert plan_files(tmp_path) == [plan]
    assert sync([plan], tmp_path).written
    old.write_text("{")
    with pytest.raises(UserError, match=r"edited-demo/table3\.json"):
        sync([plan], tmp_path)


def test_prune_removes_what_a_killed_process_left_of_shared_checkpoints(root):
    """A file that may be half written is removed after a day. A younger one and a complete one stay."""
    write_results(root, make_plan(seeds=[8]))
    shared = root / "results/checkpoints/forks"
    left, young, complete = (
        shared / name for name in ("a/.seed8-round2.pt.x.pt", "b/.seed8-round2.pt.x.pt", "b/seed8-round2.pt")
    )
    for path in (left, young, complete):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(100))
    os.utime(left, (0, 0))
    assert next(prune(root, dry_run=True)).startswith("results/checkpoints/forks/a/.seed8-round2.pt.x.pt: ")
    assert left.exists()
    assert len([*prune(root)]) == 2
    assert not left.parent.exists()
    assert young.exists()
    assert complete.exists()
