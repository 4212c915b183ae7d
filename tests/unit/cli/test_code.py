"""Results record the code that made them. The tests edit a copy of the package between commands.

Commands run in this process but take their fingerprints from the copy. A process that is killed, or that must compute with the
edited code, runs the copy itself.
"""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import real_papers
import yaml

from fedrepro import checkout, console
from fedrepro.cli import main
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.engine import fingerprints
from fedrepro.engine import run as engine_run
from fedrepro.engine.records import read, seal
from fedrepro.workflow.jobs import write_plan

ROOT = Path(__file__).parents[3]
COLUMN = "fashion_mnist-mlp-0.1"
SMALL = {"dataset": "digits", "clients": 4, "rounds": 3, "local_epochs": 1, "batch_size": 64, "average_last": 1}
TABLE = ["fedlaw/table3", "--rows", "fedprox", "--columns", COLUMN]
PART = "src/fedrepro/methods/client/fedprox.py"


class Folder:
    """A project with its own copy of the package."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def make(cls, root: Path) -> "Folder":
        """Copies the package and FedLAW's files, with a small scale `short`."""
        shutil.copytree(ROOT / "src", root / "src")
        real_papers.copy(root, "scale: short\nseeds: [8, 9]\n", "fedlaw")
        scales = yaml.safe_load((ROOT / "papers/scales.yaml").read_text())
        scales["short"] = {"note": "small", "settings": SMALL}
        (root / "papers/scales.yaml").write_text(yaml.safe_dump(scales))
        return cls(root)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        env = os.environ | {"PYTHONPATH": str(self.root / "src")}
        command = [sys.executable, "-m", "fedrepro", *arguments]
        return subprocess.Popen(
            command, cwd=self.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        """Runs a command, which must end with `code`, with the current fingerprints of the copy. Returns its stdout and
        stderr."""
        said, today = io.StringIO(), fingerprints.Code(self.root / "src/fedrepro")
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            patch.chdir(self.root)
            patch.setattr(console, "_log", None)
            patch.setattr(checkout, "PACKAGE", self.root / "src/fedrepro")
            patch.setattr(fingerprints, "load", lambda: today)
            assert main([*arguments]) == code, said.getvalue()
        return said.getvalue()

    def commit(self, message: str) -> str:
        """Commits the files that a training reads. Returns the commit."""
        git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(self.root))
        (self.root / ".gitignore").write_text("__pycache__/\n")
        read = ("src", "papers", "params.yaml", "data/registry.yaml")
        for command in (("init", "-q"), ("add", *read), ("commit", "-qm", message, "--allow-empty")):
            subprocess.run([*git, *command], check=True)
        return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()

    def edit(self, old: str, new: str, file: str = PART) -> None:
        text = (self.root / file).read_text()
        assert old in text
        (self.root / file).write_text(text.replace(old, new))

    def add(self, file: str = PART, line: str = "ADDED = 1") -> None:
        """Changes the code without changing what it computes."""
        with (self.root / file).open("a") as stream:
            stream.write(f"\n{line}\n")

    def receipts(self) -> dict[int, dict]:
        found = self.root.glob("results/runs/*fedprox*/seed*.json")
        return {int(path.stem[4:]): json.loads(path.read_text()) for path in sorted(found)}

    def fingerprints(self) -> dict[int, str]:
        return {seed: one["code"]["part fedprox"] for seed, one in self.receipts().items()}

    @property
    def run_folder(self) -> Path:
        (found,) = self.root.glob("results/runs/*fedprox*")
        return found

    def files(self) -> dict[str, bytes]:
        """The files of the run by name."""
        found = (path for path in self.run_folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.run_folder)): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with FedProx trained at seeds 8 and 9."""
    folder = Folder.make(tmp_path_factory.mktemp("code"))
    folder.run("run", *TABLE)
    return folder.root


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Folder:
    """A copy of `trained` to edit."""
    shutil.copytree(trained, tmp_path / "copy")
    return Folder(tmp_path / "copy")


def publish(folder: Folder) -> list[Path]:
    """Copies the receipts into the evidence of scale short. The run's own files stay."""
    found = []
    for receipt in folder.run_folder.glob("seed*.json"):
        path = folder.root / "reports/short/fedlaw/evidence" / receipt.parent.name / receipt.name
        path.parent.mkdir(parents=True, exist_ok=True)
        found.append(Path(shutil.copyfile(receipt, path)))
    return sorted(found)


