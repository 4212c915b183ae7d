"""FedLAW's Table 3 and its stand-in in the project's own files."""

import copy
from typing import Any

import pytest
from small_papers import ROOT, cell, ids

from fedrepro.config import grid
from fedrepro.config.project import load_project
from fedrepro.registry import named_arguments
from fedrepro.typed import plain

# Copied by hand from the paper's Table 3, columns F-MLP 100, F-LeNet 100, F-MLP .1, F-LeNet .1, C10-CNN 100, C10-RN 100, ...
TABLE3 = {
    "fedavg": [89.29, 90.54, 85.11, 88.08, 65.78, 74.57, 60.13, 46.04, 25.74, 27.49, 27.74, 24.92],
    "fedprox": [87.68, 89.77, 84.33, 87.01, 67.66, 68.51, 60.48, 48.84, 9.49, 27.15, 12.52, 23.73],
    "feddyn": [88.47, 89.92, 77.68, 72.68, 66.1, 76.62, 41.53, 35.77, 24.44, 32.18, 22.67, 29.00],
    "feddf": [86.16, 89.09, 78.48, 85.90, 69.60, 77.36, 57.38, 54.09, 28.52, 27.42, 24.52, 23.10],
    "fedbe": [86.22, 89.14, 79.12, 85.96, 69.88, 77.94, 59.84, 52.86, 28.38, 27.73, 25.41, 23.74],
    "server_ft": [89.09, 90.56, 85.71, 88.10, 66.83, 74.73, 60.43, 47.59, 25.37, 26.14, 24.33, 23.03],
    "fedlaw": [88.51, 90.66, 86.30, 88.26, 70.17, 80.46, 62.46, 52.83, 32.51, 33.17, 32.30, 24.84],
    "fedlaw_swa": [88.27, 90.51, 86.89, 88.18, 69.9, 79.55, 62.12, 57.08, 32.39, 33.17, 32.27, 25.31],
}
COLUMNS = [
    f"{data}-{model}-{alpha}"
    for data, models in (
        ("fashion_mnist", ("mlp", "lenet")),
        ("cifar10", ("simple_cnn", "resnet20")),
        ("cifar100", ("simple_cnn", "resnet20")),
    )
    for alpha in ("100", "0.1")
    for model in models
]


def plan(*of: Any) -> dict[str, Any]:
    """Plans a table and returns the plan as plain JSON values."""
    return plain(grid.plan(*of))


@pytest.fixture(scope="module")
def table3() -> dict[str, dict[str, Any]]:
    """FedLAW's Table 3 at the three scales, without the user's params.yaml."""
    return {scale: plan(load_project(ROOT, {}), "fedlaw", "table3", scale) for scale in ("demo", "short", "full")}


def test_all_96_printed_numbers_are_in_their_cells(table3: dict[str, dict[str, Any]]) -> None:
    """Each row and column has the printed number."""
    found = {(c["row"], c["column"]): c["printed"] for c in table3["full"]["cells"]}
    assert len(COLUMNS) == len(set(COLUMNS)) == 12
    assert found == {
        (row, column): value for row, values in TABLE3.items() for column, value in zip(COLUMNS, values, strict=True)
    }


def test_a_cells_run_is_what_its_column_says(table3: dict[str, dict[str, Any]]) -> None:
    """Data set, model and alpha of the run match the column's key, and the method matches the row."""
    runs = 0
    for found in table3["full"]["cells"]:
        if found["run_id"]:
            run = table3["full"]["runs"][found["run_id"]]
            config, (data, model, alpha) = run["config"], found["column"].rsplit("-", 2)
            expected = (data, model, f"dirichlet_per_class(alpha={float(alpha)})", found["row"])
            assert (config["dataset"], config["model"], config["partition"], run["method_label"]) == expected
            runs += 1
    assert runs == 96


