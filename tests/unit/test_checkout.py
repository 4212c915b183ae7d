"""A folder with its own code refuses the code of another clone, since its results would record the wrong commit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro import versioned
from fedrepro.checkout import PACKAGE, require_own_code
from fedrepro.config.plan import PLANS
from fedrepro.engine.artifacts import FOLDERS
from fedrepro.engine.live import FOLDER as CHECKPOINTS
from fedrepro.engine.measurements import DIAGNOSTICS, KEPT
from fedrepro.engine.receipts import RUNS
from fedrepro.errors import UserError
from fedrepro.workflow.jobs import CONFIGS, TRACKED


def test_a_folder_with_code_of_its_own(tmp_path: Path) -> None:
    """A folder without code, or with our code by any path, may run. A folder with another copy may not."""
    require_own_code(tmp_path)
    require_own_code(PACKAGE.parents[1])
    linked, copied = tmp_path / "linked", tmp_path / "copied"
    linked.mkdir()
    (linked / "src").symlink_to(PACKAGE.parent)
    require_own_code(linked)
    (copied / "src/fedrepro").mkdir(parents=True)
    with pytest.raises(UserError, match=r"^this environment runs .*, not the .* of this folder; give `deactivate`"):
        require_own_code(copied)
    queued = tmp_path / "project/.dvc/tmp/exps/tmp1"
    (queued / "src/fedrepro").mkdir(parents=True)
    with pytest.raises(UserError, match=r"tmp1: a copy that DVC made of the project; leave out --temp and --queue"):
        require_own_code(queued)


@pytest.mark.parametrize("command", [["fedrepro", "list", "methods"], ["snakemake", "-n", "reports/table3.md"]])
def test_commands_end_with_one_line(command: list[str], tmp_path: Path) -> None:
    """The command stops before it reads or writes anything."""
    (tmp_path / "src/fedrepro").mkdir(parents=True)
    root = PACKAGE.parents[1]
    for name in ("Snakefile", "rules", "profiles"):
        (tmp_path / name).symlink_to(root / name)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    (line,) = [one for one in done.stderr.splitlines() if "this environment runs" in one]
    assert line.startswith("fedrepro: error: this environment runs ")
    assert done.returncode == 2


def test_make_sees_that_a_folder_was_moved(tmp_path: Path) -> None:
    """The environment's marker has the old path. `make -q` exits with 1 if there is something to do."""
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    (tmp_path / "Makefile").symlink_to(PACKAGE.parents[1] / "Makefile")
    ready = tmp_path / ".venv/.ready"
    ready.parent.mkdir()
    for place, code in ((tmp_path / ".venv", 0), (tmp_path / "elsewhere/.venv", 1)):
        ready.write_text(f"{place}\n")
        assert subprocess.run(["make", "-q", "env"], cwd=tmp_path).returncode == code


def test_an_image_takes_the_sources_and_none_of_the_results(tmp_path: Path) -> None:
    """.containerignore decides, whose patterns git reads as podman does. Files that commands leave are ignored, and sources are
    not."""
    root = PACKAGE.parents[1]
    shutil.copy(root / ".containerignore", tmp_path / ".gitignore")
    folders = (RUNS, CHECKPOINTS, KEPT, DIAGNOSTICS, CONFIGS, PLANS, TRACKED, versioned.FOLDER, *FOLDERS.values())
    made = [
        str(folder / "one/file") for folder in (*folders, Path("results/choices"), Path("data/arrays"), Path("data/.locks"))
    ]
    made.append(str(versioned.KNOWN))
    sources = [
        "results/summary.json",
        "results/means.json",
        "data/registry.yaml",
        "src/fedrepro/data/idx.py",
        "reports/README.md",
    ]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    asked = ["git", "check-ignore", "--stdin"]
    done = subprocess.run(asked, cwd=tmp_path, input="\n".join([*made, *sources]), capture_output=True, text=True)
    assert done.stdout.splitlines() == made
