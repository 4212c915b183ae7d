"""A table of a diagnostic's metric, defined only in YAML: from training to the report, without a second training."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
import yaml

from fedrepro.diagnostics.diagnostic import canonical
from fedrepro.engine import measurements
from tests.workflow.conftest import Project, cells, drawn_of, new_trainings, to_copy

TABLE = Path("papers/fedlaw/tables/table90.yaml")
CALL = "client_distance(to=before, relative=true)"
METRIC = {"name": "client_distance", "unit": "fraction", "description": "distance", "better": "lower", "diagnostic": CALL}
REPORT = ("snakemake", "--cores", "2", "reports/table90.md")


def write_table(project: Project, keep: list[int]) -> None:
    """Writes a table of FedProx on one setting: accuracy, and the clients' distance after the first and the last round."""
    content, column = to_copy(project)
    reads = [("accuracy", {}), ("first", {"metric": METRIC, "read": f"at({keep[0]})"}), ("last", {"metric": METRIC})]
    content["columns"] = [{**column, "key": key, "label": key, **more} for key, more in reads]
    content["rows"] = [row for row in content["rows"] if row["key"] == "fedprox"]
    content |= {"title": "Distances", "source": "Our table", "keep": keep}
    (project.root / TABLE).write_text(yaml.safe_dump(content))


def bytes_below(root: Path, *patterns: str) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for pattern in patterns for path in sorted(root.glob(pattern))}


FIGURES = {
    "figure91": {
        "kind": "plane",
        "keep": [200],
        "metric": {"name": "plane_loss", "unit": "loss", "better": "lower", "diagnostic": "plane(points=5, samples=100)"},
    },
    "figure93": {
        "kind": "bars(band=none)",
        "keep": [200],
        "metric": {"name": "heterogeneous_bias", "unit": "loss", "better": "lower", "diagnostic": "decomposition(draws=2)"},
    },
}


@pytest.fixture(scope="module")
def measured(chain: tuple[Project, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which one command made the table of FedProx and the figures of FedAvg, with one training for each."""
    project = drawn_of(chain[0], tmp_path_factory.mktemp("measured") / "project")
    write_table(project, [1, 200])
    column = yaml.safe_load((project.root / TABLE.with_name("table3.yaml")).read_text())["columns"][0]["key"]
    for name, content in FIGURES.items():
        path = project.root / f"papers/fedlaw/figures/{name}.yaml"
        about = {"title": "A measurement", "source": "Ours", "of": "table3", "rows": ["fedavg"], "columns": [column]}
        metric = {"description": "what is measured", **content["metric"]}
        path.write_text(yaml.safe_dump(about | content | {"metric": metric}))
    project.run(*REPORT, *(f"reports/{name}.svg" for name in FIGURES))
    assert len(project.trained()) == 2
    return project


def test_a_table_of_a_diagnostics_metric(measured: Project) -> None:
    """The training keeps the models, the diagnostic measures them, and the report reads the values. If a kept round is lost, it
    is trained again and the results stay the same."""
    project = measured
    found, trained = cells(project, "table90"), project.trained()
    run_id = found["fedprox", "last"]["run_id"]
    assert found["fedprox", "accuracy"]["run_id"] == run_id
    index = json.loads((project.root / f"results/kept/{run_id}/seed8.json").read_text())
    assert [*index["rounds"]] == ["1", "2"]  # of the demo's two rounds; at(200) is the second
    path = measurements.measurements_path(project.root, run_id, CALL, 8)
    own_metric = lambda v: (v.metric, v.client) == ("client_distance", None)  # noqa: E731
    values = {v.round: v.value for v in measurements.read(path).values if own_metric(v)}
    assert found["fedprox", "first"]["per_seed"] == {"8": values[1]}
    assert found["fedprox", "last"]["per_seed"] == {"8": values[2]}
    assert 0 < values[2] < 10
    logs = (project.root / "logs/diagnose").glob(f"{run_id}-*.log")
    assert not any("again" in log.read_text() for log in logs), "the training kept them"

    with sqlite3.connect(project.root / "mlflow.db") as database:
        name = f"measured/client_distance {path.parent.name.rpartition('-')[2]}"
        tracked = {*database.execute("select step, value from metrics where key = ?", (name,))}
    assert {*values.items()} <= tracked

    # Everything exists, so there is nothing to do.
    assert "Nothing to be done" in project.run(*REPORT).stderr
    kinds = ("results/runs/*/seed8/*", "results/runs/*/seed8.json", "results/diagnostics/*/*/*.parquet")
    results, page = bytes_below(project.root, *kinds), bytes_below(project.root, "reports/table90.*")

    # One of the rounds and their list are lost. The run is trained again up to that round, with the same bytes.
    shutil.rmtree(project.root / "results/diagnostics" / run_id)
    path = project.root / f"results/kept/{run_id}/seed8.json"
    path.unlink()
    (path.with_suffix("") / "round1.safetensors").unlink()
    project.run(*REPORT)
    assert not new_trainings(trained, project.trained())
    (log,) = (project.root / "logs/diagnose").glob(f"{run_id}-*.log")
    assert "models of round 1 trained again" in log.read_text()
    assert bytes_below(project.root, *kinds) == results
    assert bytes_below(project.root, "reports/table90.*") == page


def test_figures_of_planes_and_the_decomposition(measured: Project) -> None:
    """A few lines of YAML go through the whole chain, with one training for all measurements. The round before the last is kept
    for the decomposition, although no file names it."""
    project = measured
    plane, bars = (json.loads((project.root / f"reports/{name}.json").read_text()) for name in FIGURES)
    surface, *marks = plane["series"]
    assert len(surface["y"]) == 25
    assert {one["metric"].rpartition("/")[2] for one in marks} == {
        "model_1",
        "model_2",
        "model_3",
        "average",
        "global",
        "lowest",
    }
    (bar,) = bars["series"]
    (run_id,) = {surface["run_id"], bar["run_id"]}
    index = json.loads((project.root / f"results/kept/{run_id}/seed8.json").read_text())
    assert [*index["rounds"]] == ["1", "2"]
    path = measurements.measurements_path(project.root, run_id, canonical("decomposition(draws=2)"), 8)
    values = {v.metric: v.value for v in measurements.read(path).values if v.client is None and v.round == 2}
    assert bar["y"] == [values["heterogeneous_bias"]]
    assert values["heterogeneous_bias"] > values["train_bias"] > 0
    terms = ("squared_bias", "variance", "covariance", "remainder")
    assert abs(sum(values[key] for key in terms) - values["squared_error"]) < 1e-12
    csv = (project.root / "reports/figure91.csv").read_text()
    assert csv.startswith("row,column,metric,x,to,value,seeds\n")
    for name in FIGURES:
        assert "<svg" in (project.root / f"reports/{name}.svg").read_text()
