"""What becomes of Snakemake's log records: a line a step, a failure with the end of its log."""

import io
import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.logging import ColorizingTextHandler, LogEvent

from fedrepro.workflow import lines

QUIET = {
    "quiet": set(),
    "show_failed_logs": True,
    "verbose": False,
    "printshellcmds": False,
    "debug_dag": False,
    "dryrun": False,
}


class Terminal:
    """A logger with Snakemake's stream handler, shortened."""

    def __init__(self, **settings: Any) -> None:
        self.stream = io.StringIO()
        handler = ColorizingTextHandler(nocolor=True, stream=self.stream)
        handler.name = lines.HANDLER
        self.logger = logging.Logger("test")
        self.logger.addHandler(handler)
        self.lines = lines.shorten(self.logger, SimpleNamespace(**QUIET | settings))

    def says(self, text: str | None, event: LogEvent | None = None, **fields: Any) -> list[str]:
        """The lines that a record makes."""
        self.stream.truncate(0)
        self.stream.seek(0)
        self.logger.info(text, extra={"event": event, **fields})
        return self.stream.getvalue().splitlines()

    def runs(self, jobid: int, rule: str, title: str | None, done: int) -> list[str]:
        """All that Snakemake says of one job, of 9."""
        found = self.says("Select jobs to execute...")
        found += self.says("Execute 1 jobs...", LogEvent.JOB_STARTED, jobs=[jobid])
        found += self.says(None, LogEvent.JOB_INFO, jobid=jobid, rule_name=rule, rule_msg=title)
        found += self.says(f"Finished jobid: {jobid}", LogEvent.JOB_FINISHED, job_id=jobid)
        return found + self.says(None, LogEvent.PROGRESS, done=done, total=9)


def test_a_line_a_step() -> None:
    """With its place among all steps; none for the quick ones, but for the last step of all. Other words pass."""
    terminal = Terminal()
    (line,) = terminal.runs(3, "report", "report of fedlaw table3", 2)
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] 2 of 9 steps: report of fedlaw table3", line)
    assert terminal.runs(4, "choice", "choice of x", 3) == []
    assert terminal.runs(5, "choice", "choice of y", 9)[0].endswith("9 of 9 steps: choice of y")
    assert terminal.runs(6, "summary", None, 4)[0].endswith("4 of 9 steps: summary")
    assert terminal.says("Building DAG of jobs...") == terminal.says("Complete log(s): /x") == []
    assert terminal.says("Nothing to be done") == ["Nothing to be done"]


def test_trainings_tell_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """In proportion to those that are done, from the second on."""
    terminal, now = Terminal(), [100.0]
    monkeypatch.setattr(lines.time, "monotonic", lambda: now[0])
    assert terminal.lines
    terminal.lines.expect(4)
    now[0] = 110.0
    assert terminal.runs(1, "train", "train a", 1)[0].endswith("1 of 9 steps: train a")
    now[0] = 120.0
    assert terminal.runs(2, "train_seed", "train b", 2)[0].endswith("train b; 2 of 4 trainings, about 20.0 s left")
    assert terminal.runs(3, "report", "report", 3)[0].endswith("steps: report")
    terminal.runs(4, "train", "train c", 4)
    assert terminal.runs(5, "train", "train d", 5)[0].endswith("5 of 9 steps: train d")


def test_a_failure_shows_its_log_and_command(tmp_path: Path) -> None:
    """The end of a long log, once; where all of it lies follows; names of inputs do not. An error of another kind stays."""
    log = tmp_path / "train.log"
    log.write_text("".join(f"line {n}\n" for n in range(100)))
    terminal = Terminal()
    terminal.says(None, LogEvent.JOB_INFO, jobid=1, rule_name="train", rule_msg="train x")
    called = 'CalledProcessError in file "rules/train.smk", line 28:\nCommand ...'
    assert terminal.says(called, LogEvent.ERROR, exception="RuleException") == []
    said = {"rule_name": "train", "input": ["in"] * 96, "log": [str(log)], "shellcmd": "fedrepro run x"}
    found = terminal.says("Error in rule train", LogEvent.JOB_ERROR, jobid=1, **said)
    assert found[0].endswith("] FAILED: train x")
    assert found[1] == f"    {log}, its last 30 of 100 lines"
    assert found[2:-1] == [f"    | line {n}" for n in range(70, 100)]
    assert found[-1] == "    command: fedrepro run x"
    assert terminal.says("Complete log(s): /x") == ["Complete log(s): /x"]
    assert terminal.says("OSError: disk", LogEvent.ERROR, exception="OSError") == ["OSError: disk"]
    log.unlink()
    assert terminal.says("Error", LogEvent.JOB_ERROR, jobid=1, **said)[1] == f"    {log}: nothing"


def test_who_asks_for_more_gets_it() -> None:
    """And a Snakemake that tells of its jobs otherwise is left to say it all."""
    for key in ("verbose", "printshellcmds", "debug_dag", "dryrun"):
        assert Terminal(**{key: True}).lines is None
    assert Terminal().says("Finished", LogEvent.JOB_FINISHED, job_id=7)
    assert lines.shorten(logging.Logger("none"), SimpleNamespace(**QUIET)) is None
