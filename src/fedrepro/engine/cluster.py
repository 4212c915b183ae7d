"""Where jobs run: on the cards of this machine, or on other machines. profiles/slurm and the workflow use this module."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from fedrepro.engine import cards
from fedrepro.engine.environment import pick_device
from fedrepro.errors import UserError

_LONGEST_WAIT_S = 20.0


def device_for_jobs(requested: str, elsewhere: bool, trial: bool = False) -> str:
    """Returns the device for a training; `requested`: auto, cpu or cuda, as in params.yaml.

    For jobs on this machine, auto is a GPU if there is one. For jobs on other machines, auto is the CPU: they may have no GPU,
    a job that requests no GPU must not take that of another job, and the seeds of a run should all train on one kind of device.
    `trial`: a dry run, which may plan a run for another machine, so a missing GPU is not an error.

    UserError if a GPU is requested on this machine and there is none.
    """
    if elsewhere:
        return "cuda" if requested == "cuda" else "cpu"
    try:
        return pick_device(requested)
    except UserError:
        if not trial:
            raise
        return requested


def elsewhere(workflow: Any) -> bool:
    """Whether jobs of Snakemake's `workflow` run on other machines, or this process is such a job.

    Known only after Snakemake has built the graph: functions in rules may call it, the Snakefile's top level may not.
    """
    return bool(workflow.remote_exec or workflow.non_local_exec)


def share_out_cards(workflow: Any) -> None:
    """Allows as many GPU jobs at once as this machine has cards, unless the command or a profile says how many: without a limit
    Snakemake starts all at once. `onstart` calls it, just before the jobs start."""
    if not elsewhere(workflow) and "gpu" not in workflow.global_resources:
        scheduler = workflow.scheduler  # exists by now, with total and remaining resources
        scheduler.global_resources["gpu"] = scheduler.resources["gpu"] = max(1, len(cards.visible()))


def left_behind(folder: Path) -> str:
    """Returns a line on Slurm's jobs that an earlier, killed snakemake has submitted from `folder`; "" where there are none.

    Only one snakemake at a time runs in a folder: when it begins, every job from there is an earlier one's.
    """
    if shutil.which("squeue") is None:
        return ""
    command = ["squeue", "--noheader", "--user", str(os.getuid()), "--format", "%i|%Z|%k"]
    with contextlib.suppress(subprocess.SubprocessError):
        process = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_WAIT_S)
        rows = [line.split("|", 2) for line in process.stdout.splitlines() if line.count("|") >= 2]
        jobs = [job for job, workdir, comment in rows if Path(workdir) == folder and comment.startswith(("rule_", "group_"))]
        if jobs:
            count = f"{len(jobs)} job{'s' * (len(jobs) > 1)}"
            return (
                f"Slurm still has {count} of an earlier snakemake in this folder ({' '.join(jobs)}). They go on; a new job of "
                "the same training waits for them and keeps their result. scancel ends them, and what they have done is saved"
            )
    return ""


def status_command() -> str:
    """The command that gives Snakemake the state of its Slurm jobs: "sacct" if accounting is on, otherwise "squeue".

    By default the executor uses sacct if it is installed. Without accounting sacct prints nothing, and the executor waits
    forever.
    """
    if shutil.which("sacct") is None or shutil.which("scontrol") is None:
        return "squeue"
    try:
        process = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=_LONGEST_WAIT_S)
    except subprocess.TimeoutExpired:
        return "squeue"
    kinds = [line.partition("=")[2].strip() for line in process.stdout.splitlines() if line.startswith("AccountingStorageType")]
    return "squeue" if process.returncode or kinds[:1] in ([], ["accounting_storage/none"], ["(null)"]) else "sacct"
