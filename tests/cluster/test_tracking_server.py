"""Several folders share a tracking server: PostgreSQL directly, and MLflow's server with its artifacts in S3."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster import servers

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from small_table import make_plan, write_result, write_results

from fedrepro.tracking.content import DIGEST, KEY, LIVE, ORIGIN, PARENT
from fedrepro.tracking.lock import WRITER
from fedrepro.tracking.planned_runs import plan_files

SMALL = {"seeds": [8, 9]}
TRACK = [sys.executable, "-m", "fedrepro", "track"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """The addresses of a PostgreSQL server, without the name of a database, and of an S3 server."""
    if lacking := servers.missing():
        pytest.fail(f"no servers here without {lacking}")
    folder = tmp_path_factory.mktemp("servers")
    with servers.postgres(folder / "postgres") as database, servers.s3(folder / "s3") as files:
        yield database.address.removesuffix("/mlflow"), files.address


@pytest.fixture(scope="module")
def migrated(machine):
    """The database `migrated`, which tests copy. It has MLflow's tables, which take seconds to make, and no rows of runs."""
    script = "import sys, mlflow; mlflow.MlflowClient(sys.argv[1]).search_experiments()"
    command = [sys.executable, "-c", script, new_database(machine[0], "migrated")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def served(machine, migrated, tmp_path_factory):
    """MLflow's server over a new database."""
    database, files = machine
    where = new_database(database, "served", "migrated")
    with servers.mlflow(tmp_path_factory.mktemp("mlflow") / "x", where, "s3://lab/mlflow", s3_address=files) as server:
        yield server


@pytest.fixture(params=["postgresql", "http"])
def address(request, machine, migrated):
    """A tracking store without runs."""
    return store(request, machine[0], "migrated")


@pytest.fixture(params=["postgresql", "http"])
def bare_address(request, machine):
    """A tracking store without runs. PostgreSQL's has no tables either."""
    return store(request, machine[0], "template1")


def store(request, database: str, template: str) -> str:
    if request.param == "postgresql":
        return new_database(database, f"d{time.monotonic_ns()}", template)
    return emptied(request.getfixturevalue("served").address)


def emptied(address: str) -> str:
    """The server without the experiments of earlier tests."""
    client = client_of(address)
    for experiment in client.search_experiments():
        if experiment.name != "Default":
            client.rename_experiment(experiment.experiment_id, f"{experiment.name} {time.monotonic_ns()}")
            client.delete_experiment(experiment.experiment_id)
    return address


@pytest.fixture
def folders(tmp_path):
    """Two copies of a project with the same finished runs, as on two machines."""
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        write_results(root, make_plan(**SMALL))
    return roots


def new_database(server: str, name: str, template: str = "template1") -> str:
    import psycopg2

    connection = psycopg2.connect(f"{server}/mlflow")
    connection.autocommit = True
    connection.cursor().execute(f"create database {name} template {template}")
    connection.close()
    return f"{server}/{name}"


def client_of(address: str):
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=address)


