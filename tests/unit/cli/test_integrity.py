"""Files changed after the run: every command that reads such a file names it, and its advice repairs it."""

import json
import shutil
from pathlib import Path

import pytest
import real_papers
import yaml

from fedrepro.cli import main
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.workflow.jobs import write_plan

SETTINGS = {"clients": 4, "rounds": 3, "local_epochs": 1, "batch_size": 64, "average_last": 1}
CELL = ["--rows", "fedavg", "--columns", "fashion_mnist-mlp-100"]
PLAN = "results/plans/demo/fedlaw/table3.json"
REPORT = ["report", PLAN, "--out", "reports/table3"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one run of FedLAW's Table 3, its evidence and its plan."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        real_papers.enter(folder, patch, yaml.safe_dump({"seeds": [8], "settings": SETTINGS}), "fedlaw")
        assert main(["run", "fedlaw/table3", *CELL]) == 0
        (receipt,) = Path("results/runs").glob("*/seed8.json")
        published = Path("reports/short/fedlaw/evidence", receipt.parent.name, "seed8.json")
        published.parent.mkdir(parents=True)
        shutil.copy(receipt, published)
        write_plan("demo/fedlaw/", plan(load_project(folder), "fedlaw", "table3", "demo"))
    return folder


@pytest.fixture
def project(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `trained` to damage, as the current folder."""
    real_papers.go(shutil.copytree(trained, tmp_path / "copy"), monkeypatch)
    return Path()


def one(pattern: str) -> Path:
    (path,) = Path().glob(pattern)
    return path


def change(path: Path, edit) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def to_98(content: dict) -> None:
    content["curves"]["test_accuracy"][-1] = 98.0


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def doctor(capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """The exit code of `doctor` and its lines on results and evidence."""
    capsys.readouterr()
    code = main(["doctor"])
    named = ("result folders", "receipts", "evidence")
    return code, [line for line in capsys.readouterr().out.splitlines() if line[5:].startswith(named)]


def test_doctor_finds_every_kind_of_damage(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Undamaged files are reported as sound. Then each damaged file has a line, and no other file has one."""
    assert [line.split() for line in doctor(capsys)[1]] == [
        ["ok", *name.split(), "1,", "each", "as", "it", "was", "written"] for name in ("result folders", "receipts", "evidence")
    ]
    manifest, receipt = one("results/runs/*/seed8/manifest.json"), one("results/runs/*/seed8.json")
    evidence, model = one("reports/short/fedlaw/evidence/*/seed8.json"), one("results/runs/*/seed8/model.safetensors")
    for path, spoil, named in (
        (manifest, lambda path: change(path, to_98), [manifest]),
        (receipt, lambda path: change(path, to_98), [receipt]),
        (evidence, lambda path: change(path, to_98), [evidence]),
        (model, flip, [model, receipt]),
        (manifest.with_name("metrics.parquet"), flip, [manifest.with_name("metrics.parquet"), receipt]),
    ):
        good = path.read_bytes()
        spoil(path)
        code, said = doctor(capsys)
        bad = [line for line in said if line.startswith("BAD")]
        assert len(bad) == len(named), bad
        assert all(f"{name}: " in line for name, line in zip(named, bad, strict=True)), bad
        assert code == 1
        path.write_bytes(good)
    assert not any(line.startswith("BAD") for line in doctor(capsys)[1])


def test_doctor_looks_for_the_mirror(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mirror may be a folder or an address. A path that does not exist is bad."""
    for mirror, good in ((str(project), "ok"), ("https://example.org/data", "ok"), (str(project / "nothing"), "BAD")):
        monkeypatch.setenv("FEDREPRO_MIRROR", mirror)
        main(["doctor"])
        assert f"{good:<4} mirror              {mirror}" in capsys.readouterr().out


def test_doctor_says_which_commit_results_will_name(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The project's copy has no repository. Then one is there that git refuses. Then git gives a commit."""
    main(["doctor"])
    assert "ok   commit              git says 'fatal: not a git repository" in capsys.readouterr().out
    Path(".git").mkdir()
    assert main(["doctor"]) == 1
    assert "BAD  commit              git says 'fatal: not a git repository" in capsys.readouterr().out
    for differs, rest in ((False, ""), (True, "src, papers or data/registry.yaml differ from commit ")):
        monkeypatch.setattr("fedrepro.engine.checkout.state", lambda differs=differs: ("abc", differs))
        main(["doctor"])
        assert f"ok   commit              {rest}abc" in capsys.readouterr().out


def test_an_edited_receipt_reaches_neither_reports_nor_lists_nor_mlflow(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`report`, `runs` and `track` name the edited file. Once the user deletes the receipt, as the line advises, `run` writes
    it again from the seed's folder. If the seed has published evidence, `report` uses the evidence."""
    receipt, evidence = one("results/runs/*/seed8.json"), one("reports/short/fedlaw/evidence/*/seed8.json")
    good = receipt.read_bytes()
    for spoil in (lambda: change(receipt, to_98), lambda: receipt.write_text("")):
        spoil()
        assert main(REPORT) == 0
        kept = evidence.read_bytes()
        evidence.unlink()
        for command, code in ((REPORT, 2), (["runs"], 2), (["track", PLAN], 1)):
            capsys.readouterr()
            assert main(command) == code, command
            assert f"{receipt}: " in capsys.readouterr().err, command
        evidence.write_bytes(kept)
        assert kept == good
    receipt.unlink()
    assert main(["run", "fedlaw/table3", *CELL]) == 0
    assert "seed 8 kept" in capsys.readouterr().err
    assert receipt.read_bytes() == good


def test_edited_evidence_reaches_no_report(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With edited evidence `report` writes nothing. Once the evidence is deleted, as the line advises, `report` uses the local
    receipt."""
    evidence = one("reports/short/fedlaw/evidence/*/seed8.json")
    change(evidence, to_98)
    assert main(REPORT) == 2
    assert f"{evidence}: its digest is not that of its content" in capsys.readouterr().err
    assert not list(Path("reports").glob("table3.*"))
    evidence.unlink()
    assert main(REPORT) == 0
    assert "98.00" not in Path("reports/table3.md").read_text()


def results() -> dict[Path, bytes]:
    """Every file of the trained seeds."""
    return {path: path.read_bytes() for pattern in ("*/seed*.json", "*/seed*/*") for path in Path("results/runs").glob(pattern)}


def test_damaged_inputs_are_named_and_nothing_finished_is_lost(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If a byte in the arrays or in a partition is flipped, one line names the file, and the runs that need it do not train.
    Finished results do not change, and the same command succeeds once the file is repaired. The command also stops if the
    initial model of a finished seed was replaced."""
    finished, command = results(), ["run", "fedlaw/table3", "--rows", "fedprox", *CELL[2:], "--seeds", "8", "9"]
    for victim in (one("data/arrays/digits/1x28x28/train_images.npy"), one("data/partitions/*/seed8.npz")):
        good = victim.read_bytes()
        flip(victim)
        assert main(command) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert victim.name in said
        assert "sha256" in said
        assert results() == finished
        victim.write_bytes(good)
    assert main(command) == 0
    kept = results()
    assert finished.items() < kept.items()

    other, nine = one("data/init/*/seed8.safetensors"), one("data/init/*/seed9.safetensors")
    nine.replace(other)
    other.with_suffix(".json").write_text(nine.with_suffix(".json").read_text().replace('"seed": 9', '"seed": 8'))
    assert main(["run", "fedlaw/table3", *CELL]) == 2
    assert "another init" in capsys.readouterr().err.splitlines()[-1]
    assert results() == kept


OTHERS = (
    (lambda c: c["config"].__setitem__("client_lr", 0.5), "its settings are not those of run_id = "),
    (lambda c: c["config"].__setitem__("client_lr_", 0.5), "its settings are not those of run_id = "),
    (lambda c: c.__setitem__("method", "fedprox(mu=1.0)"), "its settings are not those of run_id = "),
)


def test_settings_that_are_not_the_run_ids_train_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An edited configuration file of a run gives one line and exit code 2. The restored file trains."""
    run = json.loads(Path(PLAN).read_text())["runs"][one("results/runs/*/seed8").parent.name]
    path, command = Path("results/configuration.json"), ["run", "results/configuration.json", "--seeds", "8"]
    shutil.rmtree("results/runs")
    init = "lenet-1x28x28-c10-000000"
    for edit, said in (*OTHERS, (lambda c: c["inputs"].__setitem__("init", init), f"inputs: init = '{init}'")):
        path.write_text(json.dumps(run))
        change(path, edit)
        assert main(command) == 2
        assert f"{path}: {said}" in capsys.readouterr().err
        assert not Path("results/runs").exists()
    path.write_text(json.dumps(run))
    assert main(command) == 0
    assert one("results/runs/*/seed8.json").is_file()


@pytest.mark.parametrize(("edit", "said"), [*OTHERS, (lambda c: c.pop("inputs"), "key 'runs.digits-mlp")])
def test_an_edited_plan_is_neither_rendered_nor_trained(
    edit, said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`report` of an edited plan gives one line, exit code 2 and no report. `run` takes no plan, edited or not."""
    run_id = one("results/runs/*/seed8").parent.name
    shutil.rmtree("results/runs")
    assert main(["run", PLAN, "--seeds", "8"]) == 2
    change(Path(PLAN), lambda plan: edit(plan["runs"][run_id]))
    assert main(["run", PLAN, "--seeds", "8"]) == 2
    assert f"{PLAN}: not the configuration of a run" in capsys.readouterr().err
    assert main(REPORT) == 2
    assert f"{PLAN}: {said}" in capsys.readouterr().err
    assert not Path("results/runs").exists()
    assert not list(Path("reports").glob("table3.*"))
