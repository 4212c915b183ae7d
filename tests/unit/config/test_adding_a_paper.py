"""The example of docs/adding-a-paper.md can be planned, and its claims name rows and columns that exist."""

import re
import shutil
from pathlib import Path

import yaml

from fedrepro.config.claims import load_claims
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.config.words import check_claims

ROOT = Path(__file__).parents[3]


def test_the_documented_paper_can_be_planned_at_every_scale(tmp_path):
    """The files are those printed in the document. Every printed number finds its cell, and every cell has a run."""
    blocks = re.findall(r"```(?:yaml)?\n(.*?)```", (ROOT / "docs/adding-a-paper.md").read_text(), flags=re.DOTALL)
    starts = {"paper,table": "published/mine_table1.csv", "name:": "paper.yaml", "title:": "tables/table1.yaml"}
    starts |= {"- id:": "claims.yaml", "kind:": "figures/figure1.yaml"}
    folder = tmp_path / "papers/mine"
    for start, name in starts.items():
        (content,) = [block for block in blocks if block.startswith(start)]
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "papers/scales.yaml", tmp_path / "papers")
    shutil.copy(ROOT / "data/registry.yaml", tmp_path / "data")
    project = load_project(tmp_path, yaml.safe_load("{scale: demo, tables: [mine/table1]}"))
    for scale in ("demo", "short", "full"):
        made = plan(project, "mine", "table1", scale)
        assert [cell.printed for cell in made.cells] == [91.30, 91.75]
        assert all(cell.run_id for cell in made.cells)
        assert [*plan(project, "mine", "figure1", scale).runs] == [*made.runs]
    claims = load_claims(tmp_path, "mine")
    assert [claim.id for claim in claims] == ["M-1"]
    check_claims(project, "mine")
