"""Published pages: rendered from the evidence that is there, with the settings it was made with, whatever params.yaml says."""

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fedrepro.engine.records import seal
from fedrepro.files import write_json
from tests.workflow.conftest import SMALL, Project, make_project, scramble_times

TABLE = "reports/short/fedlaw/table3-cifar10-jpeg"
SEEDS = [8, 9]  # of the small table that is published below


def contents(project: Project, *folders: str) -> dict[str, bytes]:
    """Every file below reports/<folder> but Snakemake's time stamps."""
    paths = [
        path
        for folder in folders
        for path in (project.root / "reports" / folder).rglob("*")
        if path.is_file() and path.name[0] != "."
    ]
    return {str(path.relative_to(project.root)): path.read_bytes() for path in paths}


def edit(params: dict) -> None:
    """All that somebody may change for another run."""
    params.update(seeds=[8, 9, 10, 11], settings={"rounds": 3}, device="cpu", arithmetic="native", workers=2)
    params["methods"]["fedlaw"]["fedprox"]["mu"] = 0.5


def test_edits_for_another_run_leave_committed_pages_alone(project: Project) -> None:
    """A paper's pages before and after an edit of everything: there is nothing to do, and rendered all the same not a byte of
    pages, pictures and tables changes."""
    site = ("snakemake", "--cores", "2", "reports/short/fedlaw/index.html")
    project.run(*site, "--forcerun", "page")  # as today's code and tables have it
    before = contents(project, "full", "short", "")
    assert len(before) > 50
    project.params(edit)
    again = project.run(*site)
    assert "Nothing to be done" in again.stdout + again.stderr
    project.run(*site, "--forcerun", "page")
    assert contents(project, "full", "short", "") == before


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """With an edited params.yaml, and the table's committed report as today's code renders it; tests leave it so."""
    project = make_project(tmp_path_factory.mktemp("clone") / "project")
    project.params(edit)
    project.run("snakemake", "--cores", "2", f"{TABLE}.md", "--forcerun", "table")
    return project


