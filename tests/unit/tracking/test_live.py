"""Trainings without a result: MLflow shows their rounds so far, and later their results."""

import importlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from small_table import make_plan, make_receipt, write_result, write_results
from tracked import means_in, opened, runs_in

from fedrepro.engine import live
from fedrepro.store import Store
from fedrepro.tracking import store, sync
from fedrepro.tracking.backend import KnownRun
from fedrepro.tracking.content import DIGEST, ORIGIN, PARENT, REACHED, ROUNDS
from fedrepro.tracking.sync import SyncReport, _Sync

STARTED = "2026-11-20T10:00:00+00:00"  # as in the receipts of the small table


@pytest.fixture
def training(root):
    """A plan file, a run of which seed 9 trains, its key, and a function that advances it to a round."""
    plan = make_plan(seeds=[8, 9])
    path = write_results(root, plan)
    run = next(iter(plan["runs"].values()))
    write_result(root, run, 9)
    (root / "results" / "runs" / run["run_id"] / "seed9.json").unlink()
    curve = make_receipt(run, 9)["curves"]["test_accuracy"]

    def reach(rounds: int, **changes) -> None:
        rows = [(number, "test_accuracy", value) for number, value in enumerate(curve[:rounds])]
        progress = SimpleNamespace(round=rounds, rows=rows, wall_s=5.0, started_at=STARTED)
        checkpoint = live.file(root, run["run_id"], 9).with_suffix(".pt")
        live.write(checkpoint, progress, 20.0)

    return SimpleNamespace(path=path, run=run, key=f"{run['run_id']}/seed9", reach=reach)


def history(root, run):
    with opened(root) as client:
        found = client.get_metric_history(run.info.run_id, "accuracy/curve")
    return [(point.step, point.value) for point in sorted(found, key=lambda point: (point.timestamp, point.step))]


def test_a_training_is_shown_and_becomes_its_result(root, training):
    """The run is RUNNING with its rounds so far, below the mean of finished seeds. It is one MLflow run from the first
    checkpoint to the end."""
    training.reach(2)
    report = sync([training.path], root)
    assert (report.running, report.waiting, len(report.written)) == ([training.key], [], 9)
    assert "1 running" in str(report)
    (shown,) = runs_in(root)[training.key]
    (mean,) = means_in(root)[training.run["run_id"]]
    assert (shown.info.status, shown.info.end_time) == ("RUNNING", None)
    assert (shown.data.tags["status"], shown.data.tags[ROUNDS], shown.data.tags[PARENT]) == ("running", "2", mean.info.run_id)
    assert shown.data.params["client_lr"] == "0.08"
    assert [step for step, _ in history(root, shown)] == [1, 2]

    training.reach(4)
    sync([training.path], root)
    (further,) = runs_in(root)[training.key]
    assert further.info.run_id == shown.info.run_id
    assert [step for step, _ in history(root, further)] == [1, 2, 3, 4]

    live.remove(live.file(root, training.run["run_id"], 9).with_suffix(".pt"))
    write_result(root, training.run, 9)
    assert sync([training.path], root).written == [training.key]
    (done,) = runs_in(root)[training.key]
    (other,) = runs_in(root)[training.key.replace("seed9", "seed8")]
    assert (done.info.run_id, done.info.status) == (shown.info.run_id, "FINISHED")
    assert done.data.metrics == other.data.metrics
    assert history(root, done) == history(root, other)  # sorted by time
    assert done.data.tags.keys() == other.data.tags.keys()
    assert not {ROUNDS, REACHED} & done.data.tags.keys()
    assert DIGEST in done.data.tags
    assert len(done.inputs.dataset_inputs) == len(other.inputs.dataset_inputs) == 3
    assert len(sync([training.path], root).unchanged) == 10


def test_a_killed_training_is_not_shown_as_running(root, training, monkeypatch):
    """If its process is gone, the run is KILLED until the command continues it. Its rounds stay."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    file = live.file(root, training.run["run_id"], 9)
    training.reach(2)
    file.write_text(file.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {process.pid}'))
    assert sync([training.path], root).running == [training.key]
    process.send_signal(signal.SIGKILL)
    process.wait()
    report = sync([training.path], root)
    assert (report.running, report.waiting) == ([], [training.key])
    (killed,) = runs_in(root)[training.key]
    assert killed.info.status == "KILLED"
    with monkeypatch.context() as patch:
        patch.setattr(store, "connected", None)  # the file of a dead training costs no further sync
        assert sync([training.path], root).waiting == [training.key]
    training.reach(3)
    sync([training.path], root)
    (again,) = runs_in(root)[training.key]
    assert (again.info.run_id, again.info.status) == (killed.info.run_id, "RUNNING")
    assert [step for step, _ in history(root, again)] == [1, 2, 3]


def test_a_training_elsewhere_is_dead_when_it_is_silent(root, training):
    """A process on another machine counts as dead if it last wrote its file long ago."""
    training.reach(2)
    file = live.file(root, training.run["run_id"], 9)
    told = live.read(root, training.run["run_id"], 9)
    file.write_text(file.read_text().replace(told.host, "node7/1"))
    assert sync([training.path], root).running == [training.key]
    file.write_text(file.read_text().replace(told.written_at, "2026-11-20T10:05:00+00:00"))
    assert live.read(root, training.run["run_id"], 9).host == "node7/1"
    assert sync([training.path], root).running == []


def test_a_training_of_another_folder_is_left_alone_until_it_is_silent(root):
    """A sync ends its own folder's dead trainings at once, and others a day after their last news. Times are in ms."""
    now, day = int(time.time() * 1000), 24 * 3600 * 1000
    runs = [
        KnownRun(str(place), "RUNNING", 0, 0, "", {ROUNDS: "3", ORIGIN: origin, REACHED: str(reached)})
        for place, (origin, reached) in enumerate([("other", now), ("other", now - day - 10_000), ("own", now)])
    ]
    ended: list[KnownRun] = []
    backend = SimpleNamespace(more={ORIGIN: "own"}, end=ended.append)
    _Sync(root, Store.of(root), {}, {}, {})._end_dead(backend, {"a/seed8": runs})
    assert ended == runs[1:]


