"""The lines that the plugin makes of Snakemake's log records: one line for each step, and a failure with the end of its log."""

import io
import logging
import re
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

import snakemake_logger_plugin_fedrepro as plugin

USUAL = {
    "quiet": {Quietness.REASON, Quietness.HOST},
    "nocolor": True,
    "stdout": False,
    "verbose": False,
    "printshellcmds": False,
    "debug_dag": False,
    "dryrun": False,
}


class Terminal:
    """A logger with the plugin's handler."""

    def __init__(self, **settings: Any) -> None:
        self.handler = plugin.LogHandler(SimpleNamespace(**USUAL | settings), None)  # type: ignore[arg-type]
        self.stream = self.handler.stream = io.StringIO()
        self.logger = logging.Logger("test")
        self.logger.addHandler(self.handler)

    def says(self, text: str | None, event: LogEvent | None = None, **fields: Any) -> list[str]:
        """The lines that a record prints."""
        self.stream.truncate(0)
        self.stream.seek(0)
        self.logger.info(text, extra={"event": event, **fields})
        return self.stream.getvalue().splitlines()

    def runs(self, jobid: int, rule: str, title: str | None, done: int) -> list[str]:
        """Everything that Snakemake logs for one of 9 jobs."""
        found = self.says("Select jobs to execute...")
        found += self.says("Execute 1 jobs...", LogEvent.JOB_STARTED, jobs=[jobid])
        found += self.says(None, LogEvent.JOB_INFO, jobid=jobid, rule_name=rule, rule_msg=title)
        found += self.says(f"Finished jobid: {jobid}", LogEvent.JOB_FINISHED, job_id=jobid)
        return found + self.says(None, LogEvent.PROGRESS, done=done, total=9)


@pytest.fixture(autouse=True)
def _handler_of_signals() -> Any:
    """Restores the handler of Ctrl-C that the plugin replaces."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_snakemake_finds_it() -> None:
    """Snakemake finds the plugin by name, wherever the sources are."""
    assert LoggerPluginRegistry().is_installed("fedrepro")


def test_a_line_a_step() -> None:
    """A line has the step's place among all steps. Quick steps have none, except the last of all. Other messages pass."""
    terminal = Terminal()
    (line,) = terminal.runs(3, "report", "report of fedlaw table3", 2)
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] 2 of 9 steps: report of fedlaw table3", line)
    assert terminal.runs(4, "choice", "choice of x", 3) == []
    assert terminal.runs(5, "choice", "choice of y", 9)[0].endswith("9 of 9 steps: choice of y")
    assert terminal.runs(6, "summary", None, 4)[0].endswith("4 of 9 steps: summary")
    assert terminal.says("Building DAG of jobs...") == terminal.says("Complete log(s): /x") == []
    assert terminal.says("Nothing to be done") == ["Nothing to be done"]


def test_trainings_tell_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second training on, the line estimates the time left from the time since the first one started and the number
    of finished trainings."""
    terminal, now = Terminal(), [100.0]
    monkeypatch.setattr(plugin.time, "monotonic", lambda: now[0])
    now[0] = 100.0
    assert terminal.says("Job stats:", LogEvent.RUN_INFO, stats={"train": 4, "draw": 5, "total": 9}) == []
    terminal.runs(6, "draw", "draw x", 1)
    now[0] = 400.0
    terminal.says(None, LogEvent.JOB_INFO, jobid=1, rule_name="train", rule_msg="train a")
    now[0] = 410.0
    assert terminal.runs(1, "train", "train a", 1)[0].endswith("1 of 9 steps: train a")
    now[0] = 420.0
    assert terminal.runs(2, "train", "train b", 2)[0].endswith("train b; 2 of 4 runs, one in 10.0 s, about 20.0 s left")
    assert terminal.runs(3, "report", "report", 3)[0].endswith("steps: report")
    terminal.runs(4, "train", "train c", 4)
    assert terminal.runs(5, "train", "train d", 5)[0].endswith("5 of 9 steps: train d")


def test_a_failure_shows_its_log_and_command(tmp_path: Path) -> None:
    """The end of a long log is shown once, then the path of the whole log. Names of inputs are not shown. An error of another
    kind is printed unchanged."""
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


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("reports/tabel3.md", "reports/table3.md"),
        ("reports/table3.pdf", "reports/table3.md"),
        ("table3", "reports/table3.md"),
        ("reports/figure15.png", "reports/figure15.svg"),
        ("reports/ful/fedgh/table2.md", "reports/full/fedgh/table2.md"),
        ("fedlaw/table3", "reports/table3.md"),  # as params.yaml has it
        ("elastic/figure2", "reports/elastic/figure2.svg"),
        ("reports/fedgh/index", "reports/fedgh/index.html"),
        ("reports/full/fedgh", "reports/full/fedgh/index.html"),
    ],
)
def test_a_report_that_no_rule_makes(asked: str, near: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line offers the nearest report, also in a dry run beside Snakemake's own words. A target that is no report keeps
    Snakemake's words."""
    monkeypatch.chdir(Path(__file__).parents[2])
    said = "MissingRuleException:\nNo rule to produce {} (if you use input functions make sure ...)."
    (line,) = Terminal().says(said.format(asked), LogEvent.ERROR, exception="MissingRuleException")
    assert line.startswith(f"fedrepro: error: there is no {asked}; did you mean {near}? Tables end in .md, ")
    other = said.format("nothing.txt")
    assert Terminal().says(other, LogEvent.ERROR, exception="MissingRuleException") == other.splitlines()
    dry = Terminal(dryrun=True)
    assert dry.says(said.format(asked), LogEvent.ERROR, exception="MissingRuleException") == [line]
    assert dry.says(other, LogEvent.ERROR) == dry.says("Nothing to be done", LogEvent.RUN_INFO) == []