SPOILT: dict[str, Callable[[Path], object]] = {
    "all deleted": lambda root: [(root / f"{TABLE}.{ending}").unlink() for ending in ("md", "html", "json")],
    "old": lambda root: os.utime(root / f"{TABLE}.html", (1e9, 1e9)),
    "page edited": lambda root: (root / f"{TABLE}.md").write_text("mine"),
    "any times": lambda root: scramble_times(root, "reports", "papers", "data"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_whatever_happens_to_a_committed_report_it_is_only_rendered(name: str, clone: Project) -> None:
    """The same command brings the same bytes back; a file edited by hand is only rendered over when Snakemake is told to. No
    data set is made, nothing drawn and nothing trained, with params.yaml edited and no record of earlier calls."""
    before = contents(clone, "short/fedlaw")
    clone.run("rm", "-rf", ".snakemake/metadata", "results")
    SPOILT[name](clone.root)
    force = ("--forcerun", "table") if name == "page edited" else ()
    clone.run("snakemake", "--cores", "2", f"{TABLE}.md", *force)
    assert contents(clone, "short/fedlaw") == before
    for made in ("results/runs", "data/arrays", "data/partitions", "data/init"):
        assert not (clone.root / made).exists(), made


REPORT = ("snakemake", "--cores", "2", "reports/full/fedlaw/table3.md")
PUBLISH = ("fedrepro", "publish", "fedlaw/table3", "--scale", "full")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A small table at scale full on embedded data, trained, published at two seeds and committed; params.yaml has another
    seed. Then nothing but what a clone has."""
    project = make_project(tmp_path_factory.mktemp("published") / "project", seeds=(11,))
    path = project.root / "papers/scales.yaml"
    scales = yaml.safe_load(path.read_text())
    scales["full"] |= {"published_seeds": SEEDS, "settings": {"dataset": "digits", **SMALL}}
    path.write_text(yaml.safe_dump(scales))
    project.params(lambda params: params.update(settings={}))
    shutil.rmtree(project.root / "reports/full/fedlaw", ignore_errors=True)  # the evidence that is really published
    refused = project.run(*PUBLISH, ok=False)
    assert refused.returncode == 2
    assert "have not run at scale full; run `snakemake reports/full/fedlaw/table3.md` first" in refused.stderr
    project.run("git", "init", "-q", "-b", "main")
    commit(project)
    project.run(*REPORT)
    assert {name.rpartition("/")[2] for name in project.trained()} == {"seed8", "seed9"}
    assert sources(project, "full/fedlaw/table3") == {False: 12}
    said = project.run(*PUBLISH)
    assert "12 files published" in said.stderr + said.stdout
    project.run(*REPORT)
    assert sources(project, "full/fedlaw/table3") == {True: 12}
    commit(project)
    forget(project)
    return project


def sources(project: Project, report: str) -> dict[bool, int]:
    """How many runs of a report have published evidence, and how many have not."""
    runs = json.loads((project.root / "reports" / report).with_suffix(".json").read_text())["runs"]
    return dict(Counter("/evidence/" in run["evidence"] for run in runs))


def commit(project: Project) -> None:
    project.run("git", "add", "-A")
    project.run("git", "commit", "-qm", "as it is")


def forget(project: Project) -> None:
    """Leaves what a fresh clone has."""
    made = [
        ".snakemake",
        "results",
        "mlflow.db",
        "mlartifacts",
        "logs",
        *project.root.glob("reports/table3.*"),
        "reports/fedlaw",
    ]
    project.run("rm", "-rf", *made, *(f"data/{name}" for name in ("arrays", "partitions", "participation", "proxy", "init")))
    project.run("git", "checkout", "-q", ".")


def test_missing_evidence_is_trained_and_no_other(published: Project) -> None:
    """One seed of one run is gone: it alone is trained, its evidence is published again, and everything comes out as before."""
    before = contents(published, "full/fedlaw")
    evidence = sorted((published.root / "reports/full/fedlaw/evidence").rglob("seed9.json"))
    lost = random.Random(0).choice(evidence)
    curves = yaml.safe_load(lost.read_text())["curves"]
    lost.unlink()
    published.run(*REPORT)
    assert set(published.trained()) == {f"{lost.parent.name}/seed9"}
    assert not lost.exists(), "no rule makes evidence"
    refused = published.run(*PUBLISH, ok=False)  # evidence is missing in the tree, but no source was edited
    assert refused.returncode == 0, refused.stderr
    assert yaml.safe_load(lost.read_text())["curves"] == curves
    published.run(*REPORT)
    after = contents(published, "full/fedlaw")
    numbers = lambda files: json.loads(files["reports/full/fedlaw/table3.json"])["cells"]  # noqa: E731
    assert numbers(after) == numbers(before)
    forget(published)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"commit": None}, "was trained from no git checkout"),
        ({"dirty": True}, "was trained from sources that were not committed"),
        ({"arithmetic": "native"}, "give --native to publish it"),
    ],
)
def test_what_others_cannot_repeat_is_not_published(change: dict, said: str, published: Project) -> None:
    """Refused in one line, and nothing is copied."""
    lost = sorted((published.root / "reports/full/fedlaw/evidence").rglob("seed9.json"))[0]
    record = json.loads(lost.read_text())
    lost.unlink()
    local = published.root / "results/runs" / lost.parent.name / "seed9.json"
    write_json(local, seal(record | {"environment": record["environment"] | change}))
    refused = published.run(*PUBLISH, ok=False)
    assert refused.returncode == 2
    assert said in refused.stderr.splitlines()[-1]
    assert not lost.exists()
    if "arithmetic" in change:
        published.run(*PUBLISH, "--native")
        assert lost.exists()
    forget(published)


def test_own_values_at_a_published_scale_stand_under_short_names(published: Project) -> None:
    """With scale full, a new seed and another mu: the short name trains that seed, and FedProx at all of them, and takes the
    rest from what is published, which stays as it is; the page with it has all of them."""
    before = contents(published, "full/fedlaw")

    def change(params: dict) -> None:
        params.update(seeds=[*SEEDS, 11], scale="full")
        params["methods"]["fedlaw"]["fedprox"]["mu"] = 0.5

    published.params(change)
    published.run("snakemake", "--cores", "2", "reports/table3.md")
    trained = set(published.trained())
    assert len(trained) == 2 * 3 + 2 * 2
    assert all(name.endswith("seed11") or "-fedprox-" in name for name in trained), trained
    own = json.loads((published.root / "reports/table3.json").read_text())
    assert {tuple(cell["per_seed"]) for cell in own["cells"]} == {("11", "8", "9")}  # as JSON sorts them
    assert own["header"]["own"]
    assert not own["header"]["comparable"]
    assert sources(published, "table3")[True] == 2 * 2 * 2
    again = published.run("snakemake", "--cores", "2", "reports/table3.md")
    assert "Nothing to be done" in again.stdout + again.stderr
    published.run(*REPORT)
    assert contents(published, "full/fedlaw") == before
    forget(published)


def test_published_evidence_is_marked_and_never_replaced(published: Project) -> None:
    """A part was edited since: its page says so, the evidence keeps its bytes, nothing is trained. `verify` finds a difference;
    where the edit changes no number it is identical, and --renew takes the fingerprints of today."""
    own = {"PYTHONPATH": str(published.root / "src")}
    before = contents(published, "full/fedlaw/evidence")
    part = published.root / "src/fedrepro/methods/client/fedprox.py"
    text = part.read_text()
    part.write_text(text.replace("self.mu", "(5.0 + self.mu)"))
    published.run(*REPORT, "--forcerun", "table", **own)
    assert "made with other code of part fedprox" in (published.root / "reports/full/fedlaw/table3.md").read_text()
    assert contents(published, "full/fedlaw/evidence") == before
    assert not published.trained()
    verify = (
        "fedrepro",
        "verify",
        "fedlaw/table3",
        "--rows",
        "fedprox",
        "--columns",
        "fashion_mnist-mlp-0.1",
        "--seeds",
        "8",
        "--all",
    )
    refused = published.run(*verify, "--renew", ok=False, **own)
    assert "have changes that are not committed" in refused.stderr
    said = published.run(*verify, ok=False, **own)
    assert said.returncode == 1
    assert "made with other code of part fedprox" in said.stdout
    assert contents(published, "full/fedlaw/evidence") == before
    part.write_text(text.replace("self.mu", "1.0 * self.mu"))
    commit(published)
    said = published.run(*verify, "--renew", **own)
    assert "identical to the bit" in said.stdout
    after = contents(published, "full/fedlaw/evidence")
    (renewed,) = [name for name in before if before[name] != after[name]]
    assert json.loads(after[renewed])["curves"] == json.loads(before[renewed])["curves"]
    assert json.loads(after[renewed])["verified"]["commit"]