def start(root: Path, address: str, **more: str) -> subprocess.Popen[str]:
    environment = os.environ | {"MLFLOW_TRACKING_URI": address, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | more
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    command = [*TRACK, *map(str, plan_files(root))]  # the folder has no params.yaml to plan by
    return subprocess.Popen(command, cwd=root, env=environment, **pipes)


def track(root: Path, address: str) -> tuple[int, str]:
    process = start(root, address)
    said, _ = process.communicate(timeout=300)
    return process.returncode, said.strip()


def runs_at(address: str) -> list:
    client = client_of(address)
    experiment = client.get_experiment_by_name("fedlaw/demo")
    return list(client.search_runs([experiment.experiment_id], max_results=1000)) if experiment else []


def keys_at(address: str) -> Counter:
    return Counter(run.data.tags[KEY] for run in runs_at(address))


def require_whole(address: str, runs: int = 15) -> None:
    """Every key must occur once, complete, with its seeds below the mean. No process may still hold the write lock."""
    found = runs_at(address)
    assert Counter(keys_at(address).values()) == {1: runs}
    means = {run.data.tags[KEY]: run.info.run_id for run in found if "/" not in run.data.tags[KEY]}
    for run in found:
        assert {DIGEST, LIVE} <= run.data.tags.keys()
        run_id, _, seed = run.data.tags[KEY].partition("/")
        assert not seed or run.data.tags[PARENT] == means[run_id]
    client = client_of(address)
    assert not [key for key in client.get_experiment_by_name("fedlaw/demo").tags if key.startswith(WRITER)]


def test_two_folders_at_once_write_each_run_once(folders, bare_address):
    """Two folders sync at once, also to a database without tables: neither crashes, and the second has nothing to write."""
    processes = [start(root, bare_address) for root in folders]
    said = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert sorted(text.count("10 runs written") for text in said) == [0, 1], said
    require_whole(bare_address)
    for root in folders:
        code, text = track(root, bare_address)
        assert (code, text.startswith("MLflow: 0 runs written, 10 unchanged")) == (0, True), text
    require_whole(bare_address)


def test_a_killed_sync_is_completed_by_another_folder(folders, address):
    """Another folder replaces the incomplete runs of a sync that was killed after 0, 0.3 or 1 s. The lock of the killed process
    does not block it."""
    for wait in (0.0, 0.3, 1.0):
        process = start(folders[0], address)
        until = time.monotonic() + 120
        while time.monotonic() < until and not runs_at_quietly(address):
            time.sleep(0.05)
        time.sleep(wait)
        process.kill()
        process.wait()
    code, text = track(folders[1], address)
    assert code == 0, text
    require_whole(address)


def runs_at_quietly(address: str) -> list:
    try:
        return runs_at(address)
    except Exception:  # no tables yet
        return []


def test_each_folder_keeps_what_it_wrote(folders, address):
    """A folder whose plan drops runs retires only the runs that it wrote. Of two results for one key both folders keep the
    newer."""
    one, two = folders
    plan = make_plan(seeds=[8, 9, 10])
    run = next(iter(plan["runs"].values()))
    path = write_results(two, make_plan(seeds=[10]))
    assert track(one, address)[0] == track(two, address)[0] == 0
    found = {item.data.tags[KEY]: item for item in runs_at(address)}
    assert len(found) == 20
    assert all(LIVE in item.data.tags for item in found.values())
    assert str(two) in found[f"{run['run_id']}/seed10"].data.tags[ORIGIN]
    write_result(one, run, 8, 91.0, cost=later(one, run, 8))
    shutil.rmtree(path.parents[1])
    write_results(two, make_plan(**SMALL))
    assert track(one, address)[0] == track(two, address)[0] == track(one, address)[0] == 0
    found = {item.data.tags[KEY]: item for item in runs_at(address)}
    assert found[f"{run['run_id']}/seed8"].data.metrics["accuracy/mean"] == 91.0
    assert LIVE not in found[f"{run['run_id']}/seed10"].data.tags
    assert Counter(keys_at(address).values()) == {1: 20}


def later(root: Path, run: dict, seed: int) -> dict:
    import json

    cost = json.loads((root / "results" / "runs" / run["run_id"] / f"seed{seed}.json").read_text())["cost"]
    return cost | {"finished_at": cost["finished_at"].replace("2026", "2027")}


def test_files_go_through_the_server_into_s3(folders, served, machine, monkeypatch):
    """Any client of the server can download model, configuration and environment, and needs no S3 keys."""
    assert track(folders[0], emptied(served.address))[0] == 0
    client = client_of(served.address)
    run = next(one for one in runs_at(served.address) if "/" in one.data.tags[KEY])
    assert run.info.artifact_uri.startswith("mlflow-artifacts:/")
    fetched = Path(client.download_artifacts(run.info.run_id, "model.safetensors"))
    run_id, _, seed = run.data.tags[KEY].partition("/")
    assert fetched.read_bytes() == (folders[0] / "results" / "runs" / run_id / seed / "model.safetensors").read_bytes()
    import boto3

    for key, value in servers.AWS.items():
        monkeypatch.setenv(key, value)
    objects = boto3.client("s3", endpoint_url=machine[1]).list_objects_v2(Bucket="lab", Prefix="mlflow/")
    assert objects["KeyCount"] >= 3 * 10


def test_a_server_that_is_gone_or_frozen_holds_nothing_up(folders, machine, migrated, tmp_path):
    """The sync prints one line within seconds and exits with code 2. The next sync writes the missing runs."""
    where = new_database(machine[0], "frozen", "migrated")
    with servers.mlflow(tmp_path / "mlflow", where, str(tmp_path / "files")) as server:
        os.killpg(server.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        code, said = track(folders[0], server.address)
        assert (code, said) == (2, f"fedrepro: error: MLflow at {server.address} does not answer; `fedrepro track` catches up")
        assert time.monotonic() - began < 20  # 5 s, plus the time in which a busy machine starts Python
        os.killpg(server.process.pid, signal.SIGCONT)
        assert track(folders[0], server.address)[1].startswith("MLflow: 10 runs written")
        require_whole(server.address)
    for gone in (server.address, f"postgresql://mlflow:secret@127.0.0.1:{servers.free_port()}/mlflow"):
        began = time.monotonic()
        code, said = track(folders[0], gone)
        assert code == 2
        assert said.endswith("does not answer; `fedrepro track` catches up")
        assert "secret" not in said
        assert "\n" not in said
        assert time.monotonic() - began < 20


def test_a_report_does_not_wait_for_a_server(folders):
    """The workflow's step prints a line and goes on."""
    plan = next((folders[0] / "results" / "plans").rglob("*.json"))
    environment = os.environ | {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{servers.free_port()}"}
    command = [*TRACK, str(plan), "--out", "tracked.json"]
    done = subprocess.run(command, cwd=folders[0], env=environment, capture_output=True, text=True, check=True)
    assert "does not answer; `fedrepro track` catches up" in done.stdout + done.stderr
    assert (folders[0] / "tracked.json").exists()
