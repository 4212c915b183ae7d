"""From an empty folder to the report, with real processes."""

import json
import sqlite3

from tests.workflow.conftest import COLUMNS, ROWS, Project


def test_eight_jobs_at_once_make_the_report_and_track_each_run_once(chain: tuple[Project, list[str]]) -> None:
    """The main command in a new checkout with eight parallel jobs makes the report, and MLflow has every seed and every mean
    once. test_forks.py tests that a second call has nothing to do."""
    project, _ = chain
    report = json.loads((project.root / "reports/table3.json").read_text())
    measured = {(cell["row"], cell["column"]): cell["mean"] for cell in report["cells"]}
    assert len(measured) == len(ROWS) * len(COLUMNS)
    assert all(10 < mean <= 100 for mean in measured.values()), measured
    assert {cell["status"] for cell in report["cells"]} == {"not comparable"}
    assert all(cell["difference"] is None and cell["printed"] is not None for cell in report["cells"])
    assert (project.root / "reports/table3.html").stat().st_size > 10_000

    with sqlite3.connect(project.root / "mlflow.db") as database:
        runs = [key for (key,) in database.execute("select value from tags where key = 'fedrepro.run_key'")]
    assert len(runs) == len(set(runs))
    assert len([key for key in runs if "/seed" in key]) == len([key for key in runs if "/" not in key]) == len(measured)
