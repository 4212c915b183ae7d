"""Keeps MLflow up to date while trainings run."""

import time
from collections.abc import Sequence
from pathlib import Path

from fedrepro import console
from fedrepro.engine.live import is_running
from fedrepro.errors import UserError
from fedrepro.tracking.sync import sync
from fedrepro.tracking.wanted import plan_files


def follow(plans: Sequence[Path], root: Path, every_s: float, beside: int | None = None) -> None:
    """Syncs every `every_s` seconds, and says what changed: these plans, or all that there are by then.

    `beside`: a process that this ends with. What goes wrong is said, and tried again the next time: the database may be busy,
    a server may not answer.
    """
    before = ""
    while beside is None or is_running(beside):
        try:
            report = sync(plans or plan_files(root), root)
            said, changed = str(report), bool(report.written or report.retagged or report.retired)
        except Exception as error:
            said, changed = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}", False
        plain = said.rpartition(" (")[0] or said  # without the seconds
        if changed or plain != before:
            console.say(said)
        before = plain
        until = time.monotonic() + every_s
        while time.monotonic() < until and (beside is None or is_running(beside)):
            time.sleep(min(1.0, every_s))
