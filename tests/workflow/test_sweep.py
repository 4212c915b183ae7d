"""`fedrepro sweep` with real processes: a graph of runs, a table, a chart, an experiment of MLflow."""

import json
import sqlite3

from tests.workflow.conftest import Project

COMMAND = (
    *("fedrepro", "sweep", "--method", "fedprox+gh", "--partition", "dirichlet_per_class(alpha=1)", "--model", "mlp"),
    *("--rounds", "2", "--set", "clients=4", "--over", "alpha=0.1,1", "fedprox.mu=0.001,0.1"),
    *("--seeds", "8", "--cores", "4", "--device", "cpu", "--name", "mine"),
)


def test_a_sweep_and_again(drawn: Project) -> None:
    """Four runs on two partitions; the same command trains nothing."""
    project = drawn
    done = project.run(*COMMAND)
    place = project.root / "reports/full/sweep_mine"
    assert done.stdout.splitlines()[-3:] == [
        "table  reports/full/sweep_mine/table1.md",
        "chart  reports/full/sweep_mine/figure1.svg",
        "MLflow experiment sweep_mine/full: fedrepro ui",
    ]
    table = " ".join((place / "table1.md").read_text().split())  # pages have spaces that do not break
    assert "| method | alpha = 0.1 | alpha = 1 |" in table
    assert "fedprox(mu=0.001)+gh" in table
    assert "4 of 4 cells" in table
    drawn = json.loads((place / "figure1.json").read_text())
    assert "fedprox(mu=0.1)+gh" in json.dumps(drawn)
    assert (place / "figure1.svg").read_text().startswith("<?xml")
    first = project.trained()
    assert len(first) == 4
    receipts = [json.loads((project.root / "results/runs" / f"{name}.json").read_text()) for name in first]
    assert len({receipt["inputs"]["partition"] for receipt in receipts}) == 2
    assert _experiments(project) == ["sweep_mine/full"]

    project.run(*COMMAND)
    assert project.trained() == first


def _experiments(project: Project) -> list[str]:
    """Those that have runs."""
    asked = "select distinct experiments.name from experiments join runs using (experiment_id) order by 1"
    with sqlite3.connect(project.root / "mlflow.db") as database:
        return [name for (name,) in database.execute(asked)]
