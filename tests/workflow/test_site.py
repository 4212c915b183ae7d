"""The page of a paper in a new clone, from committed evidence alone, and as Snakemake's own report."""

import json
import shutil
from pathlib import Path

from tests.workflow.conftest import TABLE, Project, make_project

SITE = ("snakemake", "--cores", "2", "reports/all.md", "reports/README.md")
PAGE = "reports/short/fedgh/index"
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


def test_pages_are_rendered_without_training_data_or_network(tmp_path: Path) -> None:
    """The list names the paper with committed evidence and not the one without. Its page has the numbers, and a second call has
    nothing to do. Neither call trains, prepares data, draws files or tracks a run. Snakemake makes one HTML file of the list,
    the page and its pictures."""
    project = make_project(tmp_path / "project", papers=("fedlaw", "fedgh"))
    for other in ("full/fedlaw", "full/fedgh", "short/fedlaw"):
        shutil.rmtree(project.root / "reports" / other)
    for ending in ("md", "html", "json"):
        (project.root / f"{PAGE}.{ending}").unlink()
    project.run(*SITE)
    page = json.loads((project.root / f"{PAGE}.json").read_text())
    evidence = list((project.root / "reports/short/fedgh/evidence").glob("*/seed*.json"))
    assert len(evidence) >= 2
    assert f" cells, {len(evidence)} of " in (project.root / f"{PAGE}.md").read_text()
    assert {"table5-tiny20"} == {cell["table"] for cell in page["cells"]}
    for listed in ("all.md", "README.md"):
        text = (project.root / "reports" / listed).read_text()
        assert "short/fedgh/index.md" in text
        assert "fedlaw/index.md" not in text
    for name in (f"{PAGE}.html", "reports/short/fedgh/details.html"):
        assert (project.root / name).stat().st_size > 20_000
    for made in ("results/runs", "results/tracked", "data/arrays", "data/partitions", "mlflow.db"):
        assert not (project.root / made).exists(), made
    again = project.run(*SITE)
    assert "Nothing to be done" in again.stdout + again.stderr
    # Snakemake's own report, with all network addresses blocked.
    project.run(*SITE, "--report", "report.html", **NOWHERE)
    text = (project.root / "report.html").read_text()
    gap = "gaps/table5-tiny20-fedavg-gh-against-fedavg.svg"
    for shown in ("reports/all.html", "reports/index.html", f"{PAGE}.html", gap):
        assert shown in text, shown


def test_snakemakes_report_of_a_short_name(made: Project) -> None:
    """FedLAW's short names have no separate folder. Their reports are listed under the paper, and the caption is complete."""
    made.run(*TABLE, "--report", "report.html", **NOWHERE)
    text = (made.root / "report.html").read_text()
    assert "System Message" not in text
    assert '"fedlaw/"' in text
    assert "reports/table3: printed and measured numbers" in text
