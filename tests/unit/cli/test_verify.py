"""`fedrepro verify` in a project with a small scale `short`: runs are trained, published, trained again and tampered with."""

import copy
import json
import math
import shutil
from pathlib import Path

import pytest
import real_papers
import yaml

from fedrepro.cli import main, verify
from fedrepro.cli.parser import parser
from fedrepro.cli.verify import sample
from fedrepro.config.grid import plan
from fedrepro.config.plan import Run
from fedrepro.config.project import load_project
from fedrepro.engine import run
from fedrepro.engine.records import Record, seal
from fedrepro.errors import UserError
from fedrepro.workflow.jobs import write_plan

SHORT = {"dataset": "digits", "clients": 4, "rounds": 3, "local_epochs": 1, "batch_size": 64, "average_last": 1}
TABLE = ["fedlaw/table3", "--rows", "fedavg", "--columns", "fashion_mnist-mlp-100", "--scale", "short"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one published cell of FedLAW's Table 3: two seeds."""
    folder = real_papers.copy(tmp_path_factory.mktemp("project"), "scale: demo\nseeds: [8, 9]\n")
    scales = yaml.safe_load((folder / "papers/scales.yaml").read_text())
    scales["short"] = {"note": "small", "settings": SHORT}
    (folder / "papers/scales.yaml").write_text(yaml.safe_dump(scales))
    with pytest.MonkeyPatch.context() as patch:
        real_papers.go(folder, patch)
        assert main(["run", *TABLE]) == 0
        for receipt in Path("results/runs").glob("*/seed*.json"):
            out = Path("reports/short/fedlaw/evidence", receipt.parent.name, receipt.name)
            out.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(receipt, out)
    shutil.rmtree(folder / "results")
    return folder


@pytest.fixture
def project(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `published` to tamper with, as the current folder."""
    return real_papers.go(shutil.copytree(published, tmp_path / "copy"), monkeypatch)


@pytest.fixture(scope="module")
def again(published: Path) -> Record:
    """The record of seed 8 as `verify` trains it again."""
    found, train_again = [], verify.train_again

    def train(*arguments) -> Record:
        found.append(train_again(*arguments))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        real_papers.go(published, patch)
        patch.setattr(verify, "train_again", train)
        assert main(["verify", *TABLE, "--seeds", "8"]) == 0
    return found[0]


@pytest.fixture
def trained_once(again: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the training in `verify` by that record. Evidence does not influence a training, so one training serves all
    tests."""

    def train(identity: Record, seed: int, how: run.Options) -> Record:
        assert (identity["run_id"], seed) == (again["run_id"], again["seed"])
        return copy.deepcopy(again)

    monkeypatch.setattr(verify, "train_again", train)


def change(path: Path, edit, forge: bool = True) -> None:
    """Edits evidence. With `forge` it gets a new digest, so only training again finds the edit."""
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(seal(content) if forge else content))


@pytest.mark.usefixtures("trained_once")
def test_a_page_that_does_not_say_what_the_evidence_gives_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The edited file of the page is named. Results in this folder do not count. Without a page there is no line."""
    command, stem = ["verify", *TABLE, "--seeds", "8"], "reports/short/fedlaw/table3"
    assert main(command) == 0
    assert "evidence gives" not in capsys.readouterr().out
    made = write_plan("short/fedlaw/", plan(load_project(project).as_published("short"), "fedlaw", "table3", "short"))
    assert main(["report", str(made), "--out", stem]) == 0
    assert main(command) == 0
    assert f"{stem} (.md, .html, .json, .csv, .tex): what the evidence gives\n" in capsys.readouterr().out
    page = Path(f"{stem}.md")
    page.write_text(page.read_text().replace("FedAvg", "FedBest"))
    assert main(command) == 1
    said = capsys.readouterr().out
    assert said.count("NOT WHAT THE EVIDENCE GIVES") == 1
    again = f"`snakemake --cores 8 {stem}.md --forcerun table` renders it anew"
    assert f"{stem}.md: NOT WHAT THE EVIDENCE GIVES: it was edited, or other code or evidence made it; {again}\n" in said
    assert "identical to the bit" in said


def test_identical(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`verify` finds both seeds identical by table, and one of them by run_id, in a folder without results or data. It writes
    no result."""
    run_id = next(project.glob("reports/short/fedlaw/evidence/*")).name
    for path in project.glob("reports/short/fedlaw/evidence/*/seed8.json"):
        shutil.copy(path, path.with_name("seed8 copy.json"))  # a file manager's copy is not a seed
    for target in (TABLE, [run_id, "--seeds", "9"]):
        shutil.rmtree(project / "data" / "partitions", ignore_errors=True)
        capsys.readouterr()
        assert main(["verify", *target]) == 0
        out = capsys.readouterr().out.splitlines()
        assert len(out) == (3 if target is TABLE else 2)
        assert all("identical to the bit (" in line and "of 3 rounds, final model)" in line for line in out[:-1])
        assert out[-1] == ("2 of 2" if target is TABLE else "1 of 1") + " identical to the bit"
    assert not list(project.glob("results/runs/**/*.safetensors"))


def test_a_training_that_cannot_run_is_not_verified(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line has the reason, and the exit code is 1."""

    def fail(*_: object) -> Record:
        raise UserError("the disk is full")

    monkeypatch.setattr(verify, "train_again", fail)
    assert main(["verify", *TABLE, "--seeds", "8"]) == 1
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.endswith("seed 8: NOT VERIFIED: the disk is full")
    assert last == "0 of 1 identical to the bit"


def test_what_is_from_a_gpu_is_left_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If one of two seeds is from a GPU, a sentence says that it is left out. If all are, one line says so, with exit code
    2."""
    first, second = sorted(project.glob("reports/short/fedlaw/evidence/*/seed*.json"))
    change(first, lambda content: content["environment"].update(device="cuda"))
    assert main(["verify", *TABLE]) == 0
    said = capsys.readouterr()
    assert "1 of 2 published trainings are from a GPU, whose bits no other machine repeats: they are left out" in said.err
    assert said.out.splitlines()[-1] == "1 of 1 identical to the bit"
    change(second, lambda content: content["environment"].update(device="cuda"))
    assert main(["verify", *TABLE]) == 2
    assert "2 of 2 published trainings are from a GPU" in capsys.readouterr().err


def test_a_changed_digit(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The changed number is named with the reason, and the exit code is 1. The other seed is still identical."""
    (path,) = project.glob("reports/short/fedlaw/evidence/*/seed8.json")
    change(path, lambda content: content["curves"]["test_accuracy"].__setitem__(1, 50.125))
    assert main(["verify", *TABLE]) == 1
    out = capsys.readouterr().out
    assert "seed 8: DIFFERS: test_accuracy of round 1 is " in out
    assert ", published is 50.125" in out
    assert "its own sha256 of metrics and model are those of this training: numbers in the file were changed afterwards" in out
    assert "seed 9: identical to the bit" in out
    assert out.endswith("1 of 2 identical to the bit\n")


@pytest.mark.usefixtures("trained_once")
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda c: c["curves"]["test_accuracy"].__setitem__(1, 98), "DIFFERS: test_accuracy of round 1 is "),
        (lambda c: c["cost"].__setitem__("wall_s", 0.5), "DIFFERS: all that a training gives is identical, but the file was"),
        (lambda c: c.pop("digest"), "DIFFERS: all that a training gives is identical, but the file was changed"),
    ],
)
def test_an_edit_without_a_new_digest(edit, said: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`verify` names the file before it trains, even if the new training gives the same numbers. The exit code is 1."""
    (path,) = project.glob("reports/short/fedlaw/evidence/*/seed8.json")
    change(path, edit, forge=False)
    assert main(["verify", *TABLE, "--seeds", "8"]) == 1
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert f"{path.relative_to(project)}: it" in first
    assert "digest" in first
    assert said in second


@pytest.mark.usefixtures("trained_once")
@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda c: c["config"].__setitem__("client_lr", 0.5), "another config"),
        (lambda c: c["summary"].__setitem__("best_test_accuracy", 99.0), "another summary"),
        (
            lambda c: c["inputs"].__setitem__("partition", "0" * 64),
            "because it was computed from partition with another sha256",
        ),
        (lambda c: c["files"].__setitem__("model.safetensors", "0" * 64), "another sha256 of the final model"),
        (lambda c: c["files"].clear(), "another sha256 of the recorded metrics; another sha256 of the final model"),
        (lambda c: c["curves"].__setitem__("test_top5", [1, 2, 3]), "metric test_top5 is in one of them only"),
        (lambda c: c["curves"].pop("test_loss"), "metric test_loss is in one of them only"),
        (lambda c: c.__setitem__("seed", 9), "another seed"),
        (
            lambda c: (c["environment"].pop("arithmetic"), c["curves"]["test_loss"].__setitem__(0, 1.0)),
            "because it was not computed in portable arithmetic",
        ),
        (
            lambda c: c["environment"].update(torch="1.0", platform="Linux-6-aarch64-with-glibc2.17"),
            None,  # another environment with the same numbers is identical
        ),
        (
            lambda c: (
                c["environment"].update(torch="1.0", platform="Linux-6-aarch64-with-glibc2.17"),
                c["curves"]["test_loss"].__setitem__(2, 1.0),
            ),
            "because torch was 1.0, here it is",
        ),
    ],
)
def test_what_differs_and_why(edit, expected: str | None, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`verify` names settings, summary, inputs, metrics and model that differ, and the environment that may explain it."""
    (path,) = project.glob("reports/short/fedlaw/evidence/*/seed8.json")
    change(path, edit)
    assert main(["verify", *TABLE, "--seeds", "8"]) == int(expected is not None)
    out = capsys.readouterr().out
    assert (expected or "identical to the bit (") in out
    if expected and "torch" in expected:
        assert "architecture was aarch64, here it is" in out
        assert "C library was glibc2.17, here it is" in out


def test_verify_computes_as_the_published_runs_did() -> None:
    """It ignores `arithmetic: native` in params.yaml, since published trainings are portable."""
    assert [parser().parse_args([command, "fedlaw/table3"]).arithmetic for command in ("verify", "run")] == ["portable", None]


def test_nothing_published(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line names the folders that were searched."""
    assert main(["verify", "fedgh/table2"]) == 2
    told = capsys.readouterr().err
    assert "fedgh/table2: no evidence of it below reports/full or reports/short" in told
    assert told.count("\n") == 1
    assert "`fedrepro run <table> --again` trains again what was trained here" in told
    assert main(["verify", *TABLE[:2], "fedavgg", *TABLE[3:]]) == 2
    assert "fedavgg" in capsys.readouterr().err


def test_seeds_that_are_not_published(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line names the published seeds. Without --scale, a seed is found at whichever scale has it."""
    (run_id,) = (folder.name for folder in project.glob("reports/short/fedlaw/evidence/*"))
    for target in (TABLE, [run_id], TABLE[:-2]):
        assert main(["verify", *target, "--seeds", "99"]) == 2
        said = capsys.readouterr().err
        assert f"--seeds 99: {target[0]} has evidence of other seeds only, 8, 9; name some of them" in said
    made = plan(load_project(project).as_published("full"), *TABLE[0].split("/"), "full")
    (cell,) = (one for one in made.planned if (one.row, one.column) == (TABLE[2], TABLE[4]))
    full = project / "reports/full/fedlaw/evidence" / (cell.run_id or "") / "seed17.json"
    full.parent.mkdir(parents=True)
    shutil.copy(project / "reports/short/fedlaw/evidence" / run_id / "seed8.json", full)
    assert main(["verify", *TABLE[:-2], "--seeds", "9"]) == 0
    assert capsys.readouterr().out.endswith("1 of 1 identical to the bit\n")


def test_a_run_that_another_paper_has_published(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`publish` copies the evidence byte by byte and only once. Then `verify` finds it under the second paper too."""
    shutil.copytree(project / "papers/fedlaw/tables", project / "papers/twin/tables")
    shutil.copy(project / "papers/fedlaw/paper.yaml", project / "papers/twin")
    shutil.copytree(project / "papers/fedlaw/published", project / "papers/twin/published")
    path = project / "papers/scales.yaml"
    scales = yaml.safe_load(path.read_text())
    scales["short"]["published_seeds"] = [8, 9]
    path.write_text(yaml.safe_dump(scales))
    verify_twin = ["verify", "twin/table3", *TABLE[1:]]
    assert main(verify_twin) == 2
    publish = ["publish", "twin/table3", "--scale", "short", "--partial"]
    assert main(publish) == 0
    said = capsys.readouterr().err
    assert "reports/short/twin/evidence: 2 files published" in said
    assert "next: snakemake --cores 8 reports/short/twin/table3.md, then commit reports/short/twin" in said
    first, second = (
        {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*.json")}
        for folder in (project / f"reports/short/{paper}/evidence" for paper in ("fedlaw", "twin"))
    )
    assert first == second
    assert main(publish) == 0
    assert "reports/short/twin/evidence: 0 files published" in capsys.readouterr().err
    assert main(verify_twin) == 0
    assert capsys.readouterr().out.endswith("2 of 2 identical to the bit\n")


def test_the_sample(tmp_path: Path) -> None:
    """The sample has at least one seed and otherwise as many as fit the minutes. It is always the same. Without a limit it has
    all."""
    found = []
    for number, minutes in enumerate((3, 4, 5, 60)):
        path = tmp_path / f"seed{number}.json"
        path.write_text(json.dumps({"cost": {"wall_s": minutes * 60}}))
        found.append((Run("a", "sgd()", "fedavg", {}, {}), path))
    cost = lambda chosen: sum(json.loads(path.read_text())["cost"]["wall_s"] for _, path in chosen) / 60  # noqa: E731
    assert len(sample(found, math.inf)) == 4
    assert len(sample(found, 0)) == 1
    assert sample(found, 0) == sample(found[::-1], 0)
    first = cost(sample(found, 0))
    assert len(sample(found, first + 8)) > 1
    assert cost(sample(found, first + 8)) <= first + 8
    assert len(sample(found, 100)) == 4
