"""What goes on around the jobs of one snakemake process: lock, fork server, announcement, errors."""

import atexit
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fedrepro import arithmetic, forkclient
from fedrepro.engine.receipts import kept
from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.workflow.graph import Workflow
    from fedrepro.workflow.lines import Lines

ERRORS = Path(".snakemake/fedrepro-errors")
LOCK = Path(".snakemake/fedrepro.lock")
BACKUPS = Path(".snakemake/backups")
TRAIN = ("train", "train_seed")
# Rules whose commands import torch.
HEAVY = ("arrays", "init", "plan")
ON_CPU = ("train", "train_seed", "keep", "diagnose")

_held: list[TextIO] = []  # the lock, for as long as the process lives
_lines: list["Lines"] = []  # what shortens Snakemake's output, where something does


def prepare(wanted: str) -> None:
    """First of all. Jobs call `fedrepro`, which lies beside the interpreter whether or not the environment is active.

    `wanted`: the arithmetic that they compute with.
    """
    arithmetic.export(wanted)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.setdefault("FEDREPRO_ERRORS", str((ERRORS / f"{os.getpid()}.txt").absolute()))


def shorten(workflow: Any) -> None:
    """From here on Snakemake prints about a line a step; where a version of it knows no such logger, it prints all."""
    with contextlib.suppress(Exception):
        from snakemake.logging import logger

        from fedrepro.workflow import lines

        made = lines.shorten(logger, workflow.output_settings) if workflow.is_main_process else None
        _lines.extend([made] if made else [])


def begin(flow: "Workflow", workflow: Any) -> None:
    """Once, when Snakemake's `workflow` is about to run jobs."""
    hold_lock()
    shutil.rmtree(
        BACKUPS, ignore_errors=True
    )  # of a workflow that was killed: Snakemake stumbles over them, and files are whole
    with contextlib.suppress(Exception):  # server and announcement are courtesies: no job needs them
        if workflow.touch:
            return
        if _forced(workflow.dag_settings):
            os.environ["FEDREPRO_AGAIN"] = "1"  # before the server starts: its forks take what jobs are given
        names = {job.rule.name for job in workflow.dag.needrun_jobs()}
        if names & {*HEAVY, *(ON_CPU if flow.device == "cpu" else ())}:
            forkclient.start()
        for one in _lines:
            one.expect(sum(job.rule.name in TRAIN for job in workflow.dag.needrun_jobs()))
        announce(flow, workflow)


def _forced(settings: Any) -> bool:
    """Whether Snakemake was told to train although everything is there: --forcerun train, --forceall."""
    named = settings.forcerun if isinstance(settings.forcerun, set | frozenset) else TRAIN
    return bool(settings.forceall or {*TRAIN} & {*named})


def hold_lock() -> None:
    """One workflow a folder. The lock lives as long as this process; a second one ends with one line."""
    LOCK.parent.mkdir(exist_ok=True)
    lock = LOCK.open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        print(
            f"fedrepro: error: process {lock.read().strip()} already runs snakemake in this folder; wait for it",
            file=sys.stderr,
        )
        os._exit(UserError.exit_code)
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    _held.append(lock)


def announce(flow: "Workflow", workflow: Any) -> subprocess.Popen | None:
    """One line on what Snakemake is about to train and how long that takes: jobs start while the returned child measures it.

    Not measured on a GPU, where a training may need all of its memory.
    """
    seeds: dict[str, list[int]] = {}
    for job in (job for job in workflow.dag.needrun_jobs() if job.rule.name in TRAIN):
        own = getattr(job.wildcards, "seed", None)
        seeds.setdefault(job.wildcards.run_id, []).extend(flow.seeds if own is None else [int(own)])
    wanted = [[flow.runs[run_id], own] for run_id, own in seeds.items()]
    wanted = [[run, own] for run, own in wanted if not all(kept(Path(), run["run_id"], seed) for seed in own)]
    if not wanted:
        return None
    if flow.device != "cpu":
        line = f"training {len(wanted)} runs; how long it takes says `fedrepro run <paper>/<table> --dry-run`"
        print(f"fedrepro: {line}", file=sys.stderr, flush=True)
        return None
    with tempfile.TemporaryFile("w+") as content:
        json.dump(wanted, content)
        content.seek(0)
        command = [Path(sys.executable).with_name("fedrepro"), "announce"]
        command += ["--cores", str(workflow.cores)] if workflow.cores else []  # none are given for a cluster
        child = subprocess.Popen(command, stdin=content, stdout=subprocess.DEVNULL)
    atexit.register(child.kill)  # what is over needs no forecast
    return child


def forget_unfinished(workflow: Any) -> None:
    """Has the next call repeat what this one, which failed, did not get done below reports/.

    Snakemake puts back what the failed jobs were to update, but dates it today and notes down their inputs as dealt with.
    """
    for job in workflow.dag.needrun_jobs():
        there = [path for path in map(Path, job.output) if path.parts[0] == "reports" and path.exists()]
        if there:
            workflow.persistence.cleanup(job)
        for path in there:
            os.utime(path, (1, 1))


def repeat_errors() -> None:
    """Ends a failed workflow with what its jobs said was wrong, each line once, after Snakemake's own last words."""
    path = Path(os.environ["FEDREPRO_ERRORS"])
    with contextlib.suppress(OSError):
        lines = dict.fromkeys(path.read_text().splitlines())
        path.unlink()
        atexit.register(print, *lines, sep="\n", file=sys.stderr, flush=True)


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Ends the process with one line and exit code 2 on a user's mistake, past Snakemake's own handling of exceptions."""
    try:
        yield
    except UserError as error:
        print("fedrepro: error: " + " ".join(str(error).split()), file=sys.stderr, flush=True)
        os._exit(UserError.exit_code)