def test_jobs_that_share_one_of_a_cluster_end_together() -> None:
    """They print one line, and each counts as a finished training. A failure shows the cluster's log first."""
    terminal = Terminal()
    terminal.says("Job stats:", LogEvent.RUN_INFO, stats={"train": 8})
    for jobid in range(3):
        terminal.says(None, LogEvent.JOB_INFO, jobid=jobid, rule_name="train", rule_msg=f"train {jobid}")
    for jobid in range(3):
        assert terminal.says("Finished", LogEvent.JOB_FINISHED, job_id=jobid) == []
    (line,) = terminal.says(None, LogEvent.PROGRESS, done=3, total=9)
    assert "3 of 9 steps: train 2, and 2 others; 3 of 8 runs, one in " in line
    found = terminal.says("Error in group", LogEvent.GROUP_ERROR, aux_logs=["gone.log"], job_error_info=[{}, {}])
    assert found[0].endswith("FAILED: 2 jobs that ran as one")
    assert found[1:] == ["    gone.log: nothing"]


def test_an_interruption_is_one_line() -> None:
    """This holds whatever Snakemake logs of its jobs, and however often Ctrl-C is pressed."""
    terminal = Terminal()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert terminal.stream.getvalue() == f"{plugin.INTERRUPTED}\n"
    assert terminal.says("Error", LogEvent.JOB_ERROR, jobid=1, rule_name="train", log=[], shellcmd="") == []
    assert terminal.says("Complete log(s): /x") == []


def test_sigterm_is_one_line_and_no_failure(tmp_path: Path) -> None:
    """Snakemake says for each running job that it waits. A training that saved its state, or wrote nothing yet, has not failed;
    another error of a job is shown."""
    log = tmp_path / "train.log"
    log.write_text("round 1\nfedrepro: stopped by SIGTERM after round 1 of 9; the same command goes on from there\n")
    terminal = Terminal()
    terminal.says(None, LogEvent.JOB_INFO, jobid=1, rule_name="train", rule_msg="train x")
    said = {"jobid": 1, "rule_name": "train", "shellcmd": "fedrepro run x"}
    waits = "Will exit after finishing currently running jobs (scheduler)."
    assert terminal.says(waits) == [plugin.STOPPED]
    assert terminal.says(waits) == terminal.says("Shutting down, this might take some time.") == []
    for logs in ([str(log)], [str(tmp_path / "none.log")]):
        (line,) = terminal.says("Error in rule train", LogEvent.JOB_ERROR, log=logs, **said)
        assert line.endswith("] stopped by SIGTERM: train x")
    assert terminal.says("Complete log(s): /x") == []
    ended = "WorkflowError:\nAt least one job did not complete successfully."
    assert terminal.says(ended, LogEvent.ERROR, exception="WorkflowError") == []
    log.write_text("OSError: disk\n")
    found = terminal.says("Error in rule train", LogEvent.JOB_ERROR, log=[str(log)], **said)
    assert found[0].endswith("] FAILED: train x")


def test_who_asks_for_more_or_less_gets_snakemakes_own_output() -> None:
    """Snakemake adds its own handler if no plugin writes to a stream. Messages in a form that the plugin does not know pass
    unchanged."""
    before = signal.getsignal(signal.SIGINT)
    for key in ("verbose", "printshellcmds", "debug_dag", "dryrun"):
        assert not Terminal(**{key: True}).handler.writes_to_stream
    for quiet in (Quietness.ALL, Quietness.RULES, Quietness.PROGRESS):
        terminal = Terminal(quiet={quiet})
        assert not terminal.handler.writes_to_stream
        assert terminal.says("Nothing to be done") == []
    assert signal.getsignal(signal.SIGINT) is before
    assert Terminal(quiet=None).handler.writes_to_stream
    assert Terminal().says("Finished", LogEvent.JOB_FINISHED, job_id=7) == ["Finished"]
