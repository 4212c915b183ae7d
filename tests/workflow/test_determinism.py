"""Metrics and models are the same bit for bit, whatever the number of cores and after kill -9."""

import os
import signal
import time
from pathlib import Path

import yaml

from tests.workflow.conftest import Project, drawn_of, wait_for

LONG = 20  # enough rounds that a kill hits the middle


def lengthen(project: Project) -> None:
    """Leaves one setting and two methods, with many rounds."""
    cut(project, 2)
    project.params(lambda p: p["settings"].update(rounds=LONG))


def cut(project: Project, rows: int) -> None:
    """Leaves the last `rows` methods of the table, and one setting."""
    path = project.root / "papers/fedlaw/tables/table3.yaml"
    table = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(table | {"columns": table["columns"][:1], "rows": table["rows"][-rows:]}))
    (project.root / "papers/fedlaw/figures/figure15.yaml").unlink()  # it also shows the other setting


def test_killed_and_started_again_changes_no_bit(chain: tuple[Project, list[str]], tmp_path: Path) -> None:
    """kill -9 hits the workflow and eight parallel trainings. The same command then finishes without a manual unlock. Metrics
    and models are those of an undisturbed run on one core, in another folder."""
    whole, project = (drawn_of(chain[0], tmp_path / name) for name in ("whole", "project"))
    lengthen(whole)
    whole.run("snakemake", "--cores", "1", "runs")
    expected = whole.metrics()
    assert len(expected) == 4
    lengthen(project)
    command = ("snakemake", "--cores", "8", "runs")
    running = project.start(*command, FEDREPRO_CHECKPOINT_SECONDS="0")
    wait_for(lambda: any((project.root / "results/checkpoints").rglob("seed*.pt")), running)
    os.kill(running.pid, signal.SIGKILL)  # first only the workflow: its trainings continue as orphans
    time.sleep(0.2)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert any((project.root / "results/checkpoints").rglob("seed*.pt")), "no training was in the middle"
    assert project.metrics() != expected
    project.run(*command)
    assert project.metrics() == expected
    assert not list((project.root / "results/checkpoints").rglob("seed*.pt"))


def test_killed_before_the_first_training_makes_the_report_all_the_same(drawn: Project) -> None:
    """kill -9 hits while data are drawn, in the middle of a job and after one. The files of those jobs are complete, and the
    same command continues to the report instead of stopping with nothing to do."""
    project = drawn
    project.run("rm", "-rf", *project.root.glob("data/*/"))  # only the list of data sets stays
    cut(project, 1)
    command = ("snakemake", "--cores", "1", "reports/table3.md")
    for made in ("seed8.*", "jobs/8"):
        old = {*project.root.glob("data/*/*")}  # these files exist already: no job makes their markers
        running = project.start(*command)
        wait_for(lambda made=made, old=old: any([*one.glob(made)] for one in {*project.root.glob("data/*/*")} - old), running)
        os.kill(running.pid, signal.SIGKILL)  # only the workflow: its jobs still write their files
        running.wait()
        assert not project.trained()
    project.run(*command)
    assert (project.root / "reports/table3.md").exists()
    assert len(project.trained()) == 1
