"""DVC around the graph: an edit trains what it touches, a pulled clone trains nothing. Every step counts the trainings."""

import re
from pathlib import Path

import pytest

from tests.workflow.conftest import Project, make_project, new_trainings, scramble_times


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project under git and DVC with a folder as remote, its two methods trained for two seeds."""
    root = tmp_path_factory.mktemp("dvc")
    project = make_project(root / "project", seeds=(8, 9))
    project.run("git", "init", "-q", "-b", "main")
    project.run("dvc", "remote", "add", "-d", "store", root / "store")
    project.run("git", "add", "-A")
    project.run("git", "commit", "-qm", "start")
    project.run("dvc", "repro")
    return project


WIDE = "(data|results|src)/|Created|mean_of"  # columns of `dvc exp show` that tell a reader nothing, as in README


def commit(project: Project, message: str) -> None:
    project.run("git", "add", "-A")
    project.run("git", "commit", "-qm", message)


def test_edits_train_only_what_they_touch(project: Project, tmp_path: Path) -> None:
    """An argument of one method retrains that method in every setting, a new seed trains alone; metrics and params show the
    change; a clone that pulls trains nothing, whatever the times of its files; an experiment trains what it changes; so does an
    edited method."""
    start = project.trained()
    assert len(start) == 12  # 3 methods x 2 settings x 2 seeds
    commit(project, "demo")
    assert "up to date" in project.run("dvc", "repro").stdout
    assert not new_trainings(start, project.trained())

    project.params(lambda p: (p["methods"]["fedlaw"]["fedprox"].update(mu=0.5), p["seeds"].append(11)))
    assert "0.5" in project.run("dvc", "params", "diff").stdout
    project.run("dvc", "repro")
    added = new_trainings(start, project.trained())
    edited = {name for name in added if "-fedprox-" in name}
    assert len(edited) == 2 * 3
    assert len(added - edited) == 2 * 2
    assert {name.rpartition("/")[2] for name in added - edited} == {"seed11"}
    compared = project.run("dvc", "metrics", "diff").stdout
    assert "fedprox" in compared
    assert re.search(r"mean_of +table3 demo, seeds 8, 9 +table3 demo, seeds 8, 9, 11", compared)
    assert "fedlaw" in project.run("dvc", "metrics", "show").stdout
    commit(project, "edited")

    project.run("dvc", "push")
    clone = Project(tmp_path / "clone")
    project.run("git", "clone", "-q", project.root, clone.root)
    clone.run("dvc", "pull")
    pulled = clone.trained()
    assert len(pulled) == 22
    scramble_times(clone.root, "data", "results", "papers")
    pulled = clone.trained()
    clone.run("snakemake", "--cores", "2", "reports/table3.md")
    assert not new_trainings(pulled, clone.trained())
    assert (clone.root / "reports/table3.md").exists()
    clone.run("dvc", "repro")
    assert not new_trainings(pulled, clone.trained())

    before = clone.trained()
    clone.run("dvc", "exp", "run", "-S", "methods.fedlaw.fedlaw.server_lr=0.5")
    tried = new_trainings(before, clone.trained())
    assert len(tried) == 6
    assert all("-fedlaw-" in name for name in tried), tried
    shown = clone.run("dvc", "exp", "show", "--only-changed", "--drop", WIDE, COLUMNS="130").stdout.splitlines()
    assert "methods.fedlaw.fedlaw.server_lr" in shown[1]
    assert max(map(len, shown)) <= 130

    part = clone.root / "src/fedrepro/methods/client/fedprox.py"
    part.write_text(part.read_text().replace("self.mu", "(5.0 + self.mu)"))
    before = clone.trained()
    said = clone.run("dvc", "repro", PYTHONPATH=str(clone.root / "src"))
    assert "part fedprox changed since" in said.stdout + said.stderr
    again = new_trainings(before, clone.trained())
    assert len(again) == 6
    assert all("-fedprox-" in name for name in again), again
