"""`fedrepro runs PAPER`, on the published runs."""

import re

import pytest
from real_papers import ROOT

from fedrepro.cli import main


def test_a_papers_runs_are_listed_once_with_table3_before_table24(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Table 24 shows runs of Table 3 at another round. They are listed with the table that comes first by its number."""
    monkeypatch.chdir(ROOT)
    assert main(["runs", "fedlaw", "--scale", "full"]) == 0
    listed = capsys.readouterr().out
    tables = re.findall(r"^fedlaw/(\S+), scale full: (\d+) run", listed, re.MULTILINE)
    assert [name for name, _ in tables][:2] == ["table3", "table3-control"]
    assert "table24" not in dict(tables)
    published = {path.name[-8:] for path in (ROOT / "reports/full/fedlaw/evidence").glob("*/")}
    assert {run_id for run_id in published if run_id in listed} == published
    assert sum(int(count) for _, count in tables) == len(published)
