"""Mistakes of a user: each gives one clear line before anything is computed."""

import yaml

from tests.workflow.conftest import ROOT, Project

TABLE = ("snakemake", "--cores", "2", "reports/table3.md")


def test_a_bad_configuration_is_one_line_and_exit_code_2(project: Project) -> None:
    """Snakemake stops while it loads, before anything is computed, and the line names file, key and value. tests/unit/config
    tests the other mistakes."""
    project.params(lambda params: params["methods"]["fedlaw"].update(fedporx={"mu": 1}))
    done = project.run(*TABLE, ok=False)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in ("params.yaml", "'fedporx'", "'fedprox'"):
        assert word in lines[0], lines[0]


def test_a_claim_that_names_no_row_is_one_line(project: Project) -> None:
    """Snakemake and `fedrepro page` print the line before any computation. The plan of a table does not need claims."""
    claims = yaml.safe_load((ROOT / "papers/fedlaw/claims.yaml").read_text())
    claim = next(claim for claim in claims if claim["table"] == "table3" and "pairs" in claim)
    (project.root / "papers/fedlaw/claims.yaml").write_text(yaml.safe_dump([claim | {"pairs": {"fedlwa": "fedavg"}}]))
    project.run("snakemake", "--cores", "1", "--dry-run", "reports/short/fedlaw/table3.md")  # this writes its plan
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
