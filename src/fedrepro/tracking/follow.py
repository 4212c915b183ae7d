"""Keeps MLflow up to date while trainings run."""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedrepro import console
from fedrepro.engine.live import FOLDER as CHECKPOINTS
from fedrepro.engine.live import is_running
from fedrepro.engine.measurements import DIAGNOSTICS
from fedrepro.engine.receipts import RUNS
from fedrepro.errors import UserError
from fedrepro.store import seeds_in
from fedrepro.tracking.planned_runs import plan_files, training
from fedrepro.tracking.sync import sync

PAUSE = 20  # times as long as a sync took: it then takes at most a twentieth of a core


def follow(plans: Sequence[Path], root: Path, every_s: float, beside: int | None = None) -> None:
    """Syncs these plans, or all plans on disk, every `every_s` seconds, and prints what changed. After a slow sync it waits
    longer, since trainings need the processor.

    `beside`: a process; the loop ends when that process ends. An error is printed, and the next sync tries again: the database
    may be busy, or a server may not answer. While nothing trains and no file has changed, it does not sync.
    """
    last_message, synced_files = "", None
    while beside is None or is_running(beside):
        began, current_files = time.monotonic(), _files(plans, root)
        if current_files is None or current_files != synced_files:
            try:
                report = sync(plans, root)
                message, changed = str(report), bool(report.written or report.retagged or report.retired)
                without_seconds = str(replace(report, seconds=0.0))
                synced_files = current_files if not report.problems else None
            except Exception as error:
                message, changed = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}", False
                without_seconds, synced_files = message, None
            if changed or without_seconds != last_message:
                console.say(message)
            last_message = without_seconds
        now = time.monotonic()
        until = now + max(every_s, PAUSE * (now - began))
        while time.monotonic() < until and (beside is None or is_running(beside)):
            time.sleep(min(1.0, every_s))


def _files(plans: Sequence[Path], root: Path) -> dict[Path, int] | None:
    """Plans, receipts, folders of evidence and files of trainings that have ended, each with the time of its last change; None
    while something trains: a training that dies changes no file."""
    if any(training(root, folder.name, seed) for folder in root.glob(f"{CHECKPOINTS}/*/") for seed in seeds_in(folder)):
        return None
    patterns = (
        f"{RUNS}/*/seed*.json",
        "reports/*/*/evidence/*/",
        f"{CHECKPOINTS}/*/seed*.json",
        f"{DIAGNOSTICS}/*/*/seed*.parquet",
    )
    times: dict[Path, int] = {}
    for path in (*(plans or plan_files(root)), *(path for pattern in patterns for path in root.glob(pattern))):
        with contextlib.suppress(FileNotFoundError):  # it was replaced just now
            times[path] = path.stat().st_mtime_ns
    return times
