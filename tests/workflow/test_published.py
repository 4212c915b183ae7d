"""Published pages are rendered from the existing evidence with its settings, whatever params.yaml says."""

import json
import random
import shutil
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest
import yaml

from fedrepro.cli import publish
from fedrepro.engine.fingerprints import RULE
from fedrepro.engine.records import seal
from fedrepro.errors import UserError
from fedrepro.files import write_json
from tests.workflow.conftest import SMALL, Project, copy_of, forget, make_project, scramble_times

TABLE = "reports/short/fedgh/table5-tiny20"
RENDER, PAGE = (("snakemake", "--cores", "2", target) for target in (f"{TABLE}.md", "reports/short/fedgh/index.html"))
FORCE = ("--forcerun", "page", "table")
SEEDS = [8]  # of the small table that `published` publishes


def contents(project: Project, *folders: str) -> dict[str, bytes]:
    """Every file below reports/<folder> except Snakemake's time stamps."""
    paths = [
        path
        for folder in folders
        for path in (project.root / "reports" / folder).rglob("*")
        if path.is_file() and path.name[0] != "."
    ]
    return {str(path.relative_to(project.root)): path.read_bytes() for path in paths}


def edit(params: dict) -> None:
    """Changes everything that a user may change for another run."""
    params.update(seeds=[8, 9, 10, 11], settings={"rounds": 3}, device="cpu", arithmetic="native", workers=2)
    params["methods"]["fedgh"]["gh"]["order"] = "ascending"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with committed pages, rendered as today's code and tables render them."""
    project = make_project(tmp_path_factory.mktemp("rendered") / "project", papers=("fedlaw", "fedgh"))
    file = project.root / f"{TABLE}.md"
    file.write_text("mine")
    project.run(*RENDER, *FORCE)
    project.run(*PAGE, *FORCE)  # after the table: the page shows which tables have files
    assert file.read_text() != "mine"
    return project


def test_committed_pages_are_only_rendered(rendered: Project) -> None:
    """After an edit of everything there is nothing to do. A forced rendering of pages, pictures and tables changes no byte. If
    they are deleted or have other times, the same command writes the same bytes again. A manually edited file is rendered again
    only with --forcerun. No data set is made, nothing is drawn or trained, and no record of earlier calls is needed."""
    project, file = rendered, rendered.root / f"{TABLE}.md"
    before = contents(project, "full", "short", "")
    assert len(before) > 50
    project.params(edit)
    file.write_text("mine")
    again = project.run(*PAGE, RENDER[-1])
    assert "Nothing to be done" in again.stdout + again.stderr
    assert file.read_text() == "mine"
    project.run("rm", "-rf", ".snakemake/metadata", "results")
    for ending in ("md", "html", "json"):
        (project.root / f"{TABLE}.{ending}").unlink()
    scramble_times(project.root, "reports", "papers", "data")
    project.run(*RENDER)
    assert contents(project, "full", "short", "") == before
    project.run(*PAGE, *FORCE)
    assert contents(project, "full", "short", "") == before
    for made in ("results/runs", "data/arrays", "data/partitions", "data/init"):
        assert not (project.root / made).exists(), made


def test_evidence_with_an_older_time_is_rendered(rendered: Project, tmp_path: Path) -> None:
    """Evidence restored from a backup has its old time. The workflow compares the content, so the page shows the restored
    number."""
    project, report = rendered, rendered.root / f"{TABLE}.json"
    shown = report.read_bytes()
    path = next((project.root / "reports/short/fedgh/evidence").glob("*/seed8.json"))
    shutil.copy2(path, tmp_path / "kept.json")
    other = json.loads(path.read_text())
    other["curves"]["test_accuracy"][-1] += 1.0
    write_json(path, seal(other))
    project.run(*RENDER)
    assert report.read_bytes() != shown
    shutil.copy2(tmp_path / "kept.json", path)
    project.run(*RENDER)
    assert report.read_bytes() == shown


REPORT = ("snakemake", "--cores", "2", "reports/full/fedlaw/table3.md")
PUBLISH = ("fedrepro", "publish", "fedlaw/table3", "--scale", "full")


