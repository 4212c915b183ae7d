"""A table with a tuned row, from its file to the report: every candidate at one seed, the chosen one at the others."""

import json
from pathlib import Path

import yaml

from tests.workflow.conftest import Project, new_trainings

TABLE = "reports/demo/fedlaw/table91.md"


def test_the_chosen_candidate_alone_trains_at_the_other_seeds(project: Project) -> None:
    """One candidate cannot learn. A second call trains nothing; another grid trains what it adds, and no more."""
    project.params(lambda params: params.update(seeds=[8, 9], tables=["fedlaw/table91"]))
    folder = project.root / "papers/fedlaw/tables"
    content = yaml.safe_load((folder / "table3.yaml").read_text())
    del content["published"]
    row = {"key": "tuned", "label": "tuned", "method": "fedavg", "tune": {"client_lr": [1e-6, 0.08], "seeds": [8]}}
    columns = [{key: value for key, value in content["columns"][0].items() if key != "published"}]
    content |= {"rows": [row], "companions": [], "columns": columns, "source": "ours"}

    def write() -> None:
        (folder / "table91.yaml").write_text(yaml.safe_dump(content))

    write()
    project.run("snakemake", "--cores", "2", TABLE)
    document = json.loads(Path(project.root, TABLE).with_suffix(".json").read_text())
    (choice,), (cell,) = document["choices"], document["cells"]
    assert [one["chosen"] for one in choice["tried"]] == [False, True]
    assert choice["ahead"] > 5
    assert cell["run_id"] == choice["tried"][1]["run_id"]
    assert list(cell["per_seed"]) == ["8", "9"]
    before = project.trained()
    assert sorted(before) == sorted([f"{choice['tried'][0]['run_id']}/seed8", *cell["runs"]])

    again = project.run("snakemake", "--cores", "2", TABLE)
    assert "Nothing to be done" in again.stdout + again.stderr
    content["rows"][0]["tune"]["client_lr"] = [1e-6, 0.08, 1e-5]
    write()
    by_hand = project.run("fedrepro", "run", "fedlaw/table91")
    assert len(new_trainings(before, project.trained())) == 1
    assert "test accuracy" in by_hand.stdout
    project.run("snakemake", "--cores", "2", "runs", TABLE)
    assert len(new_trainings(before, project.trained())) == 1
