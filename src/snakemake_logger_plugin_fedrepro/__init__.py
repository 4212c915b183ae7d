"""The output of the workflow: a line for each finished step, and the end of a failed job's log.

A logger plugin of Snakemake, found by its name and chosen by `logger: fedrepro` in profiles/default. Snakemake's own `quiet`
hides rules (and then failures) or progress; either leaves three to five lines per job. Its log file has all lines. Dry runs,
`--quiet`, `--verbose`, `--printshellcmds` and `--debug-dag` are left to Snakemake's own output; so are jobs on other machines,
for which Snakemake calls no plugin.
"""

import difflib
import os
import re
import signal
import sys
import threading
import time
from logging import ERROR, LogRecord
from pathlib import Path
from typing import Any, TextIO

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from fedrepro.choices import PUBLISHED
from fedrepro.console import duration

# Rules with many quick jobs: they count as steps but print no line, which would hide the other lines.
SILENT = ("choice",)
TRAINING = "train"  # the rule whose jobs take the time
WHOLE_LOG = "Complete log(s): "  # where to look after a failure
DROPPED = (
    "Building DAG of jobs",
    "Using shell: ",
    "Select jobs to execute",
    "Rules claiming more threads",
    "Touching output file",
    "Group jobs: inactive",
)
NO_BACKUP = "no backup found."  # printed for each new output of a failed job
NO_RULE = "MissingRuleException"
SHOWN = 30  # lines of a failed job's log
INTERRUPTED = "fedrepro: interrupted; the same command goes on from where it stopped"
TERMINATED = "Will exit after finishing currently running jobs"  # Snakemake repeats it for each job
STOPPED = "fedrepro: SIGTERM: no further job starts; the same command goes on with what is missing"
OF_JOB = "stopped by SIGTERM"  # in the last line of a training's log
ENDS = ("Shutting down", "WorkflowError:\nAt least one job did not complete")  # Snakemake's words after SIGTERM


class LogHandler(LogHandlerBase):
    """Called in a thread, record by record, in their order."""

    def __post_init__(self) -> None:
        asked = self.common_settings
        usual = {one.name.lower() for one in asked.quiet or ()} <= {"reason", "host"}
        self.speaks = usual and not (asked.dryrun or asked.verbose or asked.printshellcmds or asked.debug_dag)
        self.stream: TextIO = sys.stdout if asked.stdout else sys.stderr
        self.colour = not asked.nocolor and self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.titles: dict[int, tuple[str, str]] = {}  # job -> rule, what it does
        self.finished: list[tuple[str, str]] = []  # since the last line; several if one cluster job runs them
        self.failed = self.interrupted = self.stopped = False
        self.trainings = self.trained = 0
        self.began: float | None = None  # when the first training started
        if self.speaks and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self.interrupt)

    @property
    def writes_to_stream(self) -> bool:
        """Whether this plugin prints; otherwise Snakemake adds its own handler."""
        return self.speaks

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        return True

    @property
    def has_formatter(self) -> bool:
        return True

    @property
    def needs_rulegraph(self) -> bool:
        return False

    def interrupt(self, number: int, frame: Any) -> None:
        """Ctrl-C also ends the jobs. Their failures are not printed."""
        if not self.interrupted:
            self.interrupted = True
            self._write(INTERRUPTED)
        signal.default_int_handler(number, frame)

    def emit(self, record: LogRecord) -> None:
        """Prints the line of a record. Raises no error, since that would end the workflow."""
        try:
            line = (self.line(record) if self.speaks else _hint(record)) if not self.interrupted else None
        except Exception:  # another version of Snakemake, with other records
            line = str(record.msg)
        if line:
            self._write(f"\033[31m{line}\033[0m" if self.colour and record.levelno >= ERROR else line)

    def line(self, record: Any) -> str | None:
        """The line to print for a record; None to print nothing."""
        event, text = getattr(record, "event", None), str(record.msg or "")
        if text.startswith(TERMINATED):
            first, self.stopped = not self.stopped, True
            return STOPPED if first else None
        ends = self.stopped and text.startswith(ENDS)
        if ends or hasattr(record, "quietness"):  # `quiet` in the profile hides such records
            return None
        if event is None:
            dropped = text.startswith(DROPPED) or text.endswith(NO_BACKUP) or text == "None"
            return None if dropped or (text.startswith(WHOLE_LOG) and not self.failed) else text
        if event == LogEvent.ERROR:  # comes before the job's own error, which shows the command
            return None if "CalledProcessError in file" in text else no_report(text) or text
        said = {
            LogEvent.RUN_INFO: self.begin,
            LogEvent.JOB_INFO: self.start,
            LogEvent.JOB_FINISHED: self.finish,
            LogEvent.PROGRESS: self.progress,
            LogEvent.JOB_ERROR: self.job_error,
            LogEvent.GROUP_ERROR: self.group_error,
        }
        return said[event](record) if event in said else None

    def begin(self, record: Any) -> None:
        """Called once, with the number of jobs of each rule; starts the count of trainings."""
        self.trainings, self.trained, self.began = record.stats.get(TRAINING, 0), 0, None

    def start(self, record: Any) -> None:
        """Stores the rule and the title of a job that starts, and the time of the first training."""
        self.titles[record.jobid] = record.rule_name, record.rule_msg or record.rule_name
        if record.rule_name == TRAINING and self.began is None:
            self.began = time.monotonic()

    def finish(self, record: Any) -> None:
        """Stores a finished job. `progress`, which Snakemake reports next, prints its line."""
        self.finished.append(self.titles[record.job_id])
        self.trained += self.finished[-1][0] == TRAINING

    def progress(self, record: Any) -> str | None:
        """`[12:04:31] 5 of 9 steps: train digits-mlp-...; 2 of 4 runs, one in 10.0 s, about 20.0 s left`."""
        told = [one for one in self.finished if one[0] not in SILENT or record.done == record.total]
        self.finished = []
        if not told:
            return None
        title = told[-1][1] + (f", and {len(told) - 1} others" if len(told) > 1 else "")
        left = self.time_left() if any(rule == TRAINING for rule, _ in told) else ""
        return f"{_now()} {record.done} of {record.total} steps: {title}{left}"

    def time_left(self) -> str:
        """The trainings left times the mean time per finished training, from the second one on. Parallel trainings shorten that
        mean. Downloads and draws before the first training do not count."""
        if self.began is None or not 1 < self.trained < self.trainings:
            return ""
        each = (time.monotonic() - self.began) / self.trained
        left = duration(each * (self.trainings - self.trained))
        return f"; {self.trained} of {self.trainings} runs, one in {duration(each)}, about {left} left"

    def job_error(self, record: Any) -> str:
        """What failed, the end of its log, and the command; of a job that SIGTERM stopped, its title. Its log may be empty."""
        _, title = self.titles.get(record.jobid, ("", record.rule_name))
        last = [text for path in record.log for text in _lines(path)[-1:]]
        if any(OF_JOB in text for text in last) or (self.stopped and not last):
            return f"{_now()} stopped by SIGTERM: {title}"
        self.failed = True
        command = [f"    command: {record.shellcmd}"] if record.shellcmd else []
        return "\n".join([f"{_now()} FAILED: {title}", *_ends(record.log), *command])

    def group_error(self, record: Any) -> str:
        """The log of a cluster job that ran several jobs. The logs of these jobs follow one by one."""
        return "\n".join([f"{_now()} FAILED: {len(record.job_error_info)} jobs that ran as one", *_ends(record.aux_logs)])

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text + "\n")
            self.stream.flush()
        except (OSError, ValueError):  # losing the terminal must not stop the workflow
            pass


