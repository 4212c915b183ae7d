"""The workflow as files: which seeds a table asks for, and that a clone with its evidence trains nothing."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from small_table import make_receipt

from fedrepro.cli.forecast import Job
from fedrepro.files import write_json
from fedrepro.workflow import Workflow

ROOT = Path(__file__).parents[3]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
TABLE = "short", "fedlaw", "table3-cifar10-jpeg"
REPORT = "reports/short/fedlaw/table3-cifar10-jpeg.md"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's files that decide the graph, with its own params.yaml, as the current folder."""
    for name in ("papers", "rules", "profiles"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("Snakefile", "params.yaml", "data/registry.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDREPRO_ERRORS", raising=False)
    return tmp_path


def load(**changes) -> Workflow:
    """The workflow of params.yaml with `changes`, as Snakemake's --config makes them."""
    return Workflow.load(yaml.safe_load(Path("params.yaml").read_text()) | {"device": "cpu"} | changes)


def test_a_budgets_seeds_are_asked_for_and_no_others(project: Path) -> None:
    """Evidence of seed 8 for the stand-in at scale short, of all three seeds elsewhere; drawn and trained for what is asked."""
    flow = load()
    assert {Path(path).stem for path in flow.evidence(*TABLE)} == {"seed8"}
    assert {Path(path).stem for path in flow.evidence("full", *TABLE[1:])} == {"seed8", "seed9", "seed10"}
    assert {Path(path).stem for path in flow.evidence("short", "fedlaw", "table3")} == {"seed8", "seed9", "seed10"}
    both = load(scale="short", tables=["fedlaw/table3", "fedlaw/table3-cifar10-jpeg"], seeds=[9, 10])
    asked = {(re.sub(r"-.*", "", Path(p).parent.name), Path(p).stem) for p in both.receipts()}
    assert {data: {seed for d, seed in asked if d == data} for data, _ in asked} == {
        "fashion_mnist": {"seed9", "seed10"},
        "cifar100": {"seed9", "seed10"},
        "cifar10": {"seed8", "seed9", "seed10"},
    }
    assert both.drawn_seeds == [9, 10, 8]
    jpeg = [path for path in both.receipts() if "cifar10-jpeg" in path]
    assert len(jpeg) == 19
    assert all(re.fullmatch(both.budget_runs, Path(path).parent.name) and path.endswith("seed8.json") for path in jpeg)


def test_without_such_tables_no_run_has_seeds_of_its_own(project: Path) -> None:
    """The rule for them then matches nothing, not everything."""
    (project / "papers/fedlaw/tables/table3-cifar10-jpeg.yaml").unlink()
    flow = load()
    assert flow.own_seeds == {}
    assert not re.fullmatch(flow.budget_runs, "")
    assert flow.drawn_seeds == flow.seeds


def dry_run(*arguments: str) -> str:
    """What Snakemake would do."""
    done = subprocess.run([SNAKEMAKE, "--cores", "2", "-n", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def test_a_clone_with_its_evidence_renders_without_training(project: Path) -> None:
    """With params.yaml's three seeds. Without one receipt its run is trained at that seed alone; the jobs of the others,
    which the new data wakes, find their evidence and keep it."""
    flow = load()
    made = flow.plan(*TABLE)
    for path in map(Path, flow.evidence(*TABLE)):
        write_json(path, make_receipt(made["runs"][path.parent.name], 8))
    said = dry_run(REPORT)
    assert re.search(r"^report +1$", said, re.MULTILINE)
    assert not re.search(r"^(train|train_seed|arrays|partition|evidence) +\d+$", said, re.MULTILINE)
    lost = Path(flow.evidence(*TABLE)[0])
    lost.unlink()
    said = dry_run(REPORT)
    assert f"train {lost.parent.name}, seed 8" in said
    assert not re.search(r"^train +\d+$", said, re.MULTILINE)
    jobs = [Job.of(project, run, made["seeds"]) for run in made["runs"].values()]
    assert {job.run["run_id"]: job.to_train for job in jobs if job.to_train} == {lost.parent.name: [8]}


def test_the_announcement_counts_what_will_run_and_never_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the jobs that Snakemake is about to run; seeds that are there do not count, `--touch` trains nothing, and a strange
    object is no error."""
    flow = load()
    ids = list(flow.plan("demo", "fedlaw", "table3")["runs"])[:2]
    own = next(iter(flow.plan("demo", "fedlaw", "table3-cifar10-jpeg")["runs"]))

    class Namespace:
        def __init__(self, **values):
            vars(self).update(values)

    def job(rule: str, **wildcards):
        return Namespace(rule=Namespace(name=rule), wildcards=Namespace(**wildcards))

    jobs = [*(job("train", run_id=run_id) for run_id in ids), job("train_seed", run_id=own, seed="8"), job("plan", table="x")]
    for run_id, seed in ((ids[0], 8), (own, 8)):
        write_json(Path(f"results/runs/{run_id}/seed{seed}.json"), {})
    flow.announce(Namespace(touch=False, dag=Namespace(needrun_jobs=lambda: jobs), cores=2))
    err = capsys.readouterr().err
    assert err.startswith("fedrepro: training 2 runs with 5 seeds in all: about ")
    assert err.endswith(" with 2 cores\n")
    del flow.project.registry["digits"]
    flow.announce(Namespace(touch=False, dag=Namespace(needrun_jobs=lambda: jobs), cores=2))
    assert "how long this takes is not known" in capsys.readouterr().err
    flow.announce(Namespace())
    flow.announce(Namespace(touch=False, dag=Namespace(needrun_jobs=list), cores=2))
    flow.announce(Namespace(touch=True, dag=Namespace(needrun_jobs=lambda: jobs), cores=2))
    assert capsys.readouterr().err == ""
