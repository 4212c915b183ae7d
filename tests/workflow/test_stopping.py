"""Signals to real trainings and to the workflow. After SIGTERM trainings save and end, only the running round is lost, and the
next attempt has the same bits. The workflow gets Ctrl-C, SIGTERM and `kill -9`."""

import contextlib
import os
import re
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.workflow.conftest import Project, drawn_of, wait_for

ROUNDS = 24  # no checkpoint is saved before the signal
SAID = re.compile(r"stopped by SIGTERM after (round (\d+) of \d+ \(seed 8\).*); the same command goes on from there")
# `fedrepro`, which also writes down each finished round.
TELLING = """
import sys
from fedrepro import arithmetic
arithmetic.use(arithmetic.chosen(None))
from fedrepro.cli import main
from fedrepro.engine import run

def told(self, round, progress, plain=run._Reporter.__call__):
    with open("rounds", "a") as stream:
        print(round, self.title.split()[-1], file=stream)
    plain(self, round, progress)

run._Reporter.__call__ = told
sys.exit(main(sys.argv[1:]))
"""


TOGETHER = ("--engine", "vectorised")
Whole = tuple[dict[str, bytes], list[str]]  # metrics and models, and the rounds in order


@pytest.fixture(scope="module")
def together(chain: tuple[Project, list[str]], tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Whole]:
    """A project with all inputs of a run of some seconds and its configuration, and the results of both its seeds together."""
    project = drawn_of(chain[0], tmp_path_factory.mktemp("stopping") / "project")
    project.params(lambda params: params.update(seeds=[8, 9]))
    (project.root / "telling.py").write_text(TELLING)
    select = ("--rows", "fedlaw", "--columns", "fashion_mnist-mlp-0.1", "--set", f"rounds={ROUNDS}", "--device", "cpu")
    project.run(sys.executable, "telling.py", "run", "fedlaw/table3", *select, *TOGETHER)
    (config,) = (project.root / "results/runs").glob("*/config.json")
    (project.root / "run.json").write_bytes(config.read_bytes())
    return project, (project.metrics(), rounds(project))


def rounds(project: Project) -> list[str]:
    path = project.root / "rounds"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize(
    ("seeds", "more"), [("8", ("--workers", "3")), ("8 9", TOGETHER)], ids=["with workers", "seeds together"]
)
def test_a_training_loses_no_finished_round(seeds: str, more: tuple[str, ...], together: tuple[Project, Whole]) -> None:
    """Each round is finished once over both attempts. Metrics and models are those of an undisturbed run."""
    project, (expected, whole) = together
    command = [sys.executable, "telling.py", "run", "run.json", "--seeds", *seeds.split(), "--device", "cpu", *more]
    clear(project)
    if more != TOGETHER:
        project.run(*command)
        expected, whole = project.metrics(), rounds(project)
        clear(project)
    process = project.start(*command, "--log", "log")
    wait_for(lambda: len(rounds(project)) > 4, process)
    os.killpg(process.pid, signal.SIGTERM)  # as a scheduler does: workers get it too
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=10) == 128 + signal.SIGTERM
    done = int(said(project.root / "log")[2])
    assert 0 < done < ROUNDS
    assert len(rounds(project)) == done * len(seeds.split())
    assert project.metrics() == {}
    project.run(*command)
    assert rounds(project) == whole
    assert project.metrics() == expected


def test_signals_to_the_workflow(drawn: Project) -> None:
    """Two trainings run. Ctrl-C prints one line, and no job is reported as failed. SIGTERM to all, as from a batch system,
    makes each training save a checkpoint and log it; none is reported as failed. Both signals end all processes. After
    `kill -9` of snakemake alone its trainings run to their end."""
    drawn.params(lambda p: p["settings"].update(rounds=40))
    checkpoints = drawn.root / "results/checkpoints"
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        began = time.time()
        process = drawn.start("snakemake", "--cores", "2", "runs", FEDREPRO_CHECKPOINT_SECONDS="0", says="said")
        trainings: list[psutil.Process] = []
        wait_for(lambda found=trainings, pid=process.pid: len(trainings_of(pid, found)) == 2, process)
        wait_for(lambda t=began: sum(one.stat().st_mtime > t for one in checkpoints.rglob("seed8.pt")) >= 2, process)
        if how == signal.SIGKILL:
            os.kill(process.pid, how)
            process.wait()
            wait_for(lambda left=trainings: not any(map(runs, left)))
            assert len(drawn.trained()) >= 2
            continue
        os.killpg(process.pid, how)
        code = process.wait(timeout=30)
        assert not psutil.wait_procs(trainings, timeout=10)[1], "trainings outlive the signal"
        text = (drawn.root / "said").read_text()
        if how == signal.SIGTERM:
            assert code != 0
            assert text.count("SIGTERM: no further job starts; the same command goes on with what is missing") == 1
            assert text.count("] stopped by SIGTERM: train ") == 2
            assert not any(word in text for word in ("FAILED", "Traceback", "Complete log", "Error"))
            logs = [log.read_text() for log in (drawn.root / "logs/train").glob("*-8.log")]
            assert len([text for text in logs if SAID.search(text)]) >= 2
            continue
        assert code == 1
        assert text.splitlines()[-1] == "fedrepro: interrupted; the same command goes on from where it stopped"
        assert text.count("interrupted") == 1
        assert not any(word in text for word in ("FAILED", "Traceback", "Complete log", "Error"))


def trainings_of(pid: int, found: list[psutil.Process]) -> list[psutil.Process]:
    """Puts the trainings that are children of a workflow into `found`."""
    found.clear()
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # the process has ended
            found += [child] if {"run", "--log"} <= {*child.cmdline()} else []
    return found


def runs(training: psutil.Process) -> bool:
    """Whether the process has not ended; it may end while it is looked at."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return training.status() != psutil.STATUS_ZOMBIE
    return False


def clear(project: Project) -> None:
    project.run("rm", "-rf", "results/runs", "results/checkpoints", "rounds", "log")


def said(log: Path) -> re.Match[str]:
    """Matches the last line of the training's log, which says that it was stopped."""
    *_, last = log.read_text().splitlines()
    found = SAID.search(last)
    assert found, last
    return found
