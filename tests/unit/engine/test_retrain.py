"""Finished seeds of the vectorised engine are trained again. The seeds that train together decide the last bits."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import real_papers

from fedrepro.cli.drawing import draw_missing
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.engine import full_memory
from fedrepro.engine import run as engine_run
from fedrepro.engine.artifacts import FOLDERS, drawn
from fedrepro.engine.forks import Fork
from fedrepro.engine.receipts import beside, together
from fedrepro.engine.records import seal
from fedrepro.engine.run import Options, run_seeds
from fedrepro.errors import UserError
from fedrepro.files import json_text

SEEDS = [8, 9, 10]
SETTINGS = {"rounds": 4, "clients": 4, "local_epochs": 1, "batch_size": 64}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """(project, run): FedLAW on a perceptron, with three seeds trained together and the models of round 2 kept."""
    root = real_papers.copy(tmp_path_factory.mktemp("together"), "scale: demo\n", "fedlaw")
    project = load_project(root, {"scale": "demo", "settings": SETTINGS})
    made = plan(project, "fedlaw", "table3", "demo")
    planned = next(made.run(c) for c in made.cells if (c.row, c.column) == ("fedlaw", "fashion_mnist-mlp-100"))
    draw_missing(project, planned, SEEDS)
    run = planned.identity
    assert run_seeds(run, SEEDS, options(root, keep=(2,))) == dict.fromkeys(SEEDS, "trained")
    return root, run


@pytest.fixture
def project(trained: tuple[Path, dict[str, Any]], tmp_path: Path) -> Path:
    """A copy of the project."""
    shutil.copytree(trained[0], tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def run(trained: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    return trained[1]


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The seeds of each later training on the vectorised engine."""
    found, train = [], full_memory.train_together

    def noted(tasks, *args, **options):
        found.append([task.seed for task in tasks])
        return train(tasks, *args, **options)

    monkeypatch.setattr(full_memory, "train_together", noted)
    return found


def options(root: Path, **changes) -> Options:
    return Options(**{"root": root, "device": "cpu", "engine": "vectorised"} | changes)


def receipt(root: Path, run: dict[str, Any], seed: int) -> dict[str, Any]:
    return json.loads((root / f"results/runs/{run['run_id']}/seed{seed}.json").read_text())


def forget(root: Path, run: dict[str, Any], seeds: list[int] = SEEDS) -> None:
    """Deletes results and models of these seeds."""
    for folder in ("runs", "kept"):
        for seed in seeds:
            shutil.rmtree(root / "results" / folder / run["run_id"] / f"seed{seed}")
            (root / "results" / folder / run["run_id"] / f"seed{seed}.json").unlink()


def models(root: Path, run: dict[str, Any]) -> dict[str, bytes]:
    folder = root / "results/kept" / run["run_id"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}


@pytest.mark.parametrize("kind", FOLDERS)
def test_an_artifact_is_drawn_only_if_each_of_its_files_is_there(kind: str, project: Path, run: dict[str, Any]) -> None:
    """Without one of them it counts as missing, and is drawn again."""
    artifact = run["inputs"][kind]
    files = [*(project / FOLDERS[kind] / artifact).glob("seed8.*")]
    assert len(files) >= 2
    for path in files:
        assert drawn(kind, artifact, 8, project) == project / FOLDERS[kind] / artifact / "seed8.json"
        content = path.read_bytes()
        path.unlink()
        assert drawn(kind, artifact, 8, project) is None
        path.write_bytes(content)


def test_the_record_names_them(project: Path, run: dict[str, Any]) -> None:
    """The record lists the seeds in training order. The sequential engine trains seeds one by one and records no such list."""
    for seed in SEEDS:
        found = receipt(project, run, seed)
        assert found["environment"]["together"] == together(found) == SEEDS
        assert found["cost"]["seeds_at_once"] == 3
    assert beside(project, run["run_id"], [9, 11]) == [9, 11, 8, 10]
    before = receipt(project, run, 9)
    forget(project, run)
    assert run_seeds(run, [9], options(project, engine="sequential")) == {9: "trained"}
    assert "together" not in receipt(project, run, 9)["environment"]
    assert before["curves"] != receipt(project, run, 9)["curves"]


