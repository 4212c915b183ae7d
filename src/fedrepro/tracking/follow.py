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

    `beside`: a process that this ends with. A server that does not answer is asked again the next time.
    """
    before = ""
    while beside is None or is_running(beside):
        try:
            report = sync(plans or plan_files(root), root)
            said, changed = str(report), bool(report.written or report.retagged or report.retired)
        except UserError as error:
            said, changed = str(error), False
        plain = said.rpartition(" (")[0] or said  # without the seconds
        if changed or plain != before:
            console.say(said)
        before = plain
        until = time.monotonic() + every_s
        while time.monotonic() < until and (beside is None or is_running(beside)):
            time.sleep(min(1.0, every_s))
