"""The method of docs/adding-a-method.md, as written, in a new row; then a column and a table that no paper prints."""

import json
import re
import sqlite3
from pathlib import Path

import yaml

from tests.workflow.conftest import COLUMNS, ROOT, Project, cells

TABLES = Path("papers/fedlaw/tables")


def blocks(language: str) -> list[str]:
    """The code blocks of the document."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs/adding-a-method.md").read_text(), flags=re.DOTALL)


def test_rows_columns_and_tables_of_ones_own(made: Project) -> None:
    """Only the documented row trains, and its status is `not printed`. A column and a table of one's own behave the same. The
    report, the paper's page, the summary and MLflow show them."""
    project = made
    for other in (*(project.root / TABLES).glob("*.yaml"), *(project.root / TABLES.with_name("figures")).glob("*.yaml")):
        if other.stem != "table3":
            other.unlink()  # otherwise the paper's page would train them
    before = project.trained()
    (code,), (row,) = blocks("python"), blocks("yaml")
    (project.root / "src/fedrepro/methods/aggregate/median.py").write_text(code)
    path = project.root / TABLES / "table3.yaml"
    text = yaml.safe_dump(yaml.safe_load(path.read_text()), sort_keys=False)
    content = yaml.safe_load(text.replace("rows:\n", "rows:\n" + row.replace("  - ", "- ")))
    column = {**content["columns"][0], "key": "iid", "label": "iid"}
    del column["published"]
    column["setting"] = {**column["setting"], "partition": "iid"}
    content["columns"] = content["columns"][:1]
    content["rows"] = [one for one in content["rows"] if one["key"] in ("fedavg", "median")]
    path.write_text(yaml.safe_dump({**content, "columns": [*content["columns"], column]}))
    mine = {**content, "title": "mine", "source": "Our table", "columns": [column]}
    del mine["published"]
    (project.root / TABLES / "table90.yaml").write_text(yaml.safe_dump(mine))
    project.run("snakemake", "--cores", "2", "reports/table3.md", "results/summary.json", "reports/fedlaw/index.html")
    trained = set(project.trained()) - set(before)
    assert len(trained) == 1 + 2
    assert all("-median-" in name or "-iid-" in name for name in trained), trained
    found = cells(project, "table3") | {("90", key): cell for key, cell in cells(project, "fedlaw/table90").items()}
    without = [cell for cell in found.values() if cell["column"] == "iid" or cell["row"] == "median"]
    assert len(without) == 1 + 2 + 2
    assert all(cell["status"] == "not printed" and cell["mean"] > 10 for cell in without)
    assert found["fedavg", COLUMNS[0]]["printed"] is not None
    for report in ("table3", "fedlaw/table90", "fedlaw/index"):
        for ending in ("md", "html"):
            assert "Median" in (project.root / f"reports/{report}.{ending}").read_text()
    summary = json.loads((project.root / "results/summary.json").read_text())["demo"]["fedlaw"]["table3"]
    trained_on = COLUMNS[0].replace("fashion_mnist", "digits")
    assert set(summary["iid"]) == set(summary[trained_on]) == {"fedavg", "median"}
    with sqlite3.connect(project.root / "mlflow.db") as database:
        names = {name for (name,) in database.execute("select value from tags where key = 'mlflow.runName'")}
    assert any(name.startswith("Median") for name in names), names
