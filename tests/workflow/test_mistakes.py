"""A mistake of a user gives one clear line before anything is computed. tests/unit tests the others."""

from types import SimpleNamespace

import pytest
import yaml

from fedrepro.config.project import load_project
from fedrepro.workflow.graph import Workflow
from tests.workflow.conftest import ROOT, Project


def test_a_claim_that_names_no_row_is_one_line(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake and `fedrepro page` print the line before any computation. The plan of a table does not need claims."""
    claims = yaml.safe_load((ROOT / "papers/fedlaw/claims.yaml").read_text())
    claim = next(claim for claim in claims if claim["table"] == "table3" and "pairs" in claim)
    (project.root / "papers/fedlaw/claims.yaml").write_text(yaml.safe_dump([claim | {"pairs": {"fedlwa": "fedavg"}}]))
    monkeypatch.chdir(project.root)
    Workflow(load_project(project.root), SimpleNamespace(is_main_process=False)).plan("short/fedlaw/", "table3")
    for refused in (
        ("snakemake", "--cores", "1", "reports/short/fedlaw/index.html"),
        ("fedrepro", "page", "results/plans/short/fedlaw/table3.json"),
    ):
        done = project.run(*refused, ok=False)
        assert done.returncode == 2
        last_line = done.stderr.strip().splitlines()[-1]
        for word in ("papers/fedlaw/claims.yaml", claim["id"], claim["table"], "'fedlwa'", "'fedlaw'"):
            assert word in last_line
        assert "Traceback" not in done.stderr