def test_a_training_from_the_start_is_another_run(root, training):
    """The checkpoint was lost and the seed started again, so the rounds of the first try do not belong to it."""
    training.reach(3)
    sync([training.path], root)
    (before,) = runs_in(root)[training.key]
    file = live.file(root, training.run["run_id"], 9)
    training.reach(1)
    file.write_text(file.read_text().replace(STARTED, "2026-11-20T11:00:00+00:00"))
    sync([training.path], root)
    (after,) = runs_in(root)[training.key]
    assert after.info.run_id != before.info.run_id
    assert [step for step, _ in history(root, after)] == [1]


@pytest.mark.parametrize("change", [{"pid": None}, {"pid": 2**99}, {"written_at": "today"}, {"rows": 5}])
def test_a_damaged_file_is_no_training(change, root, training):
    """A sync skips the damaged file and lists the run as waiting. The next checkpoint writes the file again."""
    training.reach(2)
    file = live.file(root, training.run["run_id"], 9)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert sync([training.path], root).waiting == [training.key]


def test_the_first_page_is_of_what_trains(root, training):
    """This holds even if another experiment has a run that ended later."""
    training.reach(2)
    sync([training.path], root)
    full = make_plan("full", seeds=[8])
    sync([write_results(root, full)], root)
    with opened(root) as client:
        experiments = store.our_experiments(client)
        assert {*experiments} == {"fedlaw/demo", "fedlaw/full"}
        (last,), *_ = runs_in(root, "fedlaw/full").values()
        client.set_terminated(last.info.run_id, end_time=2**42)
        assert store.newest_experiment(client) == experiments["fedlaw/demo"]


def test_following_outlives_a_busy_database(root, training, monkeypatch, capsys):
    """A failed sync prints its error, and the next one shows the training."""
    module = importlib.import_module("fedrepro.tracking.follow")  # the package exports a function of this name
    training.reach(2)
    done = []

    def busy_once(plans, where):
        done.append(plans)
        if len(done) == 1:
            raise sqlite3.OperationalError("database is locked")
        return sync(plans, where)

    monkeypatch.setattr(module, "sync", busy_once)
    monkeypatch.setattr(module, "is_running", lambda pid: len(done) < 2)
    module.follow([training.path], root, 0.01, beside=1)
    assert len(done) == 2
    said = capsys.readouterr().err
    assert said.index("OperationalError: database is locked") < said.index("1 running")


def test_following_syncs_only_what_is_new(root, training, monkeypatch):
    """If nothing trains there is one sync, and another when a receipt changes. While a seed trains, every turn syncs."""
    module = importlib.import_module("fedrepro.tracking.follow")
    path, done, turns = write_results(root, make_plan(seeds=[8])), [], []
    monkeypatch.setattr(module, "sync", lambda plans, where: done.append(len(turns)) or SyncReport())

    def turn(pid: int) -> bool:
        turns.append(pid)
        if len(turns) == 5:
            receipt = next((root / "results/runs").glob("*/seed8.json"))
            os.utime(receipt, ns=(0, receipt.stat().st_mtime_ns + 1))
        return len(turns) < 10

    monkeypatch.setattr(module, "is_running", turn)
    monkeypatch.setattr(module.time, "monotonic", lambda: 0.0)  # no sync takes time, so no pause counts turns
    module.follow([path], root, 0.0, beside=1)
    assert len(done) == 2
    training.reach(2)
    done.clear()
    turns.clear()
    module.follow([training.path], root, 0.0, beside=1)
    assert len(done) > 2
    file = live.file(root, training.run["run_id"], 9)
    file.write_text(file.read_text().replace(f'"pid": {os.getpid()}', '"pid": null'))
    done.clear()
    turns.clear()
    module.follow([training.path], root, 0.0, beside=1)
    assert len(done) == 2  # the training has ended, and turn 5 changes a receipt again


def test_following_takes_a_twentieth_of_a_core_at_most(root, training, monkeypatch):
    """A sync of 3 s is followed by 60 s of pause where 30 s were asked for, one of 1 s by 30 s."""
    module = importlib.import_module("fedrepro.tracking.follow")
    training.reach(2)
    now, starts, lengths = [0.0], [], [3.0, 3.0, 1.0, 1.0]

    def slow(plans, where):
        starts.append(now[0])
        now[0] += lengths.pop(0)
        return SyncReport()

    monkeypatch.setattr(module, "sync", slow)
    monkeypatch.setattr(module, "is_running", lambda pid: bool(lengths))
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    module.follow([training.path], root, 30, beside=1)
    assert starts == [0, 63, 126, 157]


def test_following_says_a_problem_once(root, training, monkeypatch, capsys):
    """Two syncs that differ in their seconds alone are one line."""
    module = importlib.import_module("fedrepro.tracking.follow")
    reports = [SyncReport(problems=["seed8.json: damaged (another sha256)"], seconds=seconds) for seconds in (1.0, 2.0)]
    monkeypatch.setattr(module, "is_running", lambda pid: bool(reports))
    monkeypatch.setattr(module, "sync", lambda plans, where: reports.pop(0))
    module.follow([training.path], root, 0.0, beside=1)
    assert capsys.readouterr().err == "MLflow: 0 runs written, 0 unchanged (1.0 s); seed8.json: damaged (another sha256)\n"
