"""A small copy of the project in a new folder, and real processes in it: snakemake, dvc, git, fedrepro."""

import compileall
import contextlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedrepro import console
from fedrepro.cli import main
from tests.helpers.shared import empty_database, shared

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
# Two methods of the table and one that learns on the proxy set, in two settings: a few of every kind of job.
ROWS = ("fedavg", "fedprox", "fedlaw")
COLUMNS = ("fashion_mnist-mlp-100", "fashion_mnist-mlp-0.1")
PAPERS = {path.name for path in (ROOT / "papers").iterdir() if path.is_dir()}
SMALL = {"rounds": 2, "clients": 4, "local_epochs": 1, "average_last": 1}


@dataclass
class Project:
    """A checkout under test. `empty`: an MLflow database without runs, for `forget`."""

    root: Path
    empty: Path | None = None

    def run(self, *command: str | Path, ok: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end. With `ok` it must succeed."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.root,
            env=self.environment(environment),
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert not ok or done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        return done

    def start(self, *command: str, says: str = os.devnull, **environment: str) -> subprocess.Popen:
        """Starts a command in a new process group. Its output goes to the file `says`."""
        with (self.root / says).open("w") as said:
            how = {"cwd": self.root, "env": self.environment(environment), "stdout": said, "stderr": said}
            return subprocess.Popen(command, start_new_session=True, **how)

    def environment(self, extra: dict[str, str]) -> dict[str, str]:
        """Our environment, with the programs of the virtual environment and the folder's code first, and without the user's
        mirror, git identity or Snakemake profile."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FEDREPRO", "SNAKEMAKE", "MLFLOW", "DVC", "GIT_"))}
        names = {f"GIT_{who}_{what}": "someone@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return kept | names | {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(self.root / "src")} | extra

    def commit(self) -> None:
        """Commits everything that is not ignored."""
        self.run("git", "add", "-A")
        self.run("git", "commit", "-qm", "as it is")

    def params(self, change: Callable[[dict], None]) -> None:
        """Edits params.yaml."""
        path = self.root / "params.yaml"
        content = yaml.safe_load(path.read_text())
        change(content)
        path.write_text(yaml.safe_dump(content))

    def trained(self) -> dict[str, tuple[int, int]]:
        """The trainings, as seed folder -> (inode, mtime) of the metrics. Only a training replaces that file."""
        paths = sorted((self.root / "results/runs").glob("*/seed*/metrics.parquet"))
        stats = {str(path.parent.relative_to(self.root / "results/runs")): path.stat() for path in paths}
        return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}

    def metrics(self) -> dict[str, bytes]:
        """The bytes of metrics and models of every trained seed."""
        found = sorted((self.root / "results/runs").glob("*/seed*/*"))
        return {
            str(p.relative_to(self.root)): p.read_bytes() for p in found if p.name in ("metrics.parquet", "model.safetensors")
        }


def wait_for(condition: Callable[[], object], process: subprocess.Popen | None = None, seconds: float = 120) -> None:
    """Waits until `condition` holds, while `process` lives."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, "the process ended before it could be killed"
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def cells(project: Project, report: str) -> dict[tuple[str, str], dict[str, Any]]:
    """(row, column) -> cell of a report."""
    document = json.loads((project.root / "reports" / report).with_suffix(".json").read_text())
    return {(cell["row"], cell["column"]): cell for cell in document["cells"]}


def called(project: Project, *arguments: str, code: int = 0) -> str:
    """The output of a fedrepro command that must end with exit code `code`. It runs in this process, with the code of this
    checkout, so the project's code must be the same."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        patch.chdir(project.root)
        patch.setattr("fedrepro.cli.require_own_code", lambda: None)
        patch.setattr(console, "_log", None)
        for name in [name for name in os.environ if name.startswith(("FEDREPRO", "MLFLOW"))]:
            patch.delenv(name)
        assert main([*arguments]) == code, said.getvalue()
    return said.getvalue()


def to_copy(project: Project) -> tuple[dict[str, Any], dict[str, Any]]:
    """FedLAW's Table 3 as a template for another table, and its first column, both without printed numbers."""
    content = yaml.safe_load((project.root / "papers/fedlaw/tables/table3.yaml").read_text())
    del content["published"]
    return content, {key: value for key, value in content["columns"][0].items() if key != "published"}


def new_trainings(before: dict, after: dict) -> set[str]:
    """Seed folders that were trained between two calls of `trained`."""
    return {name for name, stamp in after.items() if before.get(name) != stamp}


def scramble_times(root: Path, *folders: str) -> None:
    """Gives every file below the folders a random modification time, so that times no longer show the order of creation."""
    dice = random.Random(0)
    for path in [p for folder in folders for p in (root / folder).rglob("*") if p.is_file()]:
        age = 1_700_000_000 + dice.randrange(10_000_000)
        os.utime(path, (age, age))
    os.utime(root / "params.yaml")


def make_project(root: Path, seeds: tuple[int, ...] = (8,), papers: tuple[str, ...] = ("fedlaw",)) -> Project:
    """Copies the files that git tracks (and new files that it does not ignore), with a smaller table.

    It copies only the papers in `papers`, since each start of the workflow plans every table.
    """
    away = ("tests/", "docs/", "dvc.lock", "results/")
    others = sorted(PAPERS - {*papers})
    away += tuple(f"{folder}/{paper}/" for paper in others for folder in ("papers", "reports/full", "reports/short"))
    root.mkdir(parents=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        source = ROOT / name
        if source.is_file() and not name.startswith(away):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, root / name)
    compileall.compile_dir(ROOT / "src", quiet=2)  # otherwise each copy would do it
    for folder in ROOT.glob("src/**/__pycache__"):  # valid for the copy, which keeps the files' times
        shutil.copytree(folder, root / folder.relative_to(ROOT))
    project = Project(root)
    project.params(lambda p: p.update(seeds=list(seeds), settings=dict(SMALL)))
    project.params(lambda p: p.update(methods={name: p["methods"][name] for name in p["methods"] if name in papers}))
    path = root / "papers/fedlaw/tables/table3.yaml"
    table = yaml.safe_load(path.read_text())
    table["rows"] = [row for row in table["rows"] if row["key"] in ROWS]
    table["columns"] = [column for column in table["columns"] if column["key"] in COLUMNS]
    del table["remarks"]  # the remarks name removed rows and describe runs of the full table
    path.write_text(yaml.safe_dump(table))
    (root / "papers/fedlaw/summary.yaml").unlink()  # likewise
    path = root / "papers/fedlaw/figures/figure15.yaml"  # it takes its columns from that table
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"columns": list(COLUMNS)}))
    (root / "papers/fedlaw/claims.yaml").write_text("[]")  # they name removed rows and columns
    return project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A new small project with one seed."""
    return make_project(tmp_path / "project")


TABLE = ("snakemake", "--cores", "8", "reports/table3.md")


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, list[str]]:
    """A project in a git checkout whose table eight parallel jobs made from nothing but an MLflow database without runs, and
    the lines that the command printed. Tests do not modify it.

    The first of pytest's processes makes it.
    """
    with shared(tmp_path_factory, "chain") as folder:
        if not (folder / "said").exists():
            project = make_project(folder / "project")
            project.run("git", "init", "-q", "-b", "main")
            project.commit()
            project.run("git", "repack", "-adq")  # one pack file, since tests copy the project often
            shutil.copyfile(empty_database(tmp_path_factory), project.root / "mlflow.db")
            done = project.run(*TABLE)
            (folder / "said").write_text(done.stdout + done.stderr)
    said = [line for line in (folder / "said").read_text().splitlines() if line]
    return Project(folder / "project", empty_database(tmp_path_factory)), said


def copy_of(project: Project, root: Path) -> Project:
    """A copy of all files in another folder."""
    shutil.copytree(project.root, root, symlinks=True)
    return Project(root, project.empty)


def drawn_of(project: Project, root: Path) -> Project:
    """A copy with its data and everything drawn from them, without results."""
    copy = copy_of(project, root)
    forget(copy)
    return copy


def forget(project: Project) -> None:
    """Deletes everything except data, what was drawn from them, and published files. The MLflow database is empty again."""
    made = (".snakemake", "results", "mlflow.db", "mlartifacts", "logs", "reports/fedlaw")
    project.run("rm", "-rf", *made, *project.root.glob("reports/table3.*"))
    if project.empty:
        shutil.copyfile(project.empty, project.root / "mlflow.db")


@pytest.fixture
def drawn(chain: tuple[Project, list[str]], tmp_path: Path) -> Project:
    """A project with data and drawn files, without trainings. The files are drawn once for all tests."""
    return drawn_of(chain[0], tmp_path / "project")


@pytest.fixture
def made(chain: tuple[Project, list[str]], tmp_path: Path) -> Project:
    """A copy of the project with its table."""
    return copy_of(chain[0], tmp_path / "project")
