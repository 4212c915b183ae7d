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
from fedrepro.workflow import Workflow, plans, session

ROOT = Path(__file__).parents[3]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
TABLE = "short", "fedlaw", "table3-cifar10-jpeg"
REPORT = "reports/short/fedlaw/table3-cifar10-jpeg.md"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's files that decide the graph, with its own params.yaml, as the current folder."""
    for name in ("papers/fedlaw", "rules", "profiles"):  # the workflow plans every table there is: one paper's are enough
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("Snakefile", "params.yaml", "data/registry.yaml", "papers/scales.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    params = yaml.safe_load((tmp_path / "params.yaml").read_text())
    params["methods"] = {"fedlaw": params["methods"]["fedlaw"]}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEDREPRO_ERRORS", raising=False)
    monkeypatch.setenv("FEDREPRO_FORKSERVER", "")  # none: it would live as long as pytest
    return tmp_path


def load(**changes) -> Workflow:
    """The workflow of params.yaml with `changes`, as Snakemake's --config makes them."""
    params = yaml.safe_load(Path("params.yaml").read_text()) | {"device": "cpu"} | changes
    return Workflow(plans.make(params), params)


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
    assert all(re.fullmatch(both.apart, Path(path).parent.name) and path.endswith("seed8.json") for path in jpeg)


def test_without_such_tables_no_run_is_trained_seed_by_seed(project: Path) -> None:
    """The rule for them then matches nothing, not everything."""
    for table in [path for path in project.glob("papers/*/tables/*.yaml") if re.search(r"(?<!\{)\bseeds:", path.read_text())]:
        table.unlink()
    flow = load()
    assert not re.fullmatch(flow.apart, "")
    assert flow.drawn_seeds == flow.seeds


def dry_run(*arguments: str) -> str:
    """What Snakemake would do."""
    done = subprocess.run([SNAKEMAKE, "--cores", "2", "-n", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def test_a_clone_with_its_evidence_renders_without_training(project: Path) -> None:
    """With params.yaml's three seeds, whatever params.yaml says besides. Without one receipt its run is trained at that seed
    alone; no job of the others wakes."""
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
    assert set(re.findall(r"^(train|train_seed|evidence) +(\d+)$", said, re.MULTILINE)) == {
        ("train_seed", "1"),
        ("evidence", "1"),
    }
    jobs = [Job.of(project, run, made["seeds"]) for run in made["runs"].values()]
    assert {job.run["run_id"]: job.to_train for job in jobs if job.to_train} == {lost.parent.name: [8]}


def test_a_figure_is_asked_for_like_a_table(project: Path) -> None:
    """In params.yaml, under its short name, and on the paper's page; its report is a picture, which the summary does not read.
    It trains what its table trains, and its plan follows from the table's file too."""
    flow = load(tables=["fedlaw/table3", "fedlaw/figure15"])
    tables = {"reports/demo/fedlaw/table3.md", "reports/table3.md"}
    assert {*flow.reports()} == tables | {"reports/demo/fedlaw/figure15.svg", "reports/figure15.svg"}
    assert flow.documents() == ["reports/demo/fedlaw/table3.json"]
    assert flow.current_files("fedlaw", "figure15")[1] == "reports/demo/fedlaw/figure15.csv"
    files = {f"papers/fedlaw/{name}.yaml" for name in ("figures/figure15", "tables/table3", "paper")}
    assert files <= {*flow.plan_files("full", "fedlaw", "figure15")}
    assert "results/plans/full/fedlaw/figure15.json" in flow.page_plans("full", "fedlaw")
    assert {*flow.evidence("full", "fedlaw", "figure15")} < {*flow.evidence("full", "fedlaw", "table3")}
    said = dry_run("reports/figure15.svg", "reports/demo/fedlaw/index.html", "results/summary.json")
    for rule, jobs in {"figure": 1, "current_figure_fedlaw": 1, "page": 1, "report": 1, "train": 32}.items():
        assert re.search(rf"^{rule} +{jobs}$", said, re.MULTILINE), rule
    assert not re.search(r"^current_fedlaw ", said, re.MULTILINE)


def test_a_papers_page_under_its_short_name_makes_all_tables_and_figures(project: Path) -> None:
    """The page of a scale takes what is there; this one trains, at params.yaml's scale, and shows every table with a file."""
    asked = {path.stem for path in project.glob("papers/fedlaw/*/*.yaml")}
    said = dry_run("reports/fedlaw/index.html")
    counts = {rule: int(jobs) for rule, jobs in re.findall(r"^([a-z_]+) +(\d+)$", said, re.MULTILINE)}
    assert counts["report"] + counts["figure"] == len(asked)
    assert counts["current_page"] == 1
    assert counts["train"] >= 32
    assert "page" not in counts


def test_seeds_of_one_table_are_drawn_for_it_alone(project: Path) -> None:
    """One by one, so that fifty of them cost other tables nothing."""
    path = project / "papers/fedlaw/tables/table3-cifar10-jpeg.yaml"
    path.write_text(path.read_text().replace("seeds: [8]", "seeds: [8, 70, 71]"))
    assert load().drawn_seeds == load().seeds
    counts = dict(re.findall(r"^(partition\w*|participation\w*|proxy\w*|init\w*) +(\d+)$", dry_run(REPORT), re.MULTILINE))
    drawn = {rule: int(jobs) for rule, jobs in counts.items() if not rule.endswith("_seed")}
    assert {rule: int(jobs) for rule, jobs in counts.items() if rule.endswith("_seed")} == {
        f"{rule}_seed": 2 * jobs for rule, jobs in drawn.items()
    }
    assert drawn.keys() == {"partition", "participation", "proxy", "init"}
    assert "_seed" not in dry_run("reports/table3.md")


def test_the_announcement_counts_what_will_run(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """From the jobs that Snakemake is about to run, in a child; seeds that are there do not count, nothing to train is no
    line, and whatever goes wrong is one."""
    flow = load()
    ids = list(flow.plan("demo", "fedlaw", "table3")["runs"])[:2]
    own = next(iter(flow.plan("demo", "fedlaw", "table3-cifar10-jpeg")["runs"]))

    class Namespace:
        def __init__(self, **values):
            vars(self).update(values)

    def job(rule: str, **wildcards):
        return Namespace(rule=Namespace(name=rule), wildcards=Namespace(**wildcards))

    def said(cores: int | None, *jobs: object) -> str:
        child = session.announce(flow, Namespace(dag=Namespace(needrun_jobs=lambda: jobs), cores=cores))
        assert child is None or child.wait(60) == 0
        return capfd.readouterr().err

    jobs = [*(job("train", run_id=run_id) for run_id in ids), job("train_seed", run_id=own, seed="8"), job("plan", table="x")]
    for run_id, seed in ((ids[0], 8), (own, 8)):
        write_json(Path(f"results/runs/{run_id}/seed{seed}.json"), {})
    line = said(2, *jobs)
    assert line.startswith("fedrepro: training 2 runs with 5 seeds in all: about ")
    assert line.endswith(" with 2 cores\n")
    assert said(2, jobs[2]) == said(2) == ""
    registry = project / "data/registry.yaml"
    registry.write_text(registry.read_text().replace("\ndigits:", "\nnumbers:"))
    assert "how long this takes is not known" in said(None, *jobs)


def test_plans_are_kept_until_something_that_decides_them_changes(project: Path) -> None:
    """Read from their file they are the same, value for value; made anew after an edit, and where the file is damaged."""
    params = yaml.safe_load(Path("params.yaml").read_text())
    plans.save(params, plans.CACHE)
    kept = plans.CACHE.read_bytes()
    assert plans.load(params) == plans.make(params)
    assert plans.CACHE.read_bytes() == kept
    keys = {plans.key(params), plans.key(params | {"seeds": [1]})}
    for name in ("papers/scales.yaml", "data/registry.yaml", "papers/fedlaw/published/fedlaw_table3.csv"):
        Path(name).write_text(Path(name).read_text() + "\n")
        keys.add(plans.key(params))
    assert len(keys) == 5
    plans.CACHE.write_text('{"key": ')
    assert plans.load(params).seeds == params["seeds"]
    assert plans.CACHE.stat().st_size > 10_000
    assert plans.load(params | {"seeds": [1]}).seeds == [1]


def test_a_mistake_in_a_table_that_nobody_asks_for_stops_only_who_does(project: Path) -> None:
    """The graph of the others stands; asking for its reports is one line and exit code 2."""
    path = project / "papers/fedlaw/tables/table3-cifar10-jpeg.yaml"
    path.write_text(path.read_text().replace("method: fedavg}", "method: fedavgg}"))
    flow = load()
    assert len(flow.receipts()) > 10
    done = subprocess.run([SNAKEMAKE, "--cores", "1", "-n", REPORT], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("fedrepro: error: papers/fedlaw/tables/table3-cifar10-jpeg.yaml: ")
    assert "did you mean 'fedavg'" in done.stderr