def test_every_cell_of_table_3_has_a_run(table3: dict[str, dict[str, Any]]) -> None:
    """96 at scales full and short, and 32 in the four columns of scale demo."""
    assert [sum(c["run_id"] is not None for c in table3[scale]["cells"]) for scale in ("full", "short", "demo")] == [96, 96, 32]
    assert {(c["average_last"], c["average_last_source"]) for c in table3["full"]["cells"]} == {(10, "paper, appendix D.5")}
    assert {c["average_last"] for c in table3["short"]["cells"]} == {1}
    assert [column["key"] for column in table3["demo"]["columns"]] == COLUMNS[:4]


def test_every_value_of_table_3_has_a_source_other_than_the_method(table3: dict[str, dict[str, Any]]) -> None:
    """Every argument has a source. Only FedAvg's own parts keep defaults."""
    silent = {"mean.weighting", "server_sgd.server_lr", "mean_buffers.weighting"}
    for run in table3["full"]["runs"].values():
        sources = run["argument_sources"]
        assert sources.keys() == named_arguments(run["method"]).keys()
        assert {key for key, source in sources.items() if source.startswith("default")} <= silent


OTHERS = [item.other for item in load_project(ROOT, {}).paper("fedlaw").disagreements if item.other]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_the_other_variant_is_what_params_yaml_says_it_is(other: dict[str, Any], table3: dict[str, dict[str, Any]]) -> None:
    """params.yaml accepts the variant in the form that the report prints. A variant has other run_ids and is not comparable
    with the paper, unless it changes only the seeds."""
    made = plan(load_project(ROOT, copy.deepcopy(other)), "fedlaw", "table3", "full")
    seeds_alone = set(other) == {"seeds"}
    assert (ids(made) == ids(table3["full"]), made["comparable"]) == (seeds_alone, seeds_alone)


def test_the_stand_in_table() -> None:
    """The stand-in has CIFAR-10's settings and printed numbers, has a budget, and is never comparable."""
    project = load_project(ROOT, {})
    table3 = plan(project, "fedlaw", "table3", "short")
    made = {scale: plan(project, "fedlaw", "table3-cifar10-jpeg", scale) for scale in ("demo", "short", "full")}
    assert not any(one["comparable"] for one in made.values())
    short = made["short"]
    assert (short["seeds"], made["full"]["seeds"]) == ([8], [8, 9, 10])
    rounds = {c["column"]: short["runs"][c["run_id"]]["config"]["rounds"] for c in short["cells"] if c["run_id"]}
    assert list(rounds.values()) == [5, 5, 2]
    run = {key: [c["row"] for c in short["cells"] if c["column"] == key and c["run_id"]] for key in rounds}
    assert [*run.values()] == [[*TABLE3], [*TABLE3], ["fedavg", "fedlaw", "fedavg_proxy_buffers"]]
    mine = {(c["row"], c["column"].replace("-jpeg", "")): c for c in short["cells"] if c["row"] in TABLE3}
    for place, found in mine.items():
        theirs = cell(table3, *place)
        assert found["printed"] == theirs["printed"]
        if found["run_id"]:
            ours, own = short["runs"][found["run_id"]], table3["runs"][theirs["run_id"]]
            assert ours["method"] == own["method"]
            assert {k for k in own["config"] if ours["config"][k] != own["config"][k]} == {"dataset", "dataset_sha", "rounds"}


def test_the_same_images_in_another_order_are_comparable() -> None:
    """CIFAR-10 from parquet files is no stand-in: it has CIFAR-10's settings, and at scale full its printed numbers count."""
    project = load_project(ROOT, {})
    made, table3 = (plan(project, "fedlaw", name, "full") for name in ("table3-cifar10-lossless", "table3"))
    assert made["comparable"]
    for here in made["cells"]:
        there = cell(table3, here["row"], here["column"])
        ours, own = made["runs"][here["run_id"]], table3["runs"][there["run_id"]]
        assert (here["printed"], ours["method"]) == (there["printed"], own["method"])
        assert {k for k in own["config"] if ours["config"][k] != own["config"][k]} == {"dataset", "dataset_sha"}
