"""Figures by YAML alone: a figure's file gives picture, CSV and JSON, and mistakes in it are one line."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_papers import FULL, Files, ids
from small_table import make_receipt

from fedrepro.engine import measurements
from fedrepro.engine.records import seal
from fedrepro.errors import UserError
from fedrepro.exhibits.render import render
from fedrepro.files import read_json, write_json
from fedrepro.store import Store
from tests.helpers.one_line import one_line

pytestmark = pytest.mark.drawn

OWN = {
    "title": "Accuracy over rounds",
    "source": "Figure 3",
    "kind": "curves(band=std)",
    "caption": "The proximal term slows the first rounds.",
    "metric": {"name": "test_accuracy", "unit": "percent", "description": "top-1"},
    "rows": [{"key": f"mu{mu}", "label": f"μ = {mu}", "method": f"fedprox(mu={mu})"} for mu in (0.1, 0.5)],
    "columns": [
        {
            "key": "mnist",
            "label": "MNIST",
            "demo": True,
            "setting": {"dataset": "mnist", "model": "mlp", "partition": "dirichlet_per_class(alpha=1)"},
        }
    ],
}
OF = {"title": "Curves of Table 1", "source": "Figure 3", "kind": "curves", "of": "table1"}


@pytest.fixture
def files(files: Files) -> Files:
    files.figures["figure3"] = json.loads(json.dumps(OWN))
    return files


def drawn(files: Files, tmp_path: Path, curves: dict[int, list[float]]) -> tuple[list[dict[str, str]], dict[str, Any], str]:
    """The CSV lines, JSON and SVG of figure 3 at scale full. Each run has these curves by seed."""
    made, folder = files.plan(FULL, "figure3"), tmp_path / "reports/full/some"
    write_json(tmp_path / "plan.json", made)
    for run in made["runs"].values():
        for seed, curve in curves.items():
            receipt = make_receipt(run, seed)
            receipt["curves"] = {"round": list(range(len(curve))), "test_accuracy": curve}
            write_json(folder / "evidence" / run["run_id"] / f"seed{seed}.json", seal(receipt))
    svg, table, document = render(tmp_path / "plan.json", Store((folder / "evidence",)), folder / "figure3")
    return list(csv.DictReader(table.open())), read_json(document), svg.read_text()


def test_curves_by_yaml_alone(files: Files, tmp_path: Path) -> None:
    """Two runs of two seeds give a line for each row. The expected mean and deviation of each round are worked out by hand.

    Round 2: 30 and 50, mean 40, sample deviation sqrt(200) = 14.142136.
    """
    lines, document, svg = drawn(files, tmp_path, {8: [10.0, 30.0, 60.0], 9: [20.0, 50.0, 60.0]})
    assert list(lines[0]) == ["row", "column", "metric", "round", "value", "low", "high", "seeds"]
    assert [(one["row"], one["round"], one["value"]) for one in lines] == [
        (row, *point) for row in ("mu0.1", "mu0.5") for point in (("1", "15"), ("2", "40"), ("3", "60"))
    ]
    assert (lines[1]["low"], lines[1]["high"], lines[1]["seeds"]) == ("25.857864", "54.142136", "8 9")
    assert document["header"]["kind"] == "curves(band=std, smooth=1, whole=false, log=false)"
    assert document["header"]["warnings"][0].startswith("Incomplete: 4 of 6 runs")
    assert document["series"][0]["y"] == [15.0, 40.0, 60.0]
    assert "Accuracy over rounds" in svg
    assert all(label in svg for label in ("μ = 0.1", "μ = 0.5", "full"))


def test_curves_of_a_diagnostic_by_yaml_alone(files: Files, tmp_path: Path) -> None:
    """Distances of clients' models after rounds 1, 3 and 4 of five, measured on kept models. The means over two seeds are
    worked out by hand."""
    call = "client_distance(to=before, relative=false)"
    metric = {"name": "client_distance", "unit": "norm", "description": "distance", "diagnostic": call}
    files.figures["figure3"] |= {"metric": metric, "keep": [1, 120, 160], "kind": "curves(band=none)"}
    files.scales["full"]["settings"] = {"rounds": 5}
    made = files.plan(FULL, "figure3")
    root = tmp_path / "reports/full/some/evidence"
    for run in made["runs"].values():
        assert run["keep"] == [1, 3, 4]
        for seed in (8, 9):
            values = [measurements.Value(number, "client_distance", float(number * seed)) for number in run["keep"]]
            about = {"run_id": run["run_id"], "seed": seed, "diagnostic": call, "reached": 5}
            about |= {"models": {str(number): "0" * 64 for number in run["keep"]}}
            measurements.write(root / run["run_id"] / measurements.folder(call) / f"seed{seed}.parquet", about, values)
    lines, document, svg = drawn(files, tmp_path, {8: [10.0] * 5, 9: [20.0] * 5})
    points = [(one["row"], one["metric"], one["round"], one["value"]) for one in lines]
    assert points == [
        (row, "client_distance", number, value)
        for row in ("mu0.1", "mu0.5")
        for number, value in (("1", "8.5"), ("3", "25.5"), ("4", "34"))
    ]
    assert [one["metric"] for one in document["series"]] == ["client_distance"] * 2
    assert "client distance" in svg


def test_a_matrix_of_a_diagnostic_by_yaml_alone(files: Files, tmp_path: Path) -> None:
    """Attention between two clients after the last kept round of five, mean over two seeds: (8 + 9) / 2 times 1 + x + 2y."""
    call = "label_sharing(of=weights, rule=nearest)"
    metric = {"name": "attention", "unit": "weight", "description": "attention", "diagnostic": call}
    files.figures["figure3"] |= {"metric": metric, "keep": [120, 200], "kind": "matrix"}
    files.scales["full"]["settings"] = {"rounds": 5}
    made = files.plan(FULL, "figure3")
    for run in made["runs"].values():
        assert run["keep"] == [3, 5]
        for seed in (8, 9):
            at = [(number, x, y) for number in (5, 3) for x in range(2) for y in range(2)]
            values = [
                measurements.Value(r, "attention", seed * (1.0 + x + 2 * y) * (r == 5), x=float(x), y=float(y))
                for r, x, y in at
            ]
            values += [measurements.Value(number, "label_pairs_found", 50.0) for number in run["keep"]]
            about = {"run_id": run["run_id"], "seed": seed, "diagnostic": call, "reached": 5}
            about |= {"models": {str(number): "0" * 64 for number in run["keep"]}}
            folder = tmp_path / "reports/full/some/evidence" / run["run_id"] / measurements.folder(call)
            measurements.write(folder / f"seed{seed}.parquet", about, values)
    lines, document, svg = drawn(files, tmp_path, {8: [10.0] * 5, 9: [20.0] * 5})
    assert [tuple(one[key] for key in ("row", "x", "to", "value", "seeds")) for one in lines] == [
        (row, *field, "8 9")
        for row in ("mu0.1", "mu0.5")
        for field in (("0", "0", "8.5"), ("0", "1", "25.5"), ("1", "0", "17"), ("1", "1", "34"))
    ]
    assert document["header"]["kind"] == "matrix"
    assert all(said in svg for said in ("attention of client x to client y", "MNIST, μ = 0.1", "MNIST, μ = 0.5"))


def test_a_figure_of_a_table_has_its_runs(files: Files) -> None:
    """The figure takes the table's rows and columns, or those whose keys its file lists, and the same runs. It has no printed
    numbers."""
    files.figures["figure3"] = OF | {"rows": ["fedprox", "fedavg"], "columns": ["mnist"]}
    table, figure = files.plan(FULL), files.plan(FULL, "figure3")
    assert [one["key"] for one in figure["rows"]] == ["fedprox", "fedavg"]
    assert ids(figure) == {place: run for place, run in ids(table).items() if place in ids(figure)}
    assert len(ids(figure)) == 2
    assert {cell["printed"] for cell in figure["cells"]} == {None}
    files.table["columns"] = {"axes": [files.table["columns"], [{"key": "now", "label": "now"}]]}
    files.figures["figure3"] = OF | {"columns": ["mnist-now"]}
    assert [one["key"] for one in files.plan(FULL, "figure3")["columns"]] == ["mnist-now"]


def test_a_figure_shows_the_rows_of_its_tables_budget_that_it_names(files: Files) -> None:
    """The table's budget lists two rows. The figure has one of them and shows it."""
    budget = {"note": "A part.", "rows": ["fedavg", "fedlaw"]}
    files.table["budget"] = {"short": budget}
    files.figures["figure3"] = OF | {"rows": ["fedavg"]}
    made = files.plan({"scale": "short"}, "figure3")
    assert [row["key"] for row in made["rows"]] == ["fedavg"]
    assert made["scale_note"] == "A part."


