"""Damage between two calls of the workflow, as real processes: it is named, call after call, until its advice is followed."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from fedrepro.engine.records import seal
from fedrepro.files import write_json
from tests.workflow.conftest import Project, copy_of, new_trainings

TABLE = ("snakemake", "--cores", "2", "reports/table3.md")
RUN = ("fedrepro", "run", "fedlaw/table3", "--rows", "fedavg", "--columns", "fashion_mnist-mlp-0.1", "--seeds", "8")


def to_98(path: Path) -> None:
    content = json.loads(path.read_text())
    content["curves"]["test_accuracy"][-1] = 98.0
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def rate(path: Path) -> None:
    path.write_text(path.read_text().replace('"client_lr": 0.08', '"client_lr": 0.8'))


def of_reports(project: Project) -> dict[str, bytes]:
    """The pages and the receipts behind them."""
    found = [*project.root.glob("reports/table3.*"), *project.root.glob("results/runs/*/seed8.json")]
    return {str(path.relative_to(project.root)): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def made(chain: tuple[Project, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose table is there. Every test leaves it as whole as it found it."""
    return copy_of(chain[0], tmp_path_factory.mktemp("made") / "project")


def test_damage_is_named_until_it_is_repaired(made: Project) -> None:
    """Two calls fail with the same line, and leave all other receipts as they were. Once the file is deleted, as the line says,
    the same command ends well with the same bytes everywhere, and then has nothing to do."""
    victim = sorted(made.root.glob("results/runs/*-0.1-fedavg-*/seed8.json"))[0]
    name = str(victim.relative_to(made.root))
    kept = of_reports(made)
    assert len(kept) == 3 + 6
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
    again = made.run(*TABLE)
    assert "Nothing to be done" in again.stdout + again.stderr


def test_an_emptied_receipt_comes_back_from_its_folder(made: Project) -> None:
    """As it was, without training."""
    kept, before = of_reports(made), made.trained()
    sorted(made.root.glob("results/runs/*-fedlaw-*/seed8.json"))[0].write_text("")
    made.run(*TABLE)
    assert of_reports(made) == kept
    assert made.trained() == before


def test_results_of_an_older_version_get_receipts_without_training(made: Project) -> None:
    """No file has a digest: refused. Once receipts are deleted, result folders give them again, as they were."""
    kept, before = of_reports(made), made.trained()
    old = [*made.root.glob("results/runs/*/seed8.json")]
    for path in [*old, *made.root.glob("results/runs/*/seed8/manifest.json")]:
        content = json.loads(path.read_text())
        del content["digest"]
        write_json(path, content)
    done = made.run(*TABLE, ok=False)
    assert done.returncode != 0
    assert "it has no digest: an older version wrote it, or a key was deleted" in done.stderr.strip().splitlines()[-1]
    for path in old:
        path.unlink()
    made.run(*TABLE)
    assert of_reports(made) == kept
    assert made.trained() == before


def test_new_results_are_rendered_by_the_first_call(made: Project) -> None:
    """Results that came with `dvc pull`, say, and not from the workflow: tracked and rendered in one call, not in two."""
    path = sorted(made.root.glob("results/runs/*-fedavg-*/seed8.json"))[0]
    good = path.read_bytes()
    content = json.loads(good)
    content["curves"]["test_accuracy"][-1] = 12.34
    write_json(path, seal(content))
    made.run(*TABLE)
    assert "12.34" in (made.root / "reports/table3.md").read_text()
    path.write_bytes(good)
    made.run(*TABLE)
    assert "12.34" not in (made.root / "reports/table3.md").read_text()


def test_a_configuration_with_another_rate_trains_nothing(project: Project) -> None:
    """Edited, and a job asked for alone: refused in a line. The table that plans the run writes it as it was."""
    project.run(*TABLE, "--dry-run")
    path = sorted((project.root / "results/configs").glob("*.json"))[0]
    project.run("snakemake", "--cores", "2", "partitions")
    rate(path)
    job = f"results/runs/{path.stem}/jobs/8"
    done = project.run("snakemake", "--cores", "2", job, ok=False)
    assert done.returncode != 0
    line = done.stderr.strip().splitlines()[-1]
    assert f"results/configs/{path.name}: its settings are not those of run_id = '{path.stem}'" in line
    assert not project.trained()
    project.run(*TABLE, "--dry-run")
    project.run("snakemake", "--cores", "2", job)
    assert json.loads((project.root / f"results/runs/{path.stem}/seed8.json").read_text())["config"]["client_lr"] == 0.08


def test_a_deleted_run_is_trained_again(made: Project) -> None:
    """`rm -rf` of its folder and the same command: that run and no other, to the same bytes."""
    kept, before = of_reports(made), made.trained()
    folder = sorted(made.root.glob("results/runs/*-fedavg-*"))[0]
    shutil.rmtree(folder)
    made.run(*TABLE)
    assert new_trainings(before, made.trained()) == {f"{folder.name}/seed8"}
    assert {path: content for path, content in of_reports(made).items() if path.startswith("reports")}.keys() == {
        path for path in kept if path.startswith("reports")
    }


def test_a_flipped_bit_in_a_checkpoint_starts_the_seed_over(project: Project) -> None:
    """A training killed in the middle, one bit of its checkpoint flipped, the same command: a line names the file; metrics and
    model are those of an undisturbed training."""
    command = (*RUN, "--set", "rounds=120", "--checkpoint-seconds", "0")
    child = project.start(*command)
    deadline = time.monotonic() + 120
    while not (found := list(project.root.glob("results/checkpoints/*/seed8.pt"))) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert not project.trained()
    (path,) = found
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    done = project.run(*command)
    (line,) = [line for line in done.stderr.splitlines() if "checkpoint" in line]
    assert line.startswith(f"{path.relative_to(project.root)}: checkpoint damaged")
    assert line.endswith("; the seed starts over from round 0")
    disturbed = project.metrics()
    project.run("rm", "-r", "results/runs")
    project.run(*command)
    assert project.metrics() == disturbed