def _hint(record: LogRecord) -> str | None:
    """The line printed in addition to Snakemake's own handler, for example in a dry run."""
    return no_report(str(record.msg or "")) if getattr(record, "event", None) == LogEvent.ERROR else None


def no_report(text: str) -> str | None:
    """What to ask for instead, where no rule makes the report that was asked for; None for other errors."""
    target = re.search(rf"^{NO_RULE}.*? to produce (reports/\S+|(?:[a-z0-9_]+/)*(?:table|figure)\d\S*)", text, re.DOTALL)
    if not target:
        return None
    from fedrepro.config.places import is_figure, report_folder
    from fedrepro.config.project import load_project

    tables = [name.split("/") for name in load_project().table_names()]
    places = [(report_folder(paper, scale), table) for paper, table in tables for scale in (None, *PUBLISHED)]
    known = [f"{folder}/{table}.{'svg' if is_figure(table) else 'md'}" for folder, table in places]
    papers = dict.fromkeys(paper for paper, _ in tables)
    known += [f"reports/{scale}{paper}/index.html" for paper in papers for scale in ("", *(f"{s}/" for s in PUBLISHED))]
    short = {f"{paper}/{table}": f"{report_folder(paper, None)}/{table}" for paper, table in tables}  # as params.yaml has it
    asked = target[1] if target[1].startswith("reports/") else short.get(target[1], f"reports/{target[1]}") + ".md"
    page = f"{asked}/index.html"
    near = [page] if page in known else difflib.get_close_matches(asked, known, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return (
        f"fedrepro: error: there is no {target[1]}; {meant}Tables end in .md, .html, .json, .csv or .tex, figures in .svg, "
        ".csv or .json, a paper's page is index.html; `fedrepro list tables` names them"
    )


def _now() -> str:
    return time.strftime("[%H:%M:%S]")


def _lines(path: str) -> list[str]:
    """The lines of a log; none if it cannot be read."""
    try:
        return Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []


def _ends(paths: list[str]) -> list[str]:
    """The last lines of logs, each below its path."""
    found = []
    for path in paths:
        lines = _lines(path)
        before = f", its last {SHOWN} of {len(lines)} lines" if len(lines) > SHOWN else "" if lines else ": nothing"
        found += [f"    {path}{before}", *(f"    | {line}" for line in lines[-SHOWN:])]
    return found
