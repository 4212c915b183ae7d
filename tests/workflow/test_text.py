"""A table on text, from its data set to the report: roles are clients, which measure on held-out windows."""

import json
import shutil
from pathlib import Path

from tests.workflow.conftest import Project

TABLE = "reports/elastic/table5.md"


def test_a_table_on_text(project: Project) -> None:
    """Two cells of one seed and two rounds. The boosted share is recorded in each round of the elastic one."""
    shutil.copytree(Path(__file__).parents[2] / "papers/elastic", project.root / "papers/elastic", dirs_exist_ok=True)
    project.params(lambda params: params.update(seeds=[8], settings={"rounds": 2}, tables=["elastic/table5"]))
    project.run("snakemake", "--cores", "2", TABLE)
    document = json.loads(Path(project.root, TABLE).with_suffix(".json").read_text())
    naive, elastic = document["cells"]
    assert [cell["row"] for cell in document["cells"]] == ["fedavg", "fedavg+elastic"]
    assert all(0 < cell["mean"] <= 100 for cell in document["cells"])
    assert naive["mean"] != elastic["mean"]
    evidence = json.loads((project.root / "results/runs" / elastic["run_id"] / "seed8.json").read_text())
    assert len(evidence["curves"]["boosted/tensor"]) == 2