@pytest.mark.parametrize(
    ("rows", "said"), [(3.7, "must be a list"), ([{"label": "no key"}], "key"), ([{"key": ["fedavg"]}], "key")]
)
def test_a_wrong_row_beside_a_tables_budget_is_one_line(rows: Any, said: str, files: Files) -> None:
    files.table["budget"] = {"short": {"note": "A part.", "rows": ["fedavg", "fedlaw"]}}
    files.figures["figure3"] = OF | {"rows": rows}
    with pytest.raises(UserError, match=rf"figures/figure3\.yaml: rows.*{said}") as caught:
        files.plan({"scale": "short"}, "figure3")
    assert "\n" not in str(caught.value)


def test_a_figure_of_a_tuned_table_shows_the_tables_choice(files: Files) -> None:
    """By another metric tuned cells would choose other candidates than those of the table. Rows that are not tuned may have
    one."""
    files.table["rows"][0]["tune"] = {"client_lr": [0.1, 0.01]}
    tuned, other = (row["key"] for row in files.table["rows"][:2])
    loss = {"metric": {"name": "test_loss", "unit": "loss", "better": "lower", "description": "loss"}}
    own = {"columns": [files.table["columns"][0] | loss]}
    for more in (loss, own):
        files.figures["figure3"] = OF | more
        with one_line(r"figures/figure3\.yaml: metric = 'test_loss': table1 is tuned, .* instead of `of: table1`"):
            files.plan(FULL, "figure3")
    files.figures["figure3"] = OF | loss | {"rows": [other]}
    assert {cell["metric"]["name"] for cell in files.plan(FULL, "figure3")["cells"]} == {"test_loss"}
    files.figures["figure3"] = OF | {"metric": files.table["metric"] | {"description": "in other words"}, "rows": [tuned]}
    assert len(files.plan(FULL, "figure3")["candidates"]) == 2 * len(files.table["columns"])