def test_a_comment_trains_nothing_and_an_edit_trains_again(folder: Folder) -> None:
    """After a comment the seeds are kept. After an edit `runs` and `doctor` report stale seeds, and one line announces that
    they are trained again. Afterwards all seeds, including a new one, have the same fingerprint of code and enter one mean."""
    folder.add(line="# A comment.")
    before = folder.receipts()
    assert "seed 8 kept, seed 9 kept" in folder.run("run", *TABLE)
    said = "seed 8 kept, trained in portable arithmetic (--fresh trains it again in native arithmetic), seed 9 kept"
    assert said in folder.start("run", *TABLE, "--arithmetic", "native").communicate()[0]
    folder.add()
    assert "  stale: part fedprox changed\n" in folder.run("runs", "fedlaw/table3")
    doctor = folder.run("doctor")
    assert "code                2 of 2 local seeds stale: part fedprox changed\n" in doctor
    assert folder.receipts() == before
    said = folder.run("run", *TABLE, "--seeds", "8,9,11")
    assert "part fedprox changed since seeds 8 and 9 were trained; training them again\n" in said
    assert "over seeds 8, 9, 11\n" in said
    assert folder.receipts().keys() == {8, 9, 11}
    assert len({*folder.fingerprints().values()}) == 1
    assert folder.fingerprints()[8] != before[8]["code"]["part fedprox"]
    assert "stale" not in folder.run("runs", "fedlaw/table3")


def test_seeds_of_different_code_make_no_mean(folder: Folder) -> None:
    """A new seed that the table does not ask for trains alone. `runs` lists the older seeds on a line of their own, and
    `compare` shows no mean for the run."""
    folder.add()
    assert "changed since" not in folder.run("run", *TABLE, "--seeds", "11")
    run_id = folder.run_folder.name[-8:]
    assert f"  {run_id}  stale: part fedprox changed; also seed 11\n" in folder.run("runs", "fedlaw/table3")
    _, *own = [line for line in folder.run("runs", run_id).splitlines() if line.startswith("  ")]
    assert re.fullmatch(rf" +\d+\.\d\d ± \d+\.\d\d  8, 9   {run_id}  stale: part fedprox changed", own[0])
    assert re.fullmatch(rf" +\d+\.\d\d  11     {run_id}", own[1])
    folder.run("run", "fedlaw/table3", "--rows", "fedavg", "--columns", COLUMN, "--seeds", "8,9,11")
    said = folder.run("compare", *(path.name for path in sorted(folder.root.glob("results/runs/*"))))
    assert "B, seeds 8, 9: stale: part fedprox changed\n" in said
    assert re.search(r"^B  fedprox( +\d+\.\d\d){3} +– +– +– +– +\d", said, re.MULTILINE)


def test_the_engine_and_the_model_mark_and_train_nothing(folder: Folder) -> None:
    """Every command that lists the run names the changed code. `--fresh` trains the seed again from the start."""
    for file in ("src/fedrepro/engine/local.py", "src/fedrepro/models/mlp.py"):
        folder.add(file)
    said = folder.run("run", *TABLE)
    assert "seed 8 kept, made with other code of engine and model mlp, seed 9 kept, made with" in said
    assert "  made with other code of engine and model mlp\n" in folder.run("runs", "fedlaw/table3")
    before = folder.receipts()
    assert "changed since" not in folder.run("run", *TABLE, "--seeds", "8", "--fresh")
    after = folder.receipts()
    assert after[9] == before[9]
    assert after[8]["code"]["engine"] != before[8]["code"]["engine"]
    assert after[8]["cost"]["finished_at"] >= before[9]["cost"]["finished_at"]
    assert after[8]["curves"] == before[8]["curves"]


def test_a_run_that_was_deleted_is_trained_again(folder: Folder) -> None:
    """The same command gives the same numbers."""
    before = folder.receipts()
    shutil.rmtree(folder.run_folder)
    assert "kept" not in folder.run("run", *TABLE)
    assert {seed: one["curves"] for seed, one in folder.receipts().items()} == {k: one["curves"] for k, one in before.items()}