@pytest.fixture(scope="module")
def published(chain: tuple[Project, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A small table at scale full on embedded data, with the runs of the demo, published at one seed and committed. params.yaml
    has another seed. At the end only data and the files of a clone remain."""
    project = copy_of(chain[0], tmp_path_factory.mktemp("published") / "project")
    project.params(lambda params: params.update(seeds=[11]))
    path = project.root / "papers/scales.yaml"
    scales = yaml.safe_load(path.read_text())
    demo = scales["demo"]
    scales["full"] |= {"published_seeds": SEEDS, "settings": demo["settings"] | SMALL, "methods": demo["methods"]}
    path.write_text(yaml.safe_dump(scales))
    project.params(lambda params: params.update(settings={}))
    shutil.rmtree(project.root / "reports/full/fedlaw", ignore_errors=True)  # the evidence that is published in reality
    trained, runs = project.trained(), project.root / "results/runs"
    runs.rename(runs.with_name("away"))
    refused = project.run(*PUBLISH, ok=False)
    assert refused.returncode == 2
    assert "have not run at scale full; run `snakemake --cores 8 reports/full/fedlaw/table3.md` first" in refused.stderr
    runs.with_name("away").rename(runs)
    project.run(*REPORT)
    assert project.trained() == trained
    assert sources(project, "full/fedlaw/table3") == {False: 6}
    said = project.run(*PUBLISH)
    assert "6 files published" in said.stderr + said.stdout
    project.run(*REPORT)
    assert sources(project, "full/fedlaw/table3") == {True: 6}
    project.commit()
    as_cloned(project)
    return project


def sources(project: Project, report: str) -> dict[bool, int]:
    """Number of runs of a report with published evidence (True), and without it (False)."""
    runs = json.loads((project.root / "reports" / report).with_suffix(".json").read_text())["runs"]
    return dict(Counter("/evidence/" in run["evidence"] for run in runs))


def as_cloned(project: Project) -> None:
    """Keeps only data and the files of a new clone."""
    forget(project)
    project.run("git", "checkout", "-q", ".")


def test_missing_evidence_is_trained_and_no_other(published: Project) -> None:
    """One run's evidence is missing. Only that run is trained, its evidence is published again, and everything is as before."""
    page = published.root / "reports/full/fedlaw/table3.json"
    before = json.loads(page.read_text())["cells"]
    evidence = sorted((published.root / "reports/full/fedlaw/evidence").rglob("seed8.json"))
    lost = random.Random(0).choice(evidence)
    curves = yaml.safe_load(lost.read_text())["curves"]
    lost.unlink()
    assert "0 files published, 1 are missing" in published.run(*PUBLISH, "--partial").stderr
    published.run(*REPORT)
    assert json.loads(page.read_text())["cells"] == before
    assert set(published.trained()) == {f"{lost.parent.name}/seed8"}
    assert not lost.exists(), "no rule makes evidence"
    published.run(*PUBLISH)  # evidence is missing in the tree, but no source was edited
    assert yaml.safe_load(lost.read_text())["curves"] == curves
    as_cloned(published)


def test_what_others_cannot_repeat_is_not_published(published: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one line and nothing is copied. Native arithmetic is published with --native."""
    lost = sorted((published.root / "reports/full/fedlaw/evidence").rglob("seed8.json"))[0]
    record = json.loads(lost.read_text())
    lost.unlink()
    local, about = published.root / "results/runs" / lost.parent.name / "seed8.json", record["environment"]
    for change, said in (
        ({"code": dict.fromkeys(record["code"], f"{RULE}0")}, "was made with other code of .*; train it again first"),
        ({"environment": about | {"commit": None}}, "was trained from no git checkout"),
        ({"environment": about | {"dirty": True}}, "was trained from sources that were not committed"),
        ({"environment": about | {"arithmetic": "native"}}, "give --native to publish it"),
    ):
        write_json(local, seal(record | change))
        with pytest.raises(UserError, match=said):
            publish._require_fit(local, native=False)
    refused = published.run(*PUBLISH, ok=False)
    assert refused.returncode == 2
    assert "give --native to publish it" in refused.stderr.splitlines()[-1]
    assert not lost.exists()
    published.run(*PUBLISH, "--native")
    assert lost.exists()
    monkeypatch.chdir(published.root)
    with pytest.raises(UserError, match="--scale demo: nothing of it is published; give --scale short or full"):
        publish.publish(Namespace(target="fedlaw/table3", scale="demo", native=False, partial=False))
    as_cloned(published)


def test_own_values_at_a_published_scale_stand_under_short_names(published: Project) -> None:
    """With scale full and another mu, the short name trains FedProx and takes the other runs from the published evidence, which
    does not change. Its page has all of them."""
    before = contents(published, "full/fedlaw")

    def change(params: dict) -> None:
        params.update(seeds=SEEDS, scale="full")
        params["methods"]["fedlaw"]["fedprox"]["mu"] = 0.5

    published.params(change)
    published.run("snakemake", "--cores", "2", "reports/table3.md")
    trained = set(published.trained())
    assert len(trained) == 2
    assert all("-fedprox-" in name for name in trained), trained
    own = json.loads((published.root / "reports/table3.json").read_text())
    assert all(cell["mean"] is not None for cell in own["cells"])
    assert own["header"]["own"]
    assert not own["header"]["comparable"]
    assert sources(published, "table3")[True] == 2 * 2
    again = published.run("snakemake", "--cores", "2", "reports/table3.md")
    assert "Nothing to be done" in again.stdout + again.stderr
    assert contents(published, "full/fedlaw") == before
    as_cloned(published)
