"""The server of `fedrepro ui` and its first page."""

import contextlib
import importlib
import os
import shutil
import socket
import subprocess
import sys
import tomllib
from argparse import Namespace
from pathlib import Path

import pytest
from small_table import make_plan, write_evidence, write_results
from tracked import opened

from fedrepro import tracking
from fedrepro.cli import main, track
from fedrepro.config.grid import plan
from fedrepro.config.plan import PLANS, load_plan
from fedrepro.config.project import load_project
from fedrepro.errors import UserError
from fedrepro.files import lock, write_json
from fedrepro.tracking import SyncReport, artifacts, server, sync, ui
from fedrepro.tracking.address import Address, default_address, shorten
from fedrepro.tracking.backend import Backend, KnownRun
from fedrepro.tracking.planned_runs import plan_files
from fedrepro.workflow.jobs import LOCK, write_plan

SMALL = {"seeds": [8, 9]}


def test_a_busy_port_is_one_line(root):
    """The line says how to choose another port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"make ui PORT={port + 1}"):
            ui(root, port=port)


def test_the_server_is_told_where_everything_is(root, monkeypatch):
    """The command has the absolute paths of database and artifacts, and the port."""
    started = []
    monkeypatch.setattr(server, "_follow", lambda root: None)
    monkeypatch.setattr(server.os, "execve", lambda *arguments: started.append(arguments))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ui(root, port=port)
    ((_, command, _),) = started
    assert f"sqlite:///{root}/mlflow.db" in command
    assert f"{root}/mlartifacts" in command
    assert str(port) in command


def test_the_first_page_leads_to_the_runs(root):
    """`/` redirects to the charts of the experiment whose run ended last. MLflow's own first page is at `/?ui`."""
    sync([write_results(root, make_plan(**SMALL))], root)
    full = make_plan("full", seeds=[8])
    evidence = write_json(root / "results" / "plans" / "full" / "fedlaw" / "table3.json", full)
    write_evidence(root / "reports" / "full" / "fedlaw" / "evidence", full, {("fedavg", "mlp-a100"): [89.0]})
    sync([evidence], root)
    script = """
import asyncio, sys
from fedrepro.tracking.start import app

def get(query):
    parts = []
    async def send(message): parts.append(message)
    async def receive(): return {"type": "http.request", "body": b"", "more_body": False}
    headers = [(b"host", b"127.0.0.1:5000")]
    scope = {"type": "http", "path": "/", "raw_path": b"/", "query_string": query, "method": "GET", "headers": headers}
    scope |= {"root_path": "", "scheme": "http", "server": ("127.0.0.1", 5000), "client": None, "http_version": "1.1"}
    asyncio.run(app(scope, receive, send))
    return b"".join(part.get("body", b"") for part in parts).decode()

print(get(b""), "<!-- and -->", get(b"ui"))
"""
    environment = os.environ | {server.DATABASE: default_address(root).uri}
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=root, capture_output=True, text=True)
    first, _, ui_page = done.stdout.partition("<!-- and -->")
    assert '<div id="root"' in ui_page, done.stderr
    assert 'location.replace("/?ui" + (location.hash || "#" + address))' in first  # a link to a run in MLflow's usual form
    with opened(root) as client:
        demo, other = (client.get_experiment_by_name(name).experiment_id for name in ("fedlaw/demo", "fedlaw/full"))
    assert f'"address": "/experiments/{demo}/runs?compareRunsMode=CHART&workflowType=machine_learning"' in first
    assert all(f'[\\"{identity}\\"]' in first for identity in (demo, other))


def test_the_servers_application_is_an_entry_point():
    """MLflow finds the application by this name. An environment without the entry point starts plain MLflow."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    module, _, name = project["project"]["entry-points"]["mlflow.app"][server.APP].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_without_a_database_there_is_nothing_to_serve(tmp_path):
    """The error names the command that makes a database."""
    with pytest.raises(UserError, match="fedrepro track"):
        ui(tmp_path)


def test_what_is_published_is_planned_and_a_running_workflow_hides_none(tmp_path, monkeypatch):
    """`fedrepro ui` shows every run with published evidence, also where nothing was planned yet. While a workflow runs, its
    plans stay unchanged, and missing plans of published reports are written. Afterwards its plans are made again."""
    for name in ("papers", "data", "reports", "params.yaml"):
        (tmp_path / name).symlink_to(Path(__file__).parents[3] / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tracking, "ui", lambda *arguments: None)
    synced = []
    monkeypatch.setattr(tracking, "sync", lambda plans, root: synced.extend(plans or plan_files(root)) or SyncReport())
    known = [write_plan(place, plan(load_project(), "fedlaw", "table3", "demo")) for place in ("", "full/fedlaw/")]
    before = [path.read_text() for path in known]
    Path("params.yaml").unlink()
    Path("params.yaml").write_text((Path(__file__).parents[3] / "params.yaml").read_text() + "\n# edited since\n")
    with lock(LOCK, busy=print):
        track.ui(Namespace(host="127.0.0.1", port=5000))
    assert [path.read_text() for path in known] == before
    assert (PLANS / "full/fedgh/table2.json").exists()
    planned = {run_id for path in synced for run_id in load_plan(path).runs}
    published = {folder.name for folder in tmp_path.glob("reports/*/*/evidence/*/")}
    assert len(published) > 200
    assert published <= planned
    (PLANS / "full/fedgh/table2.json").unlink()
    track.ui(Namespace(host="127.0.0.1", port=5000))
    assert (PLANS / "full/fedgh/table2.json").exists()
    assert [path.read_text() == text for path, text in zip(known, before, strict=True)] == [True, False]


@pytest.mark.parametrize("served", [False, True])
def test_the_page_opens_on_what_was_trained_here(tmp_path, monkeypatch, served):
    """Before the server starts, only tables with runs of this folder are synced. The process beside it plans and syncs the
    published ones. MLflow's server elsewhere has no such process, so all of them are synced at once."""
    for name in ("papers", "data", "reports", "params.yaml"):
        (tmp_path / name).symlink_to(Path(__file__).parents[3] / name)
    monkeypatch.chdir(tmp_path)
    if served:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    mine, other = [write_plan("", plan(load_project(), "fedlaw", table, "demo")) for table in ("table3", "table1")]
    (tmp_path / "results/runs" / next(iter(load_plan(mine).runs))).mkdir(parents=True)
    synced, published = [], PLANS / "full/fedgh/table2.json"
    monkeypatch.setattr(tracking, "sync", lambda plans, root: synced.append([*plans]) or SyncReport())
    monkeypatch.setattr(tracking, "ui", lambda *arguments: None)
    track.ui(Namespace(host="127.0.0.1", port=5000))
    assert synced == ([[]] if served else [[mine]])
    assert published.exists() == served
    assert other.exists()
    assert track.track(Namespace(plans=[], every=None, out=None, published=True)) == 0
    assert published.exists()


