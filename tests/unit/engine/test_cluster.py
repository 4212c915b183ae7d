"""How the place of a job decides on devices and cards, and how Slurm's job states are read."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fedrepro.engine import cards, cluster
from fedrepro.errors import UserError


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cards.VISIBLE, "")


@pytest.mark.parametrize(("wanted", "expected"), [("auto", "cpu"), ("cpu", "cpu"), ("cuda", "cuda")])
def test_elsewhere_what_this_machine_has_means_nothing(wanted: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a login node only params.yaml decides, whether the node has a GPU or not."""
    for look in (lambda _: "cuda", lambda _: pytest.fail("looked here")):
        monkeypatch.setattr(cluster, "pick_device", look)
        assert cluster.device_for_jobs(wanted, elsewhere=True) == expected


@pytest.mark.usefixtures("no_gpu")
def test_here_a_gpu_that_is_missing_is_refused() -> None:
    """A dry run allows `device: cuda` without a GPU, because the real run may use another machine."""
    assert cluster.device_for_jobs("auto", elsewhere=False) == "cpu"
    with pytest.raises(UserError, match=r"^device = cuda: torch finds no GPU here"):
        cluster.device_for_jobs("cuda", elsewhere=False)
    assert cluster.device_for_jobs("cuda", elsewhere=False, trial=True) == "cuda"


SNAKEFILE = """
from fedrepro.engine import cluster
rule all:
    input: expand("{n}", n=range(6))
rule one:
    output: "{n}"
    resources: gpu=1
    shell: "date +%s.%N > {output}; sleep 0.5; date +%s.%N >> {output}"
onstart:
    cluster.share_out_cards(workflow)
    print("said:", *workflow.global_resources)
"""


def test_as_many_gpu_jobs_at_once_as_cards(tmp_path: Path) -> None:
    """A real workflow of six jobs on six cores runs two jobs at a time on two cards. Snakemake reads the limits of a profile or
    the command only just before jobs start."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "site").mkdir()
    (tmp_path / "site/config.yaml").write_text("resources: [other=1]")
    command = [sys.executable, "-m", "snakemake", "--cores", "6", "--profile", "site"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SNAKEMAKE")}
    done = subprocess.run(command, cwd=tmp_path, env=clean | {cards.VISIBLE: "0,1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (said,) = [line.split() for line in done.stdout.splitlines() if line.startswith("said:")]
    assert "other" in said
    times = [tuple(map(float, (tmp_path / str(n)).read_text().split())) for n in range(6)]
    assert max(sum(begin <= other < end for begin, end in times) for other, _ in times) == 2


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_the_command_or_a_profile_says_stays(elsewhere: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of one GPU job holds although there are two cards. If jobs run on other machines, there are no cards to share."""
    monkeypatch.setenv(cards.VISIBLE, "0,1")
    said = {} if elsewhere else {"gpu": 1}
    scheduler = SimpleNamespace(global_resources=dict(said), resources=dict(said))
    where = {"remote_exec": False, "non_local_exec": elsewhere}
    cluster.share_out_cards(SimpleNamespace(global_resources=said, scheduler=scheduler, **where))
    assert scheduler.global_resources == scheduler.resources == said


def test_a_job_on_another_machine_is_elsewhere() -> None:
    """With an executor for a cluster, jobs of Snakemake's main process run elsewhere; so does the process that it starts on a
    node."""
    asked: list[tuple[Any, bool]] = [
        (SimpleNamespace(remote_exec=False, non_local_exec=False), False),
        (SimpleNamespace(remote_exec=False, non_local_exec=True), True),
        (SimpleNamespace(remote_exec=True, non_local_exec=False), True),
    ]
    assert [cluster.elsewhere(workflow) for workflow, _ in asked] == [expected for _, expected in asked]


@pytest.mark.parametrize(
    ("says", "code", "expected"),
    [
        ("AccountingStorageType   = accounting_storage/slurmdbd", 0, "sacct"),
        ("AccountingStorageType   = accounting_storage/none", 0, "squeue"),
        ("AccountingStorageType   = (null)", 0, "squeue"),
        ("", 1, "squeue"),
        (None, 0, "squeue"),
    ],
)
def test_sacct_is_asked_where_accounting_is_on(
    says: str | None, code: int, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`scontrol` shows whether the site has accounting. Without the program sacct the answer is always squeue."""
    answers = {"sacct": "", "scontrol": f"echo '{says}'; exit {code}"} if says is not None else {"scontrol": "exit 1"}
    for name, text in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if says is not None else str(tmp_path))
    assert cluster.status_command() == expected


def test_jobs_of_an_earlier_snakemake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that Snakemake submitted from this folder count. Those of another folder and a user's own job do not."""
    rows = [f"7|{tmp_path}|rule_train_8", f"8|{tmp_path}|group_6f", "9|/elsewhere|rule_train_8", f"10|{tmp_path}|(null)"]
    program = tmp_path / "squeue"
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{row}'\n" for row in rows))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    found = cluster.left_behind(tmp_path)
    assert found.startswith("Slurm still has 2 jobs of an earlier snakemake in this folder (7 8). ")
    assert cluster.left_behind(tmp_path / "another") == ""
    program.unlink()
    assert cluster.left_behind(tmp_path) == ""
