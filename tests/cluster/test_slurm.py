"""Trainings on a real Slurm cluster give the bits of local ones and lose nothing when jobs or Snakemake itself are ended."""

import os
import re
import signal
import time
from pathlib import Path

from tests.cluster.conftest import cut_down, finished, said, sites_profile, submit
from tests.cluster.slurm import KILL_WAIT_S, Slurm, wait_until
from tests.workflow.conftest import Project, copy_of

STOPPED = re.compile(r"stopped by SIGTERM after round (\d+) of (\d+) ")
LONG = 150  # number of rounds: some seconds of training


def test_the_same_files_as_on_one_machine(on_cluster: Project, cluster: Slurm, tmp_path: Path) -> None:
    """Four trainings in two Slurm jobs of two, up to the report, give the bits of a run on one machine. The machine that runs
    snakemake draws the files and renders the report. Jobs do not inherit its environment. A second call has nothing to do."""
    cut_down(on_cluster, rounds=2)
    sites_profile(on_cluster, **{"group-components": ["short=2"]})
    local = copy_of(on_cluster, tmp_path / "local")
    process = submit(on_cluster, cluster, "reports/table3.md")
    seen: dict[str, str] = {}
    while process.poll() is None:
        seen |= {job: comment for job, (_, comment) in cluster.jobs().items()}
        time.sleep(0.2)
    finished(process, on_cluster)
    assert len(seen) == 2, f"{seen}\n{said(on_cluster)}"
    assert len(on_cluster.metrics()) == 2 * 4
    local.run("snakemake", "--cores", "2", "reports/table3.md")
    assert on_cluster.metrics() == local.metrics()
    again = submit(on_cluster, cluster, "reports/table3.md")
    finished(again, on_cluster)
    assert "Nothing to be done" in said(on_cluster)
    assert not cluster.jobs()


def test_a_job_that_is_ended_goes_on(on_cluster: Project, cluster: Slurm, tmp_path: Path) -> None:
    """scancel does what a pre-emption and a time limit do: SIGTERM, and SIGKILL some seconds later. Snakemake submits the job
    again, which continues after its last finished round to the same bits."""
    cut_down(on_cluster, rounds=LONG)
    local = copy_of(on_cluster, tmp_path / "local")
    target = a_run(on_cluster)
    process = submit(on_cluster, cluster, target)
    job = running(cluster)
    log = on_cluster.root / "logs/train" / f"{target.split('/')[2]}-8.log"
    reached = on_cluster.root / "results/checkpoints" / target.split("/")[2] / "seed8.json"
    wait_until(reached.exists, 60, "a checkpoint")
    before = log.read_text()
    begun = time.monotonic()
    cluster.ask("scancel", job)
    wait_until(lambda: job not in cluster.jobs(), KILL_WAIT_S + 5, "its end")
    assert time.monotonic() - begun < KILL_WAIT_S, "it was killed"
    finished(process, on_cluster)
    (found,) = STOPPED.findall("".join(path.read_text() for path in (on_cluster.root / "logs").rglob("*.log"))) or [None]
    assert found, before
    local.run("snakemake", "--cores", "1", a_run(local))
    assert on_cluster.metrics() == local.metrics()


def test_snakemake_that_was_killed_is_given_again(on_cluster: Project, cluster: Slurm) -> None:
    """snakemake is killed by kill -9 while one of its jobs runs. The same command reports that job and submits a new one, which
    waits for the first and keeps what it has trained."""
    cut_down(on_cluster, rounds=LONG)
    target = a_run(on_cluster)
    first = submit(on_cluster, cluster, target)
    job = running(cluster)
    log = on_cluster.root / "logs/train" / f"{target.split('/')[2]}-8.log"
    wait_until(lambda: log.exists(), 60, "the training")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    second = submit(on_cluster, cluster, target)
    finished(second, on_cluster)
    assert f"Slurm still has 1 job of an earlier snakemake in this folder ({job})" in said(on_cluster)
    assert ": seed 8 kept" in log.read_text()
    assert len(on_cluster.trained()) == 1


def a_run(project: Project) -> str:
    """The job marker of one training."""
    project.run("snakemake", "--cores", "1", "--dry-run", "runs")
    names = sorted(path.stem for path in (project.root / "results/configs").glob("*.json"))
    return f"results/runs/{next(name for name in names if '-fedlaw-' in name)}/jobs/8"


def running(cluster: Slurm) -> str:
    """The id of the only job, once it runs."""
    wait_until(lambda: any(state == "RUNNING" for state, _ in cluster.jobs().values()), 60, "a job")
    (job,) = cluster.jobs()
    return job