def test_plans_are_made_again_by_todays_params(tmp_path, monkeypatch):
    """An earlier dry run left a plan with other settings, and a deleted table left its plan. `fedrepro track` rewrites the
    first and deletes the second."""
    root = Path(__file__).parents[3]
    for name in ("papers", "data", "reports"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    params = (root / "params.yaml").read_text()
    Path("params.yaml").write_text(params)
    path = write_plan("", plan(load_project(), "fedlaw", "table3", "demo"))
    today = path.read_text()
    Path("params.yaml").write_text(params.replace("settings: {}", "settings: {rounds: 3}"))
    write_plan("", plan(load_project(), "fedlaw", "table3", "demo"))
    assert path.read_text() != today
    gone = path.with_name("table99.json")
    gone.write_text(today.replace('"table": "table3"', '"table": "table99"'))
    Path("params.yaml").write_text(params)
    synced = []
    monkeypatch.setattr(tracking, "sync", lambda plans, root: synced.extend(plans or plan_files(root)) or SyncReport())
    assert track.track(Namespace(plans=[], every=None, out=None, published=False)) == 0
    assert [one.name for one in synced] == ["table3.json"]
    assert path.read_text() == today
    assert not gone.exists()


@pytest.mark.parametrize(("code", "passed_over"), [("RESOURCE_DOES_NOT_EXIST", True), ("INTERNAL_ERROR", False)])
def test_only_a_run_that_is_gone_needs_no_removal(tmp_path, code, passed_over):
    """A server that does not answer has removed nothing, so prune must not report a removal."""
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import ErrorCode

    class Refusing:
        def delete_run(self, run_id):
            raise MlflowException("no answer", error_code=ErrorCode.Value(code))

    address = Address("http://127.0.0.1:9", None, None, shared=True)
    run = KnownRun("1", "FINISHED", 0, 0, "mlflow-artifacts:/1", {})
    with contextlib.nullcontext() if passed_over else pytest.raises(MlflowException):
        Backend(Refusing(), address, tmp_path, {}).remove([run])


def test_files_that_are_refused_are_one_line(root, monkeypatch):
    """Artifact stores raise errors of various types. The line has only the type and the reason, without line breaks."""

    class Refusing:
        def log_artifact(self, path):
            raise LookupError("Unable to locate\ncredentials")

    monkeypatch.setattr(artifacts, "_repository", lambda uri, address: Refusing())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root / 'shared.db'}")
    monkeypatch.setenv("MLFLOW_DEFAULT_ARTIFACT_ROOT", "s3://lab/mlflow")
    shutil.copyfile(root / "mlflow.db", root / "shared.db")
    with pytest.raises(UserError, match=r"at s3://lab/mlflow/.* cannot be written: LookupError: Unable to locate credentials$"):
        sync([write_results(root, make_plan(seeds=[8]))], root)


def test_a_long_reason_keeps_its_end():
    """MLflow gives the reason at the end, after repeated addresses."""
    assert shorten("short") == "short"
    said = shorten(f"request {'x' * 400} too many 500 error responses")
    assert said.startswith("request ")
    assert said.endswith("too many 500 error responses")
    assert len(said) < 310


@pytest.mark.parametrize("command", [["track"], ["ui"]])
def test_outside_a_project_nothing_is_written(command, tmp_path, monkeypatch, capsys):
    """An empty store would hide that the command was given in another folder."""
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert "params.yaml: no such file; give this command in the project's root folder" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_what_was_trained_and_is_not_shown_is_said(root, monkeypatch, capsys):
    """`fedrepro run fedlaw/table3` makes no plan, so MLflow shows nothing until a report makes one."""
    path = write_results(root, make_plan(seeds=[8, 9]))
    monkeypatch.chdir(root)
    monkeypatch.setattr(track, "plan_again", lambda published: None)  # no table file has this plan
    write_json(path, make_plan(seeds=[8]))
    assert track.track(Namespace(plans=[], every=None, out=None, published=False)) == 0
    said = capsys.readouterr()
    assert "5 trained seeds here belong to no table that was asked for: `fedrepro runs`" in said.out + said.err
    write_json(path, make_plan(seeds=[8, 9]))
    assert track.track(Namespace(plans=[], every=None, out=None, published=False)) == 0
    said = capsys.readouterr()
    assert "trained seed" not in said.out + said.err
