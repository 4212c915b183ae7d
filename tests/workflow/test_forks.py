"""A row with a late average continues from the rounds of its base row, through the whole workflow."""

from pathlib import Path

import yaml

from fedrepro.files import read_json
from tests.workflow.conftest import Project, new_trainings, to_copy

TABLE = Path("papers/fedlaw/tables/table90.yaml")
REPORT = ("snakemake", "--cores", "2", "reports/table90.md")
SHARED = 4 * 3 // 4  # of the four rounds below


def write_table(project: Project) -> None:
    """Writes a table of FedProx with and without IMA on one setting. The row with IMA comes first."""
    content, column = to_copy(project)
    content["columns"] = [{**column, "key": "one", "label": "one"}]
    late = "fedprox(mu=0.1)+ima(window=2, start=0.75)"
    content["rows"] = [
        {"key": "ima", "label": "FedProx + IMA", "method": late},
        {"key": "fedprox", "label": "FedProx", "method": "fedprox(mu=0.1)"},
    ]
    content |= {"title": "Late averages", "source": "Our table"}
    (project.root / TABLE).write_text(yaml.safe_dump(content))
    project.params(lambda params: params["settings"].update(rounds=4))


def receipts(project: Project) -> dict[str, dict]:
    """Label of the method -> evidence of its only seed."""
    found = (read_json(path) for path in (project.root / "results/runs").glob("*/seed8.json"))
    return {receipt["method_label"]: receipt for receipt in found}


def test_rounds_before_an_average_begins_are_trained_once(drawn: Project) -> None:
    """One of the two runs trains them. When both are finished, no state remains, and neither job runs again.
    tests/unit/engine/test_forks.py tests that the result is the same as from round 0."""
    project = drawn
    write_table(project)
    project.run(*REPORT)
    found = receipts(project)
    base, late = found["fedprox"], found["fedprox+ima"]
    assert sorted(one["cost"].get("shared_rounds", 0) for one in (base, late)) == [0, SHARED]
    assert base["curves"]["test_loss"][:SHARED] == late["curves"]["test_loss"][:SHARED]
    assert base["curves"]["test_loss"][SHARED:] != late["curves"]["test_loss"][SHARED:]
    assert not [*(project.root / "results/checkpoints/forks").rglob("*.pt")]
    assert "1 of them went on from rounds that another run had trained" in (project.root / "reports/table90.md").read_text()

    before = project.trained()
    same = project.run(*REPORT)
    assert "Nothing to be done" in same.stdout + same.stderr
    assert not new_trainings(before, project.trained())
