"""What goes on around the jobs of one snakemake process: lock, fork server, announcement, errors."""

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fedrepro import arithmetic, forkclient
from fedrepro.errors import UserError
from fedrepro.files import lock, read_json
from fedrepro.workflow import cluster
from fedrepro.workflow.jobs import CONFIGS

if TYPE_CHECKING:
    from fedrepro.workflow.graph import Workflow

ERRORS = Path(".snakemake/fedrepro-errors")
LOCK = Path(".snakemake/fedrepro.lock")
HEAVY = ("arrays", "draw")  # rules whose commands import torch
ON_CPU = ("train", "diagnose")

_held = contextlib.ExitStack()  # the lock, for as long as the process lives


def prepare(wanted: str, remote: bool = False) -> None:
    """First of all. Jobs call `fedrepro`, which lies beside the interpreter whether or not the environment is active.

    `wanted`: the arithmetic that they compute with. `remote`: this process is itself a job on another machine.
    """
    if remote:  # its commands are its own, even where the machine is the same and the server could be reached
        os.environ.pop(forkclient.VARIABLE, None)
    arithmetic.export(wanted)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.setdefault("FEDREPRO_ERRORS", str((ERRORS / f"{os.getpid()}.txt").absolute()))


def begin(flow: "Workflow", workflow: Any) -> None:
    """Once, when Snakemake's `workflow` is about to run jobs."""
    with one_line():
        _held.enter_context(lock(LOCK, busy=_refuse))
    with contextlib.suppress(Exception):  # server and announcement are courtesies: no job needs them
        if workflow.touch:
            return
        if _forced(workflow.dag_settings):
            os.environ["FEDREPRO_AGAIN"] = "1"  # before the server starts: its forks take what jobs are given
        jobs = list(workflow.dag.needrun_jobs())
        cluster.share_out_cards(workflow)
        if flow.elsewhere and (line := cluster.left_behind(Path.cwd())):
            print(f"fedrepro: {line}", file=sys.stderr, flush=True)
        if {job.rule.name for job in jobs} & {*HEAVY, *(ON_CPU if flow.device == "cpu" and not flow.elsewhere else ())}:
            forkclient.start()
        trainings = [job for job in jobs if job.rule.name == "train"]
        announce(flow, workflow.cores, trainings)


def _forced(settings: Any) -> bool:
    """Whether Snakemake was told to train although everything is there: --forcerun train, --forceall."""
    named = settings.forcerun if isinstance(settings.forcerun, set | frozenset) else ["train"]
    return bool(settings.forceall or "train" in named)


def _refuse(holder: str) -> NoReturn:
    """One workflow a folder."""
    raise UserError(f"process {holder} already runs snakemake in this folder; wait for it")


def announce(flow: "Workflow", cores: int | None, trainings: list[Any]) -> subprocess.Popen | None:
    """One line on what Snakemake is about to train and how long that takes: jobs start while the returned child measures it.

    Not measured on a GPU, where a training may need all of its memory, nor for other machines.
    """
    if not trainings:
        return None
    if flow.elsewhere:
        seconds = [flow.seconds(job.wildcards.run_id, job.wildcards.seeds) for job in trainings]
        unknown = f", and {seconds.count(None)} of unknown length" if None in seconds else ""
        total = sum(filter(None, seconds)) / 3600
        print(
            f"fedrepro: {len(trainings)} trainings on other machines, {total:.1f} hours by published runs{unknown}",
            file=sys.stderr,
        )
        return None
    if flow.device != "cpu":
        line = f"training {len(trainings)} runs; how long it takes says `fedrepro run <paper>/<table> --dry-run`"
        print(f"fedrepro: {line}", file=sys.stderr, flush=True)
        return None
    seeds: dict[str, list[int]] = {}
    for job in trainings:
        seeds.setdefault(job.wildcards.run_id, []).extend(map(int, job.wildcards.seeds.split("-")))
    with tempfile.TemporaryFile("w+") as content:
        json.dump([[read_json(CONFIGS / f"{run_id}.json"), own] for run_id, own in seeds.items()], content)
        content.seek(0)
        command = [Path(sys.executable).with_name("fedrepro"), "announce"]
        command += ["--cores", str(cores)] if cores else []  # none are given for a cluster
        child = subprocess.Popen(command, stdin=content, stdout=subprocess.DEVNULL)
    atexit.register(child.kill)  # what is over needs no forecast
    return child


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
