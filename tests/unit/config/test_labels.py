"""Labels of columns that name rounds of the paper."""

from dataclasses import replace
from pathlib import Path

import pytest

from fedrepro.config.grid import plan
from fedrepro.config.labels import told
from fedrepro.config.project import load_project

ROOT = Path(__file__).parents[3]


def made(scale: str):
    """FedIMA's Figure 1: 400 rounds in the paper, 60 at scale short."""
    return plan(load_project(ROOT, {}).as_published(scale), "fedima", "figure1", scale)


def test_a_smaller_scale_says_which_rounds_it_reads() -> None:
    """The same share of the run's rounds as the label names of the paper's; at full scale nothing is added."""
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
        ("round 0", "round 0"),
        ("around 200 clients", "around 200 clients"),
        ("α = 0.1", "α = 0.1"),
    ],
)
def test_only_rounds_are_counted(label: str, shown: str) -> None:
    """A round 0 is before training, at any scale."""
    figure = made("short")
    assert told(label, [cell for cell in figure.cells if cell.column == "early"], figure.runs) == shown


def test_cells_with_other_shares_leave_the_label_alone() -> None:
    """One number would be wrong for some of them."""
    figure = made("short")
    (cell,) = [cell for cell in figure.cells if cell.column == "early"]
    other = replace(cell, instead_of=cell.instead_of | {"rounds": 100})
    assert told("round 20", [cell, other], figure.runs) == "round 20"
