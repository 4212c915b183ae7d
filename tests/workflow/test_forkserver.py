"""Commands that run in a fork of one loaded process: as those that load torch themselves, and none outlives who asked."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from fedrepro.cli import main
from tests.workflow.conftest import Project, make_project

LONG = 240  # rounds: some seconds of training
# Starts a server, tells its socket, and lives until its standard input ends.
STARTER = """
import os, sys
from fedrepro import forkclient
forkclient.start()
print(os.environ[forkclient.VARIABLE], flush=True)
sys.stdin.read()
"""


@dataclass
class Starter:
    """A process that has started a server, as the workflow does."""

    process: subprocess.Popen[str]
    socket: Path
    server: psutil.Process

    def child(self) -> psutil.Process:
        """The one fork of the server, once it is there."""
        seen: list[psutil.Process] = []
        wait_for(lambda: seen or seen.extend(self.forks()) or seen)  # libraries start other processes while they load
        (child,) = seen
        return child

    def forks(self) -> list[psutil.Process]:
        found = []
        for child in self.server.children():
            with contextlib.suppress(psutil.Error):
                found += [child] if child.cmdline() == self.server.cmdline() else []
        return found


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def wait_for_end(process: psutil.Process) -> None:
    """There may be no parent to reap it: a zombie has ended, too."""

    def ended() -> bool:
        try:
            return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:  # between the two questions
            return True

    wait_for(ended)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """With all that two runs read, their configurations, and what the longer one measures."""
    project = make_project(tmp_path_factory.mktemp("forks") / "project")
    for name, rounds in (("short", 2), ("long", LONG)):
        select = ("--rows", "fedlaw", "--columns", "fashion_mnist-mlp-0.1", "--set", f"rounds={rounds}")
        project.run("fedrepro", "run", "fedlaw/table3", *select)
        (config,) = (project.root / "results/runs").glob("*/config.json")
        (project.root / f"{name}.json").write_bytes(config.read_bytes())
        (project.root / f"{name}.parquet").write_bytes(measured(project))
        project.run("rm", "-r", "results/runs")
    return project


@pytest.fixture
def folder() -> Iterator[str]:
    """A temporary folder for sockets, whose paths have a hundred bytes: pytest's folders are too deep."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