def test_who_trained_otherwise_has_a_training_of_its_own(
    project: Path, run: dict[str, Any], trainings: list[list[int]]
) -> None:
    """Seed 9 trains alone, after the others. Its numbers differ from before, and training it alone again gives the same
    ones."""
    before = receipt(project, run, 9)
    forget(project, run, [9])
    assert run_seeds(run, [9], options(project)) == {9: "trained"}
    assert receipt(project, run, 9)["environment"]["together"] == [9]
    assert receipt(project, run, 9)["curves"] != before["curves"], "the last bits depend on the company"
    assert run_seeds(run, SEEDS, options(project, again=True)) == dict.fromkeys(SEEDS, "trained again, identical")
    assert trainings == [[9], SEEDS, [9]]


def test_a_record_that_does_not_name_them(project: Path, run: dict[str, Any], trainings: list[list[int]]) -> None:
    """Older versions wrote such records. The seed trains alone, and the line says why other numbers may have come out."""
    old = receipt(project, run, 8)
    del old["environment"]["together"]
    forget(project, run, [8])
    path = project / f"reports/short/fedlaw/evidence/{run['run_id']}/seed8.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(seal({key: value for key, value in old.items() if key != "digest"})))
    with pytest.raises(
        UserError, match=r"seed8\.json: trained again, .* \(2 seeds trained with it that it does not name, or an"
    ):
        run_seeds(run, [8], options(project, again=True))
    assert trainings == [[8]]


def test_models_are_kept_afterwards(project: Path, run: dict[str, Any], trainings: list[list[int]]) -> None:
    """One training gives the models of all seeds that lack them, up to the last wanted round, with the bytes of a normal
    run."""
    before = models(project, run)
    shutil.rmtree(project / "results/kept")
    said = dict.fromkeys(SEEDS, "kept, models of round 2 trained again")
    assert run_seeds(run, SEEDS, options(project, keep=(2,))) == said
    assert models(project, run) == before
    shutil.rmtree(project / "results/kept")
    assert run_seeds(run, [10], options(project, keep=(2,))) == {10: said[10]}
    assert models(project, run) == {name: content for name, content in before.items() if name.startswith("seed10")}
    assert run_seeds(run, [10], options(project, keep=(2,))) == {10: "kept"}
    assert trainings == [SEEDS, SEEDS]
    assert not list(project.glob("results/checkpoints/**/*.pt"))


def test_shared_rounds_of_a_training_for_models_are_not_left_behind(project: Path, run: dict[str, Any]) -> None:
    """The state after rounds that runs share is deleted, as after a normal training."""
    shutil.rmtree(project / "results/kept")
    shared = (Fork(1, 0, [run["run_id"]]),)
    said = dict.fromkeys(SEEDS, "kept, models of round 2 trained again")
    assert run_seeds(run, SEEDS, options(project, keep=(2,), forks=shared)) == said
    assert not list(project.glob("results/checkpoints/**/*.pt"))


def test_files_of_a_process_that_was_killed_while_saving_are_deleted(project: Path, run: dict[str, Any]) -> None:
    """Those of a training for models stay until a process has its lock."""
    folder = project / "results/checkpoints" / run["run_id"]
    folder.mkdir(parents=True, exist_ok=True)
    for name in (".seed8.pt.x.pt", ".seed8.json.x.json", ".seed8-kept.pt.x.pt"):
        (folder / name).touch()
    run_seeds(run, [8], options(project))
    assert [path.name for path in folder.iterdir()] == [".seed8-kept.pt.x.pt"]
    run_seeds(run, [8], options(project, keep=(2,)))
    assert not [*folder.iterdir()]


