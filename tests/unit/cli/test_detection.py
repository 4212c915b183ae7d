"""`fedrepro run` on FedGH's detection table, with drawn faces as data."""

import json
from pathlib import Path

import pytest
import real_papers

from fedrepro.cli import main
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with the real tables, as the current folder."""
    monkeypatch.delenv("FEDREPRO_MIRROR", raising=False)
    return real_papers.enter(tmp_path, monkeypatch, "scale: demo\nseeds: [8]\ndevice: cpu\n", "fedgh")


def test_the_table_from_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Six rounds instead of 30. All rows train on one data set and one partition, and their test loss falls. The columns show
    rounds 1, 2 and 6 of the same run."""
    (project / "params.yaml").write_text("scale: demo\nseeds: [8]\ndevice: cpu\nsettings: {rounds: 6}\n")
    assert main(["run", "fedgh/table6"]) == 0
    assert "test map50 0." in capsys.readouterr().err
    receipts = [json.loads(path.read_text()) for path in sorted(project.glob("results/runs/*/seed8.json"))]
    assert ["gh(" in receipt["method"] for receipt in receipts] == [True, False]
    assert len({json.dumps(receipt["inputs"], sort_keys=True) for receipt in receipts}) == 1
    for receipt in receipts:
        assert receipt["curves"]["test_loss"][-1] < receipt["curves"]["test_loss"][0]
        assert receipt["config"]["clients"] == 4
        assert receipt["curves"]["test_map50"][-1] > 0.2
    cells = plan(load_project(project), "fedgh", "table6", "demo").cells
    assert [(cell.column, cell.read) for cell in cells[:3]] == [
        ("round5", "at(round=1, mean=1)"),
        ("round10", "at(round=2, mean=1)"),
        ("round30", "at(round=6, mean=1)"),
    ]
    assert [cell.printed for cell in cells] == [0.615, 0.83, 0.842, 0.916, 0.897, 0.897]


def test_photographs_that_are_not_there(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says where to put the photographs, and nothing is trained."""
    assert main(["run", "fedgh/table6", "--scale", "full", "--set", "dataset=human_faces"]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert "human_faces: cannot get human_faces.zip" in last
    assert "FEDREPRO_MIRROR" in last
    assert not list(project.glob("results/runs/*/*"))