@pytest.fixture
def starter(project: Project, folder: str) -> Iterator[Starter]:
    """The results of the test before are gone, those of this one go too."""
    project.run("rm", "-rf", "results/runs", "results/checkpoints")
    process = subprocess.Popen(
        [sys.executable, "-c", STARTER],
        env=project.environment({"TMPDIR": folder}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    path = Path(process.stdout.readline().strip())
    (server,) = psutil.Process(process.pid).children()
    yield Starter(process, path, server)
    process.communicate()
    wait_for_end(server)
    assert not list(Path(folder).iterdir())


def job(name: str) -> tuple[str, ...]:
    """As the workflow starts it."""
    return ("fedrepro", "run", f"{name}.json", "--seeds", "8", "--device", "cpu")


def measured(project: Project) -> bytes:
    (path,) = (project.root / "results/runs").glob("*/seed8/metrics.parquet")
    return path.read_bytes()


def test_a_forked_training_is_the_same_to_the_bit(project: Project, starter: Starter) -> None:
    """Metrics and model of a process of its own, twice; and it does train in the fork."""
    project.run(*job("short"))
    expected = project.metrics()
    assert len(expected) == 2
    for _ in range(2):
        project.run("rm", "-r", "results/runs")
        before = starter.server.cpu_times().children_user
        project.run(*job("short"), FEDREPRO_FORKSERVER=str(starter.socket))
        assert project.metrics() == expected
        assert starter.server.cpu_times().children_user > before


def test_streams_and_exit_codes_come_through(project: Project, starter: Starter) -> None:
    """Word for word as without the server: what is printed, the line of a mistake, and the workflow's file of mistakes."""
    errors = project.root / "errors"
    for command in (("fedrepro", "plan", "fedlaw/table3"), job("nothing"), job("nothing")[:-4]):
        alone, forked = (
            project.run(*command, ok=False, FEDREPRO_FORKSERVER=server, FEDREPRO_ERRORS=str(errors))
            for server in ("", str(starter.socket))
        )
        assert (alone.returncode, alone.stdout, alone.stderr) == (forked.returncode, forked.stdout, forked.stderr)
    assert forked.returncode == 2
    assert len(set(errors.read_text().splitlines())) == 1
    assert "nothing.json: no such file" in errors.read_text()


def test_a_job_that_dies_takes_its_fork_along(project: Project, starter: Starter) -> None:
    """While it trains, by each of three signals; SIGTERM is passed on, see `test_stopping`. The server goes on: the same job,
    started again, finds no lock and ends well."""
    for how, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process = project.start(*job("long"), FEDREPRO_FORKSERVER=str(starter.socket), FEDREPRO_CHECKPOINT_SECONDS="0")
        child = starter.child()
        wait_for(lambda: list((project.root / "results/checkpoints").rglob("seed8.pt")))
        os.kill(process.pid, how)
        assert process.wait() == code
        wait_for_end(child)
        assert not list((project.root / "results/runs").rglob("seed8*"))
        project.run("rm", "-r", "results/checkpoints")
    project.run(*job("long"), FEDREPRO_FORKSERVER=str(starter.socket))
    assert measured(project) == (project.root / "long.parquet").read_bytes()


def test_without_its_starter_the_server_finishes_what_it_began(project: Project, starter: Starter) -> None:
    """kill -9 of whoever started it: the job that trains ends well, a later one runs by itself."""
    process = project.start(*job("long"), FEDREPRO_FORKSERVER=str(starter.socket))
    child = starter.child()
    starter.process.kill()
    assert child.is_running()  # on a busy machine it may end before the server notices
    wait_for(lambda: not starter.socket.exists())
    assert process.wait() == 0
    assert measured(project) == (project.root / "long.parquet").read_bytes()
    wait_for_end(starter.server)
    project.run(*job("short"), FEDREPRO_FORKSERVER=str(starter.socket))


def test_without_the_server_a_job_goes_on_by_itself(project: Project, starter: Starter) -> None:
    """kill -9 of the server while a job trains: the fork is ended, and the job goes on from the checkpoint."""
    process = project.start(*job("long"), FEDREPRO_FORKSERVER=str(starter.socket), FEDREPRO_CHECKPOINT_SECONDS="0")
    child = starter.child()
    wait_for(lambda: list((project.root / "results/checkpoints").rglob("seed8.pt")))
    starter.server.kill()
    wait_for_end(child)
    assert process.wait() == 0
    assert measured(project) == (project.root / "long.parquet").read_bytes()


def test_nothing_is_forked_for_a_gpu(folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """Nor where a GPU may be picked: nobody calls at the server's door. The same command for the CPU does."""
    path = f"{folder}/socket"
    monkeypatch.setenv("FEDREPRO_FORKSERVER", path)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        door.settimeout(0)
        for device in ([], ["--device", "auto"], ["--device", "cuda"]):
            assert main(["run", "nothing.json", "--seeds", "8", *device]) == 2
        with pytest.raises(BlockingIOError):
            door.accept()
        caller = subprocess.Popen([sys.executable, "-m", "fedrepro", *job("nothing")[1:]], stderr=subprocess.DEVNULL)
        door.settimeout(30)
        door.accept()[0].close()  # and hangs up: the job runs by itself
        assert caller.wait() == 2
    assert "no such file" in capsys.readouterr().err


def test_a_killed_workflow_leaves_no_server(folder: str, tmp_path: Path) -> None:
    """kill -9 of snakemake alone, while it trains: its trainings end well as orphans, then the server ends, too; and Ctrl-C
    in the terminal ends everything at once."""
    project = make_project(tmp_path / "project")
    project.params(lambda p: p["settings"].update(rounds=LONG))
    for how in (signal.SIGKILL, signal.SIGINT):
        project.run("rm", "-rf", "results/runs", "results/checkpoints")
        workflow = project.start("snakemake", "--cores", "2", "runs", TMPDIR=folder, FEDREPRO_CHECKPOINT_SECONDS="0")
        wait_for(lambda: list((project.root / "results/checkpoints").rglob("seed8.pt")))
        children = psutil.Process(workflow.pid).children()
        (server,) = (c for c in children if c.status() != psutil.STATUS_ZOMBIE and "forkserver" in c.cmdline())
        forks = server.children()
        assert forks
        if how == signal.SIGINT:
            os.killpg(workflow.pid, how)
            assert not psutil.wait_procs(forks, timeout=10)[1], "trainings outlive Ctrl-C"
        else:
            os.kill(workflow.pid, how)
        workflow.wait()
        wait_for_end(server)
        assert len(project.trained()) >= (1 if how == signal.SIGKILL else 0)
        assert not list(Path(folder).glob("fedrepro-*"))