def test_a_stopped_training_for_models_goes_on(
    project: Path, run: dict[str, Any], trainings: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training is killed in its second round. The same call continues it; a call that wants an earlier round starts anew."""
    before, original, seen = models(project, run), engine_run.kept.first_difference, []
    shutil.rmtree(project / "results/kept")

    def die(record, rows, round: int) -> str:
        seen.append(round)
        if seen == [0, 0, 0, 1]:
            raise KeyboardInterrupt
        return original(record, rows, round)

    monkeypatch.setattr(engine_run.kept, "first_difference", die)
    with pytest.raises(KeyboardInterrupt):
        run_seeds(run, SEEDS, options(project, keep=(2,), checkpoint_s=0.0))
    assert run_seeds(run, SEEDS, options(project, keep=(2,), checkpoint_s=0.0))[8].endswith("round 2 trained again")
    assert seen == [0, 0, 0, 1, 1, 1, 1]
    assert models(project, run) == before


def test_a_call_for_an_earlier_round_starts_anew(
    project: Path, run: dict[str, Any], trainings: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training for round 2 is killed after its first round, with a checkpoint. A call for round 1 does not continue it."""
    shutil.rmtree(project / "results/kept")
    with monkeypatch.context() as patch:
        patch.setattr(engine_run.kept, "first_difference", stop_at_round_two)
        with pytest.raises(KeyboardInterrupt):
            run_seeds(run, SEEDS, options(project, keep=(2,), checkpoint_s=0.0))
    assert list(project.glob("results/checkpoints/*/seed8-kept.pt"))
    assert run_seeds(run, SEEDS, options(project, keep=(1,)))[8].endswith("round 1 trained again")
    assert (project / "results/kept" / run["run_id"] / "seed8/round1.safetensors").exists()
    assert trainings == [SEEDS, SEEDS]


def stop_at_round_two(record: object, rows: object, round: int) -> str:
    if round == 1:
        raise KeyboardInterrupt
    return ""


@pytest.mark.parametrize("asked", [SEEDS, SEEDS[:2]], ids=["the same seeds", "other ones"])
def test_a_stopped_seed_goes_on_in_the_same_company(
    asked: list[int], project: Path, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the same seeds it gives the same bits. With other seeds it starts over and says so. Its record is true in both
    cases."""
    before = receipt(project, run, 8)
    forget(project, run)
    rounds(project, run, monkeypatch, stop=2)
    capsys.readouterr()
    assert run_seeds(run, asked, options(project)) == dict.fromkeys(asked, "trained")
    found, err = receipt(project, run, 8), capsys.readouterr().err
    assert together(found) == asked
    assert ("the seeds beside it); the seed starts over from round 0" in err) == (asked != SEEDS)
    assert (found["curves"] == before["curves"]) == (asked == SEEDS)
    assert run_seeds(run, asked, options(project, again=True)) == dict.fromkeys(asked, "trained again, identical")


def test_a_fresh_training_goes_on_from_its_own_checkpoint_alone(
    project: Path, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped training with `fresh` continues from its own checkpoint, and not from one of a training without `fresh`.
    Without `fresh` finished seeds are kept."""
    before = receipt(project, run, 8)
    forget(project, run)
    rounds(project, run, monkeypatch, stop=2)  # begun without `fresh`
    assert rounds(project, run, monkeypatch, stop=2, fresh=True) == [0, 1, 2]
    assert rounds(project, run, monkeypatch, fresh=True) == [2, 3]
    assert receipt(project, run, 8)["curves"] == before["curves"]
    rounds(project, run, monkeypatch, stop=2, fresh=True)
    assert run_seeds(run, SEEDS, options(project)) == dict.fromkeys(SEEDS, "kept")


def rounds(
    project: Path, run: dict[str, Any], monkeypatch: pytest.MonkeyPatch, stop: int | None = None, **more: Any
) -> list[int]:
    """Trains all seeds with a checkpoint after each round, and stops when round `stop` is reported. Returns the reported
    rounds."""
    seen, original = [], engine_run._Reporter.__call__

    def told(self, round: int, progress) -> None:
        seen.append(round)
        if round == stop:
            raise KeyboardInterrupt
        original(self, round, progress)

    with monkeypatch.context() as patch:
        patch.setattr(engine_run._Reporter, "__call__", told)
        if stop is None:
            run_seeds(run, SEEDS, options(project, checkpoint_s=0.0, **more))
        else:
            with pytest.raises(KeyboardInterrupt):
                run_seeds(run, SEEDS, options(project, checkpoint_s=0.0, **more))
    return list(dict.fromkeys(seen))


def test_another_model_with_the_same_numbers_is_not_identical(project: Path, run: dict[str, Any]) -> None:
    """The receipt has another sha256 of the model. With another torch it is not compared, and the file of metrics never is: the
    version of the library that wrote it stands in it."""
    forget(project, run)
    assert run_seeds(run, [8], options(project)) == {8: "trained"}
    old = receipt(project, run, 8)
    path = project / f"results/runs/{run['run_id']}/seed8.json"
    shutil.rmtree(path.with_suffix(""))

    def edit(file: str, **environment: str) -> None:
        new = old | {"files": old["files"] | {file: "0" * 64}, "environment": old["environment"] | environment}
        path.write_text(json_text(seal({key: value for key, value in new.items() if key != "digest"})))

    edit("model.safetensors")
    with pytest.raises(UserError, match="every number is the same, but the sha256 of the final model is another"):
        run_seeds(run, [8], options(project, again=True))
    for changed in (("model.safetensors", "1.0"), ("metrics.parquet", old["environment"]["torch"])):
        edit(changed[0], torch=changed[1])
        assert run_seeds(run, [8], options(project, again=True)) == {8: "trained again, identical"}
