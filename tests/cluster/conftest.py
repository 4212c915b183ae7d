"""A project whose jobs run on a cluster that the tests start."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster import slurm
from tests.cluster.slurm import Slurm
from tests.workflow.conftest import Project, make_project

# The table is cut to these four cells: two methods on two settings.
ROWS = ("fedavg", "fedlaw")


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    """A folder with a short name that all machines of the cluster see."""
    folder = Path(tempfile.mkdtemp(prefix="fedrepro-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(place: Path) -> Iterator[Slurm]:
    """Two nodes of one core each. They cannot see the temporary folder of the machine that submits jobs."""
    lacking = slurm.missing()
    if lacking:
        pytest.fail(f"no cluster here without {', '.join(lacking)}")
    (place / "slurm").mkdir()
    (place / "login").mkdir()
    with slurm.running(place / "slurm", hidden=[place / "login"]) as started:
        yield started


def cut_down(project: Project, rounds: int) -> None:
    """Cuts the table down to four cells and sets their number of rounds."""
    project.params(lambda p: p["settings"].update(rounds=rounds))
    path = project.root / "papers/fedlaw/tables/table3.yaml"
    table = yaml.safe_load(path.read_text())
    table["rows"] = [row for row in table["rows"] if row["key"] in ROWS]
    path.write_text(yaml.safe_dump(table))


def sites_profile(project: Project, **keys: object) -> None:
    """Sets keys of profiles/slurm, as the administrator of a cluster does. The value None removes a key."""
    path = project.root / "profiles/slurm/config.yaml"
    lines = path.read_text().splitlines()
    kept = [line for line in lines if line.partition(":")[0] not in keys]
    path.write_text(
        "\n".join([*kept, *(yaml.safe_dump({key: value}).rstrip() for key, value in keys.items() if value is not None)]) + "\n"
    )


@pytest.fixture
def on_cluster(cluster: Slurm, place: Path) -> Iterator[Project]:
    """A small project in the folder that all machines see, with a profile for this cluster. Teardown ends what still runs."""
    root = Path(tempfile.mkdtemp(dir=place)) / "project"
    project = make_project(root)
    sites_profile(project, **{"slurm-no-account": True, "slurm-init-seconds-before-status-checks": 2, "latency-wait": 10})
    yield project
    cluster.ask("scancel", "--user", "root")


def submit(project: Project, cluster: Slurm, *more: str) -> subprocess.Popen[str]:
    """Starts Snakemake on the submitting machine, in its own process group. Its output goes to the file `said`."""
    settings = {"SNAKEMAKE_PROFILE": "profiles/slurm", "FEDREPRO_CHECKPOINT_SECONDS": "1"}
    environment = project.environment({"TMPDIR": str(cluster.root.parent / "login")} | settings)
    with (project.root / "said").open("w") as said:
        return subprocess.Popen(
            ("snakemake", *more), cwd=project.root, env=environment, stdout=said, stderr=said, start_new_session=True, text=True
        )


def said(project: Project) -> str:
    return (project.root / "said").read_text()


def finished(process: subprocess.Popen[str], project: Project, seconds: float = 240) -> None:
    """Waits for a workflow, which must succeed."""
    try:
        code = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        code = None
    logs = "\n".join(path.read_text()[-2000:] for path in sorted((project.root / "logs/slurm").rglob("*.log"))[:3])
    assert code == 0, f"{code}\n{said(project)[-5000:]}\n{logs}"