def test_rounds_of_another_engine_or_commit_are_not_gone_on_from(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rounds of a result come from one version of the code: after an edit of the engine the seed starts over from round 0.
    The receipt records the commit at the start of the training."""
    shutil.rmtree(folder.root / "results/runs")
    first = folder.commit("first")
    longer = ["run", *TABLE, "--set", "rounds=4", "--seeds", "8", "--checkpoint-seconds", "0"]
    commits, seen = [], []

    def commit(reporter, round, progress) -> None:
        if round == 1:
            commits.append(folder.commit("second"))

    def interrupt(reporter, round, progress) -> None:
        seen.append(round)
        if seen == [0, 1, 2]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engine_run._Reporter, "__call__", commit)
        folder.run(*longer)
    assert commits not in ([], [first])
    (receipt,) = (json.loads(path.read_text()) for path in folder.root.glob("results/runs/*fedprox*/seed8.json"))
    assert (receipt["environment"]["commit"], receipt["environment"]["dirty"]) == (first, False)
    shutil.rmtree(folder.root / "results/runs")
    with monkeypatch.context() as patch:
        patch.setattr(engine_run._Reporter, "__call__", interrupt)
        folder.run(*longer, code=130)
        assert len([*folder.root.glob("results/checkpoints/*fedprox*/seed8.pt")]) == 1
        folder.add("src/fedrepro/engine/batches.py")
        said = folder.run(*longer)
    assert "code of a part, or the seeds beside it); the seed starts over from round 0" in said
    assert seen == [0, 1, 2, 0, 1, 2, 3]


def test_a_kill_while_training_again_leaves_the_old_result(folder: Folder) -> None:
    """No byte of the old result changes, and it is still stale. The same command resumes from the checkpoint."""
    longer = [*TABLE, "--set", "rounds=40", "--seeds", "8", "--checkpoint-seconds", "0"]
    folder.run("run", *longer)
    (run_folder,) = (path.parent for path in folder.root.glob("results/runs/*/seed8.json") if _rounds(path) == 40)
    before = {path: path.read_bytes() for path in run_folder.rglob("*") if path.is_file()}
    folder.add()
    process = folder.start("run", *longer)
    (checkpoint,) = _wait(lambda: list(folder.root.glob(f"results/checkpoints/{run_folder.name}/seed8.pt")))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert {path: path.read_bytes() for path in run_folder.rglob("*") if path.is_file()} == before
    assert "stale: part fedprox changed" in folder.run("runs", "fedlaw/table3")
    said = folder.run("run", *longer)
    assert "training it again" in said
    assert "starts over" not in said
    receipt, old = json.loads((run_folder / "seed8.json").read_text()), json.loads(before[run_folder / "seed8.json"])
    assert receipt["code"] != old["code"]
    assert receipt["curves"] == old["curves"]
    assert not checkpoint.exists()


def _rounds(path: Path) -> int:
    return json.loads(path.read_text())["config"]["rounds"]


def _wait(found):
    for _ in range(2400):
        if there := found():
            return there
        time.sleep(0.05)
    raise AssertionError("nothing came")


def test_a_kill_between_two_renames_loses_neither(folder: Folder) -> None:
    """The process was killed after it moved the old folder aside and before it moved the new one into place. The next command
    restores the old folder."""
    before = folder.files()
    (folder.run_folder / "seed8").rename(folder.run_folder / ".seed8.before")
    assert "seed 8 kept" in folder.run("run", *TABLE, "--seeds", "8")
    assert folder.files() == before


def test_published_evidence_is_marked_and_not_replaced(folder: Folder) -> None:
    """Published seeds are kept and marked, with or without local files of the run. `--fresh` trains in this folder and leaves
    the evidence."""
    evidence = publish(folder)
    before = [path.read_bytes() for path in evidence]
    folder.add()
    kept = "seed 8 kept, made with other code of part fedprox, seed 9 kept, made with"
    assert kept in folder.run("run", *TABLE)
    assert "  made with other code of part fedprox\n" in folder.run("runs", "fedlaw/table3")
    shutil.rmtree(folder.run_folder)
    said = folder.run("run", *TABLE)
    assert kept in said
    assert "changed since" not in said
    assert "2 of 2 published seeds made with other code of part fedprox" in folder.run("doctor")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.root)
        made = write_plan("short/fedlaw/", plan(load_project(folder.root), "fedlaw", "table3", "short"))
    folder.run("report", str(made), "--out", "reports/short/fedlaw/table3")
    page = (folder.root / "reports/short/fedlaw/table3.md").read_text()
    assert "2 of 2 runs were trained with other code of part fedprox than today's" in page
    folder.run("run", *TABLE, "--seeds", "8", "--fresh")
    assert "stale" not in folder.run("runs", "fedlaw/table3")
    assert [path.read_bytes() for path in evidence] == before


def test_publish_names_what_differs_from_the_published_evidence(folder: Folder) -> None:
    """`publish` counts a seed whose numbers here differ from its evidence and says what to do. It does not count a seed that is
    identical to the bit or confirmed from the evidence. It copies nothing, so it names no next step."""
    eight, nine = publish(folder)
    path = folder.root / "papers/scales.yaml"
    scales = yaml.safe_load(path.read_text())
    scales["short"]["published_seeds"] = [8, 9]
    path.write_text(yaml.safe_dump(scales))
    command, place = ("publish", TABLE[0], "--scale", "short", "--partial"), "reports/short/fedlaw/evidence: 0 files published"
    assert "differ" not in folder.run(*command)
    accuracy = json.loads(eight.read_text())
    accuracy["curves"]["test_accuracy"][-1] += 1.0
    eight.write_text(json.dumps(seal(accuracy)))
    before = [one.read_bytes() for one in (eight, nine)]
    said = folder.run(*command)
    assert place in said
    told = (
        f"; 1 result here differs from what is published ({eight.relative_to(folder.root)}): delete that file to replace it\n"
    )
    assert told in said
    assert "next:" not in said
    assert [one.read_bytes() for one in (eight, nine)] == before
    elsewhere = folder.root / "reports/short/igfl/evidence" / eight.parent.name / eight.name
    elsewhere.parent.mkdir(parents=True)
    eight.rename(elsewhere)  # `publish` does not restore the file while another paper has the same evidence
    said = folder.run(*command)
    assert place in said
    assert f"({elsewhere.relative_to(folder.root)}): delete that file to replace it" in said
    assert not eight.exists()
    elsewhere.rename(eight)
    shutil.rmtree(folder.root / "results")
    folder.run("run", *TABLE)
    assert folder.receipts()[8]["curves"] == accuracy["curves"]
    assert "differs" not in folder.run(*command)


def test_verify_renews_what_is_identical_and_nothing_else(folder: Folder) -> None:
    """If the new code computes the same, `--renew` writes its fingerprints and the commit and changes nothing else. If not, it
    reports a difference and leaves the file. Evidence without fingerprints gets them too."""
    eight, nine = publish(folder)
    nine.write_text(json.dumps(seal({key: value for key, value in read(nine).items() if key != "code"})))
    shutil.rmtree(folder.root / "results")
    before = [path.read_bytes() for path in (eight, nine)]
    folder.add()
    verify = ["verify", *TABLE, "--all"]
    said = folder.run(*verify)
    assert said.count("made with other code of part fedprox\n") == 1
    assert "2 of 2 identical to the bit" in said
    assert [path.read_bytes() for path in (eight, nine)] == before
    commit = folder.commit("edited")
    assert folder.run(*verify, "--renew").count("has the fingerprints of today's code") == 2
    for path, old in zip((eight, nine), before, strict=True):
        new, was = read(path), json.loads(old)
        assert new["verified"].keys() == {"commit", "at"}
        assert new["verified"]["commit"] == commit
        assert {key for key in new if new[key] != was.get(key)} == {"code", "verified", "digest"}
    before = [path.read_bytes() for path in (eight, nine)]
    assert "has the fingerprints" not in folder.run(*verify, "--renew")
    folder.edit("self.mu * ", "2 * self.mu * ")
    folder.commit("another method")
    process = folder.start(*verify, "--renew", "--seeds", "8")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 1, said
    assert "made with other code of part fedprox\n" in said
    assert "DIFFERS" in said
    assert [path.read_bytes() for path in (eight, nine)] == before


def test_a_partition_of_other_code_is_drawn_again(folder: Folder) -> None:
    """If the scheme's code changed, the partition is drawn again and the seed is trained again, and both are announced. Other
    seeds are not touched."""
    scheme = "src/fedrepro/data/partition/dirichlet_per_class.py"
    before, drawn = folder.receipts(), next(folder.root.glob("data/partitions/*/seed8.npz"))
    old = drawn.read_bytes()
    folder.add(scheme)
    said = folder.run("run", *TABLE, "--seeds", "8")
    assert "dirichlet_per_class(alpha=0.1) changed since it was drawn; drawing it again\n" in said
    assert "partition dirichlet_per_class changed since seed 8 was trained; training it again\n" in said
    assert drawn.read_bytes() == old  # the same draw
    assert folder.receipts()[8]["code"] != before[8]["code"]
    assert folder.receipts()[9] == before[9]
    assert "drawing it again" not in folder.run("run", *TABLE, "--seeds", "8")
