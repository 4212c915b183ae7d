"""What Snakemake prints while it runs: a line for each finished step, and a failed job's log. Its log file has all of it.

Snakemake's `quiet` knows rules (and then hides failures) and progress; either leaves three to five lines a job. `--verbose`,
`--printshellcmds` and dry runs are left as they are.
"""

import logging
import time
from pathlib import Path
from typing import Any

from snakemake.logging import DefaultFormatter, LogEvent, get_event

HANDLER = "DefaultStreamHandler"  # what Snakemake calls its own; with a logger plugin there is none
# Quick and many: they count as steps, and a line for each would hide the others.
SILENT = ("choice",)
DROPPED_EVENTS = (LogEvent.JOB_STARTED, LogEvent.JOB_FINISHED, LogEvent.RESOURCES_INFO, LogEvent.RUN_INFO)
WHOLE_LOG = "Complete log(s): "  # where to look after a failure
DROPPED = (
    "Building DAG of jobs",
    "Using shell: ",
    "Select jobs to execute",
    "Rules claiming more threads",
    "Touching output file",
)
DROPPED += (WHOLE_LOG,)
NO_BACKUP = "no backup found."  # said of each output of a failed job that was not there before
SHOWN = 30  # lines of a failed job's log


class Lines(DefaultFormatter):
    """Filter and formatter of Snakemake's stream handler: only it sees both a job's start and the progress after its end."""

    def __init__(self, settings: Any) -> None:
        super().__init__(settings.quiet, settings.show_failed_logs)
        self.titles: dict[int, tuple[str, str]] = {}  # job -> rule, what it does
        self.finished: tuple[str, str] = ("", "")
        self.failed = False
        self.trainings, self.trained, self.began = 0, 0, 0.0

    def expect(self, trainings: int) -> None:
        """From now on so many trainings are run: what they say of the time left."""
        self.trainings, self.trained, self.began = trainings, 0, time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record has a line. Never an error: it would end the workflow."""
        try:
            return self._has_a_line(record)
        except Exception:  # a version of Snakemake that tells of its jobs in another way
            return True

    def _has_a_line(self, record: Any) -> bool:
        event, text = get_event(record), str(record.msg)
        if event is None:
            dropped = text.startswith(DROPPED) or text.endswith(NO_BACKUP)
            return not dropped or (self.failed and text.startswith(WHOLE_LOG))
        if event == LogEvent.JOB_INFO:
            self.titles[record.jobid] = record.rule_name, record.rule_msg or record.rule_name
            return False
        if event == LogEvent.PROGRESS:
            return self.finished[0] not in SILENT or record.done == record.total
        if event == LogEvent.JOB_FINISHED:
            self.finished = self.titles[record.job_id]
        self.failed |= event == LogEvent.JOB_ERROR
        if event == LogEvent.ERROR:  # comes before the job's own error, which shows the command
            return "CalledProcessError in file" not in text
        return event not in DROPPED_EVENTS

    def format_progress(self, msg: dict[str, Any]) -> str:
        """`[12:04:31] 5 of 9 steps: train digits-mlp-...; 2 of 4 trainings, about 12.0 s left`."""
        rule, title = self.finished
        line = f"[{time.strftime('%H:%M:%S')}] {msg['done']} of {msg['total']} steps: {title}"
        return line + (self._time_left() if rule.startswith("train") else "")

    def _time_left(self) -> str:
        from fedrepro.console import duration

        self.trained += 1
        if not 1 < self.trained < self.trainings:
            return ""
        left = (time.monotonic() - self.began) / self.trained * (self.trainings - self.trained)
        return f"; {self.trained} of {self.trainings} trainings, about {duration(left)} left"

    def format_job_error(self, msg: dict[str, Any]) -> str:
        """What failed, the end of its log, and the command."""
        _, title = self.titles.get(msg["jobid"], ("", msg["rule_name"]))
        found = [f"[{time.strftime('%H:%M:%S')}] FAILED: {title}"]
        for path in msg["log"]:
            lines = _content(path)
            before = f", its last {SHOWN} of {len(lines)} lines" if len(lines) > SHOWN else "" if lines else ": nothing"
            found += [f"    {path}{before}", *(f"    | {line}" for line in lines[-SHOWN:])]
        return "\n".join([*found, *([f"    command: {msg['shellcmd']}"] if msg["shellcmd"] else [])])


def _content(path: str) -> list[str]:
    try:
        return Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []


def shorten(logger: logging.Logger, settings: Any) -> Lines | None:
    """Puts `Lines` into the stream handler of Snakemake's `logger`; None where the command line asks for more."""
    if settings.verbose or settings.printshellcmds or settings.debug_dag or settings.dryrun:
        return None
    for handler in logger.handlers:
        if handler.name == HANDLER:
            lines = Lines(settings)
            handler.addFilter(lines)
            handler.setFormatter(lines)
            return lines
    return None
