"""Column labels name the rounds and data that a smaller scale uses."""

from dataclasses import replace
from pathlib import Path

import pytest

from fedrepro.config.grid import plan
from fedrepro.config.labels import at_this_scale
from fedrepro.config.plan import Plan
from fedrepro.config.project import load_project
from fedrepro.data.registry import load_registry

ROOT = Path(__file__).parents[3]
REGISTRY = load_registry(ROOT / "data/registry.yaml")


def planned(place: str, scale: str) -> Plan:
    """The plan of a table or figure with the paper's settings."""
    return plan(load_project(ROOT, {}).as_published(scale), *place.split("/"), scale)


def made(scale: str) -> Plan:
    """The plan of FedIMA's Figure 1: 400 rounds in the paper, 60 at scale short."""
    return planned("fedima/figure1", scale)


def test_a_smaller_scale_says_which_rounds_it_reads() -> None:
    """The label adds the same share of the run's rounds. At full scale it adds nothing."""
    assert [column.label for column in made("short").columns[:3]] == [
        "clients, round 20 (here 3)",
        "clients, round 200 (here 30)",
        "clients, round 400 (here 60)",
    ]
    assert [column.label for column in made("full").columns[:3]] == [f"clients, round {n}" for n in (20, 200, 400)]


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("10 rounds apart", "10 rounds (here 2) apart"),
        ("mean of rounds 101 to 200", "mean of rounds 101 to 200 (here 16 to 30)"),
        ("round 0", "round 0"),
        ("around 200 clients", "around 200 clients"),
        ("α = 0.1", "α = 0.1"),
    ],
)
def test_only_rounds_are_counted(label: str, shown: str) -> None:
    """Only a label that names a round gets an addition. Round 0 is before training at any scale."""
    figure = made("short")
    column = replace(figure.columns[0], label=label)
    cells = [replace(cell, instead_of={"rounds": 400}) for cell in figure.cells if cell.column == column.key]
    assert at_this_scale(column, cells, figure.runs, REGISTRY).label == shown


def test_another_network_is_named() -> None:
    """At scale short PACS has 64 pixels and trains fedima_cnn_64px instead of AlexNet, so its group label names both networks.
    CIFAR-10 trains the paper's network."""
    groups = {column.key: column.group for column in planned("fedima/table1", "short").columns}
    assert groups["pacs-shards"] == "PACS · AlexNet (here pacs-64px, fedima_cnn_64px)"
    assert groups["c10-cnn-shards"] == "CIFAR-10 · CNN"


def test_a_group_says_which_rounds_it_has() -> None:
    assert {column.group for column in planned("fedgh/table5-tiny20", "short").columns} == {
        "100 rounds (here 2), on tiny-imagenet-20"
    }


def test_cells_with_other_shares_leave_the_label_alone() -> None:
    """The cells of the column scale their rounds by different factors, so no single number is right for all of them."""
    figure = made("short")
    (cell,) = [cell for cell in figure.cells if cell.column == "early"]
    own, other = (replace(cell, instead_of={"rounds": rounds}) for rounds in (400, 100))
    column = replace(figure.columns[0], label="round 20")
    assert at_this_scale(column, [own, other], figure.runs, REGISTRY) == column


def test_a_column_with_other_data_names_them() -> None:
    """The group label names the data, or the column's label if there is no group. Nothing is added at full scale, for a cell
    without a run, or if cifar10-lossless replaces CIFAR-10."""
    demo, full = (planned("fedlaw/table3", scale) for scale in ("demo", "full"))
    assert demo.columns[0].title == "FashionMNIST (here digits) · MLP, α = 100"
    assert full.columns[0].title == "FashionMNIST · MLP, α = 100"
    assert planned("fedima/table1", "short").columns[2].title == "CIFAR-10 · CNN · #C = 2"  # from cifar10-lossless
    cells = [cell for cell in demo.cells if cell.column == demo.columns[0].key]
    alone = replace(demo.columns[0], group=None, label="α = 100")
    assert at_this_scale(alone, cells, demo.runs, REGISTRY).title == "α = 100, on digits"
    assert at_this_scale(alone, [replace(cell, run_id=None) for cell in cells], demo.runs, REGISTRY) == alone


def test_a_column_of_tuned_cells_says_what_its_candidates_have() -> None:
    """No cell of it has a run before its candidates are compared."""
    assert planned("igfl/table5", "demo").columns[0].title == "CIFAR-10, 10 clients (here digits, mlp) · E = 1"
