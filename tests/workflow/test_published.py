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
from tests.workflow.conftest import SMALL, Project, called, copy_of, forget, make_project, scramble_times

TABLE, PAPER = "reports/short/fedgh/table5-tiny20", "reports/short/fedgh/index"
RENDER = ("snakemake", "--cores", "2", f"{TABLE}.md")
SITE = (*RENDER[:-1], "reports/all.md", "reports/README.md")
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
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


def remove(project: Project, report: str) -> None:
    for ending in ("md", "html", "json"):
        (project.root / f"{report}.{ending}").unlink()


def nothing_was_made(project: Project, *more: str) -> bool:
    """Whether no data set was made, and nothing drawn or trained. `more`: further paths that must not exist."""
    made = ("results/runs", "data/arrays", "data/partitions", "data/init", *more)
    return not any((project.root / name).exists() for name in made)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with two papers. One has committed evidence, and its pages are rendered as today's code and tables render them:
    first a table, then the list of all pages with the paper's page, which shows which tables have files."""
    project = make_project(tmp_path_factory.mktemp("rendered") / "project", papers=("fedlaw", "fedgh"))
    for other in ("full/fedlaw", "full/fedgh", "short/fedlaw"):
        shutil.rmtree(project.root / "reports" / other)
    file = project.root / f"{TABLE}.md"
    file.write_text("mine")
    project.run(*RENDER, "--forcerun", "table")
    assert file.read_text() != "mine"
    remove(project, PAPER)
    project.run("rm", "-rf", "results", "mlflow.db")
    project.run(*SITE)
    return project


def test_pages_are_rendered_without_training_data_or_network(rendered: Project) -> None:
    """The list names the paper with committed evidence and not the one without. Its page has the numbers. Nothing is trained,
    prepared, drawn or tracked. Snakemake makes one HTML file of the list, the page and its pictures."""
    project = rendered
    page = json.loads((project.root / f"{PAPER}.json").read_text())
    evidence = list((project.root / "reports/short/fedgh/evidence").glob("*/seed*.json"))
    assert len(evidence) >= 2
    assert f" cells, {len(evidence)} of " in (project.root / f"{PAPER}.md").read_text()
    assert {"table5-tiny20"} == {cell["table"] for cell in page["cells"]}
    for listed in ("all.md", "README.md"):
        text = (project.root / "reports" / listed).read_text()
        assert "short/fedgh/index.md" in text
        assert "fedlaw/index.md" not in text
    for name in (f"{PAPER}.html", "reports/short/fedgh/details.html"):
        assert (project.root / name).stat().st_size > 20_000
    assert nothing_was_made(project, "results/tracked", "mlflow.db")
    # Snakemake's own report, with all network addresses blocked.
    project.run(*SITE, "--report", "report.html", **NOWHERE)
    text = (project.root / "report.html").read_text()
    gap = "gaps/table5-tiny20-fedavg-gh-against-fedavg.svg"
    for shown in ("reports/all.html", "reports/index.html", f"{PAPER}.html", gap):
        assert shown in text, shown


def test_committed_pages_are_only_rendered(rendered: Project, tmp_path: Path) -> None:
    """A page shows a number that was edited in the evidence. Evidence restored from a backup has its old time. The workflow
    compares the content, so the page shows the restored number, although everything in params.yaml was edited. A manually
    edited page is not rendered again. If pages are deleted or have other times, the same command writes the same bytes again,
    and so does a forced rendering of a page and its pictures. No data set is made, nothing is drawn or trained, and no record
    of earlier calls is needed."""
    project, file, report = rendered, rendered.root / f"{TABLE}.md", rendered.root / f"{TABLE}.json"
    before, shown = contents(project, "short", ""), report.read_bytes()
    assert len(before) > 10
    path = next((project.root / "reports/short/fedgh/evidence").glob("*/seed8.json"))
    shutil.copy2(path, tmp_path / "kept.json")
    other = json.loads(path.read_text())
    other["curves"]["test_accuracy"][-1] += 1.0
    write_json(path, seal(other))
    project.run(*RENDER)
    assert report.read_bytes() != shown

    shutil.copy2(tmp_path / "kept.json", path)
    project.params(edit)
    project.run(*RENDER)
    assert contents(project, "short", "") == before
    file.write_text("mine")
    again = project.run(*RENDER, *SITE[-2:])
    assert "Nothing to be done" in again.stdout + again.stderr
    assert file.read_text() == "mine"

    project.run("rm", "-rf", ".snakemake/metadata", "results")
    remove(project, TABLE)
    scramble_times(project.root, "reports", "papers", "data")
    project.run(*RENDER)
    assert contents(project, "short", "") == before
    project.run(*RENDER[:-1], f"{PAPER}.html", "--forcerun", "page")
    assert contents(project, "short", "") == before
    assert nothing_was_made(project)


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
    refused = called(project, *PUBLISH[1:], code=2)
    assert "have not run at scale full; run `snakemake --cores 8 reports/full/fedlaw/table3.md` first" in refused
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
    assert "0 files published, 1 are missing" in called(published, *PUBLISH[1:], "--partial")
    published.run(*REPORT)
    assert json.loads(page.read_text())["cells"] == before
    assert set(published.trained()) == {f"{lost.parent.name}/seed8"}
    assert not lost.exists(), "no rule makes evidence"
    called(published, *PUBLISH[1:])  # evidence is missing in the tree, but no source was edited
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
    assert "give --native to publish it" in called(published, *PUBLISH[1:], code=2).splitlines()[-1]
    assert not lost.exists()
    called(published, *PUBLISH[1:], "--native")
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
    assert contents(published, "full/fedlaw") == before
    as_cloned(published)
