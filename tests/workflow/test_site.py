"""Snakemake's own report of a table under its short name. test_published.py tests the one of committed pages."""

from tests.workflow.conftest import TABLE, Project
from tests.workflow.test_published import NOWHERE


def test_snakemakes_report_of_a_short_name(made: Project) -> None:
    """FedLAW's short names have no separate folder. Their reports are listed under the paper, and the caption is complete."""
    made.run(*TABLE, "--report", "report.html", **NOWHERE)
    text = (made.root / "report.html").read_text()
    assert "System Message" not in text
    assert '"fedlaw/"' in text
    assert "reports/table3: printed and measured numbers" in text