def test_without_evidence_the_picture_says_so(files: Files, tmp_path: Path) -> None:
    lines, document, svg = drawn(files, tmp_path, {})
    assert (lines, document["series"]) == ([], [])
    assert "no run yet" in svg


MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], Any], list[str]]] = {
    "kind": (lambda f: f.update(kind="curvs"), ["figures/figure3.yaml: kind = 'curvs'", "'curves'"]),
    "argument": (lambda f: f.update(kind="curves(bnad=std)"), ["figures/figure3.yaml: kind", "'bnad'", "'band'"]),
    "value": (lambda f: f.update(kind="curves(band=stdd)"), ["figures/figure3.yaml: kind", "'stdd'", "'std'"]),
    "type": (lambda f: f.update(kind="histogram(bins=2.5)"), ["kind", "bins", "2.5", "whole number"]),
    "missing": (lambda f: f.update(kind="scatter()"), ["kind", "'x' is missing"]),
    "two kinds": (lambda f: f.update(kind="curves+bars"), ["kind", "one kind of figure"]),
    "no kind": (lambda f: f.pop("kind"), ["figures/figure3.yaml: key 'kind' is missing"]),
    "row": (lambda f: f.update(kind="bars(minus=fedavgg)"), ["kind", "minus = 'fedavgg'", "unknown row", "mu0.1"]),
    "printed": (lambda f: f.update(published="numbers.csv"), ["figures/figure3.yaml", "`published`"]),
    "read": (lambda f: f["columns"][0].update(read="best()"), ["mnist: read", "curves shows every round"]),
    "key": (lambda f: f.update(captoin="x"), ["figures/figure3.yaml", "'captoin'", "'caption'"]),
    "table": (lambda f: f.update(of="table2"), ["figures/figure3.yaml: of", "'table2'", "'table1'"]),
    "its row": (lambda f: f.update(of="table1", rows=["fedavgg"]), ["figures/figure3.yaml: rows", "'fedavgg'", "'fedavg'"]),
    "no such figure": (lambda f: f.clear(), ["figures/figure3.yaml", "title"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line(name: str, files: Files) -> None:
    change, words = MISTAKES[name]
    change(files.figures["figure3"])
    with pytest.raises(UserError) as caught:
        files.plan(FULL, "figure3")
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


def test_a_metric_that_no_run_records_is_one_line(files: Files, tmp_path: Path) -> None:
    """The line comes when the figure is drawn, since only a receipt shows which metrics a run records."""
    files.figures["figure3"]["metric"]["name"] = "test_acuracy"
    with pytest.raises(UserError, match=r"seed8\.json: curves have no 'test_acuracy'; did you mean 'test_accuracy'"):
        drawn(files, tmp_path, {8: [10.0, 20.0]})
