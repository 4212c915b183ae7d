"""Published pages: rendered from the evidence that is there, with the settings it was made with, whatever params.yaml says."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

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
    project.run(*site, "--forcerun", "plan")  # as today's code and tables have it
    before = contents(project, "full", "short", "")
    assert len(before) > 50
    project.params(edit)
    again = project.run(*site)
    assert "Nothing to be done" in again.stdout + again.stderr
    project.run(*site, "--forcerun", "plan")
    assert contents(project, "full", "short", "") == before


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """With an edited params.yaml, and the table's committed report as today's code renders it; tests leave it so."""
    project = make_project(tmp_path_factory.mktemp("clone") / "project")
    project.params(edit)
    project.run("snakemake", "--cores", "2", f"{TABLE}.md", "--forcerun", "report")
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
    force = ("--forcerun", "report") if name == "page edited" else ()
    clone.run("snakemake", "--cores", "2", f"{TABLE}.md", *force)
    assert contents(clone, "short/fedlaw") == before
    for made in ("results/runs", "data/arrays", "data/partitions", "data/init"):
        assert not (clone.root / made).exists(), made


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A small table at scale full on embedded data, with two published seeds, and with its evidence alone; params.yaml has
    another seed."""
    project = make_project(tmp_path_factory.mktemp("published") / "project", seeds=(11,))
    path = project.root / "papers/scales.yaml"
    scales = yaml.safe_load(path.read_text())
    scales["full"] |= {"published_seeds": SEEDS, "settings": {"dataset": "digits", **SMALL}}
    path.write_text(yaml.safe_dump(scales))
    project.params(lambda params: params.update(settings={}))
    shutil.rmtree(project.root / "reports/full/fedlaw", ignore_errors=True)  # the evidence that is really published
    project.run("snakemake", "--cores", "2", "reports/full/fedlaw/table3.md")
    assert {name.rpartition("/")[2] for name in project.trained()} == {"seed8", "seed9"}
    forget(project)
    return project


def forget(project: Project) -> None:
    """Leaves what a fresh clone has."""
    made = [".snakemake", "results", "mlflow.db", "mlartifacts", "logs", "reports/edited-full"]
    project.run("rm", "-rf", *made, *(f"data/{name}" for name in ("arrays", "partitions", "participation", "proxy", "init")))


def test_missing_evidence_is_trained_and_no_other(published: Project) -> None:
    """One seed of one run is gone: it alone is trained, and everything comes out as before."""
    before = contents(published, "full/fedlaw")
    evidence = sorted((published.root / "reports/full/fedlaw/evidence").rglob("seed9.json"))
    lost = random.Random(0).choice(evidence)
    curves = yaml.safe_load(lost.read_text())["curves"]
    lost.unlink()
    published.run("snakemake", "--cores", "2", "reports/full/fedlaw/table3.md")
    assert set(published.trained()) == {f"{lost.parent.name}/seed9"}
    assert yaml.safe_load(lost.read_text())["curves"] == curves
    after = contents(published, "full/fedlaw")
    assert {name for name in before if "/evidence/" in name and before[name] != after[name]} <= {
        str(lost.relative_to(published.root))
    }
    forget(published)


def test_own_values_at_a_published_scale_have_their_own_place(published: Project) -> None:
    """With scale full, a new seed and another mu: the short name trains that seed, and FedProx at all of them, and takes the
    rest from what is published, which stays as it is; the page with it has all of them."""
    before = contents(published, "full/fedlaw")
    content = (published.root / "params.yaml").read_text()

    def change(params: dict) -> None:
        params.update(seeds=[*SEEDS, 11], scale="full")
        params["methods"]["fedlaw"]["fedprox"]["mu"] = 0.5

    published.params(change)
    said = published.run("snakemake", "--cores", "2", "reports/table3.md")
    trained = set(published.trained())
    assert len(trained) == 2 * 3 + 2 * 2
    assert all(name.endswith("seed11") or "-fedprox-" in name for name in trained), trained
    assert "keeps to the paper's own" not in said.stderr
    published.run("snakemake", "--cores", "2", "reports/edited-full/fedlaw/index.html")
    own = yaml.safe_load((published.root / "reports/edited-full/fedlaw/table3.json").read_text())
    assert {tuple(cell["per_seed"]) for cell in own["cells"]} == {("11", "8", "9")}
    assert (published.root / "reports/edited-full/fedlaw/index.html").exists()
    said = published.run("snakemake", "--cores", "2", "reports/full/fedlaw/table3.md")
    assert "with params.yaml's: reports/edited-full/fedlaw" in said.stderr
    assert contents(published, "full/fedlaw") == before
    (published.root / "params.yaml").write_text(content)
    forget(published)
