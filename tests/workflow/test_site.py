"""The pages of all papers in a fresh clone: from committed evidence alone, and as Snakemake's own report."""

import json

import pytest

from tests.workflow.conftest import Project

SITE = ("snakemake", "--cores", "2", "reports/index.md")
PAGE = "reports/short/fedlaw/index"


@pytest.fixture
def clone(project: Project) -> Project:
    """With the settings of the committed evidence."""
    project.params(lambda params: params.update(settings={}))
    return project


def test_pages_are_rendered_without_training_or_data(clone: Project) -> None:
    """The list names the paper whose evidence is committed; its page has the numbers; asked again there is nothing to do. No
    training, no data set, no drawing and no tracked run is made for it."""
    clone.run(*SITE)
    page = json.loads((clone.root / f"{PAGE}.json").read_text())
    assert page["about"]["runs_done"] == 19
    assert [table["table"] for table in page["tables"]] == ["table3-cifar10-jpeg"]
    assert "short/fedlaw/index.md" in (clone.root / "reports/index.md").read_text()
    assert (clone.root / f"{PAGE}.html").stat().st_size > 50_000
    for made in ("results/runs", "results/tracked", "data/arrays", "data/partitions", "mlflow.db"):
        assert not (clone.root / made).exists(), made
    again = clone.run(*SITE)
    assert "Nothing to be done" in again.stdout + again.stderr


def test_snakemakes_own_report_needs_no_network(clone: Project) -> None:
    """One HTML file with the list, the page and its pictures, made where no address can be reached."""
    clone.run(*SITE)
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    clone.run(*SITE, "--report", "report.html", **nowhere)
    text = (clone.root / "report.html").read_text()
    for shown in ("reports/index.html", f"{PAGE}.html", "gaps/table3-cifar10-jpeg-fedlaw-against-fedavg.svg"):
        assert shown in text, shown
