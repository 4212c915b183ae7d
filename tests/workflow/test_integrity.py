"""Damage between two calls of the workflow, as real processes: every call names it until its advice is followed."""

import json
import shutil
from pathlib import Path

import pytest

from fedrepro.engine.records import seal
from fedrepro.files import write_json
from tests.workflow.conftest import Project, copy_of, new_trainings

TABLE = ("snakemake", "--cores", "2", "reports/table3.md")


def to_98(path: Path) -> None:
    content = json.loads(path.read_text())
    content["curves"]["test_accuracy"][-1] = 98.0
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def of_reports(project: Project) -> dict[str, bytes]:
    """The pages and the receipts behind them."""
    found = [*project.root.glob("reports/table3.*"), *project.root.glob("results/runs/*/seed8.json")]
    return {str(path.relative_to(project.root)): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def made(chain: tuple[Project, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with its table. Every test leaves it complete."""
    return copy_of(chain[0], tmp_path_factory.mktemp("made") / "project")


def test_damage_is_named_until_it_is_repaired(made: Project) -> None:
    """Two calls fail with the same line and keep all other receipts. When the file is deleted, as the line says, the same
    command succeeds with the same bytes everywhere."""
    victim = sorted(made.root.glob("results/runs/*-0.1-fedavg-*/seed8.json"))[0]
    name = str(victim.relative_to(made.root))
    kept = of_reports(made)
    assert len(kept) == 5 + 6
    to_98(victim)
    for _ in range(2):
        done = made.run(*TABLE, ok=False)
        assert done.returncode != 0
        line = done.stderr.strip().splitlines()[-1]
        assert line.startswith(f"fedrepro: error: {name}: "), done.stderr[-3000:]
        assert line.endswith("; delete it and run the same command again")
        now = of_reports(made)
        assert [path for path in now if now[path] != kept[path] and path != name] == []
        assert {path for path in kept if path.endswith("seed8.json")} <= {*now}
    victim.unlink()
    before = made.trained()
    made.run(*TABLE)
    assert of_reports(made) == kept
    assert made.trained() == before


def test_new_results_are_rendered_by_the_first_call_and_deleted_ones_trained(made: Project) -> None:
    """Results that do not come from the workflow, for example from `dvc pull`, are tracked and rendered in one call. After `rm
    -rf` of their folder the same command trains only that run, and the page is as before."""
    kept, before = of_reports(made), made.trained()
    path = sorted(made.root.glob("results/runs/*-fedavg-*/seed8.json"))[0]
    content = json.loads(path.read_text())
    content["curves"]["test_accuracy"][-1] = 12.34
    write_json(path, seal(content))
    made.run(*TABLE)
    assert "12.34" in (made.root / "reports/table3.md").read_text()
    shutil.rmtree(path.parent)
    emptied = sorted(made.root.glob("results/runs/*-fedlaw-*/seed8.json"))[0]
    emptied.write_text("")  # it is written again from the result folder
    made.run(*TABLE)
    assert emptied.read_bytes() == kept[str(emptied.relative_to(made.root))]
    assert new_trainings(before, made.trained()) == {f"{path.parent.name}/seed8"}
    assert "12.34" not in (made.root / "reports/table3.md").read_text()
    assert of_reports(made).keys() == kept.keys()
