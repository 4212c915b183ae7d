"""`fedrepro sweep` with real processes: a graph of runs, a table, a chart, an experiment of MLflow."""

import json
import sqlite3

from tests.workflow.conftest import Project, called

COMMAND = (
    *("fedrepro", "sweep", "--method", "fedprox+gh", "--partition", "dirichlet_per_class", "--model", "mlp"),
    *("--rounds", "2", "--set", "clients=4", "--over", "alpha=0.1,1", "fedprox.mu=0.001"),
    *("--seeds", "8", "--cores", "4", "--device", "cpu", "--name", "mine"),
)


def test_a_sweep_and_again(drawn: Project) -> None:
    """Two runs on two partitions are trained. The same command again trains nothing."""
    project = drawn
    done = project.run(*COMMAND)
    place = project.root / "reports/full/sweep_mine"
    assert done.stdout.splitlines()[-3:] == [
        "table  reports/full/sweep_mine/table1.md",
        "chart  reports/full/sweep_mine/figure1.svg",
        "MLflow experiment sweep_mine/full: fedrepro ui",
    ]
    table = " ".join((place / "table1.md").read_text().split())  # pages have non-breaking spaces
    assert "| method | alpha = 0.1 | alpha = 1 |" in table
    assert "fedprox(mu=0.001)+gh" in table
    assert "2 of 2 cells" in table
    drawn = json.loads((place / "figure1.json").read_text())
    assert "fedprox(mu=0.001)+gh" in json.dumps(drawn)
    assert (place / "figure1.svg").read_text().startswith("<?xml")
    first = project.trained()
    assert len(first) == 2
    receipts = [json.loads((project.root / "results/runs" / f"{name}.json").read_text()) for name in first]
    assert len({receipt["inputs"]["partition"] for receipt in receipts}) == 2
    assert _experiments(project) == ["sweep_mine/full"]

    project.run(*COMMAND)
    assert project.trained() == first

    # No paper prints these numbers, so no margin needs its spread: `publish` is not advised, and no folder is made below
    # papers.
    said = called(project, "publish", "sweep_mine/table1", "--scale", "full", "--partial")
    assert "2 files published" in said
    assert "next: snakemake --cores 8 reports/full/sweep_mine/table1.md, then commit reports/full/sweep_mine" in said
    refused = called(project, "spread", "sweep_mine", code=2)
    assert "sweep_mine: a sweep has no printed numbers that a spread would help to judge; name a paper" in refused
    assert not (project.root / "papers/sweep_mine").exists()


def _experiments(project: Project) -> list[str]:
    """Experiments that have runs."""
    asked = "select distinct experiments.name from experiments join runs using (experiment_id) order by 1"
    with sqlite3.connect(project.root / "mlflow.db") as database:
        return [name for (name,) in database.execute(asked)]
