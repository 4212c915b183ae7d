"""Rows, columns and tables that no paper prints, from their files to the page."""

from pathlib import Path

from small_papers import FULL, Files, cell
from small_table import make_receipt

from fedrepro.config.words import Words
from fedrepro.exhibits.render import render, render_page
from fedrepro.files import read_json, write_json
from fedrepro.store import Store


def test_what_no_paper_prints_is_planned_and_reported(files: Files, tmp_path: Path) -> None:
    """At scale full: a row, a column, then a whole table of one's own have runs, no printed numbers, and the status that says
    so, in the table's report and on the paper's page."""
    files.table["rows"].insert(1, {"key": "median", "label": "Mine", "method": "fedprox(mu=0.9)"})
    own = files.table["columns"][0] | {"key": "iid", "setting": files.table["columns"][0]["setting"] | {"partition": "iid"}}
    files.table["columns"].append({key: value for key, value in own.items() if key != "published"})
    mine = {key: value for key, value in files.table.items() if key not in ("published", "columns")}
    files.more["table2"] = mine | {"source": "Ours", "columns": files.table["columns"][-1:]}
    made = files.plan(FULL)
    assert [row["key"] for row in made["rows"] if not row["printed"]] == ["median"]
    assert {c["printed"] is None for c in made["cells"] if c["row"] == "median" or c["column"] == "iid"} == {True}
    assert cell(made, "fedavg", "mnist")["printed"] == 50
    plans = [made, files.plan(FULL, "table2")]
    assert all(row["printed"] for row in plans[1]["rows"])
    reports = tmp_path / "reports/full/some"
    for one in plans:
        write_json(tmp_path / f"{one['table']}.json", one)
        for run in one["runs"].values():
            receipt = make_receipt(run, 8) | {"config": run["config"]}
            write_json(reports / "evidence" / run["run_id"] / "seed8.json", receipt)
        render(tmp_path / f"{one['table']}.json", Store((reports / "evidence",)), reports / one["table"])
        header = read_json(reports / f"{one['table']}.json")["header"]
        assert header["counts"]["not printed"] == (6 if one is made else 4)
        assert header["comparable"]
    render_page([tmp_path / "table1.json", tmp_path / "table2.json"], Store((reports / "evidence",)), reports, Words())
    assert read_json(reports / "index.json")["header"]["counts"]["not printed"] == 10
