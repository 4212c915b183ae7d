"""What a table reports, its budget, and its stand-ins."""

from typing import Any

import pytest
from small_papers import FULL, Files, cell, ids, run_of, stand_in

from fedrepro.config.layers import _whose


def test_average_last_is_the_tables_and_not_the_runs(files: Files) -> None:
    """Cells have average_last with its source, by the same layers as any setting. Another value keeps the run but is not
    comparable with the paper."""
    before = files.plan(FULL)
    found = cell(before, "fedavg", "mnist")
    assert (found["average_last"], found["average_last_source"]) == (10, "paper")
    assert "average_last" not in run_of(before, "fedavg")["config"] | run_of(before, "fedavg")["sources"]
    after = files.plan({**FULL, "settings": {"average_last": 3}})
    assert ids(after) == ids(before)
    found = cell(after, "fedavg", "mnist")
    assert (found["average_last"], found["average_last_source"], after["comparable"]) == (3, "params.yaml", False)
    assert cell(after, "feddyn", "mnist")["average_last"] is None
    files.paper["protocol"]["rounds"]["value"] = 16
    assert run_of(files.plan({"scale": "short"}), "fedavg")["config"]["rounds"] == 2  # a tenth of 16, rounded
    files.paper["protocol"]["rounds"]["value"] = 200
    files.scales["short"]["settings"]["average_last"] = {"times": 0.5}
    assert cell(files.plan({"scale": "short"}), "fedavg", "mnist")["average_last"] == 5


def with_budget(files: Files, **column: Any) -> dict[str, Any]:
    """The plan at scale short of a table whose budget has 5 of 20 rounds and one seed. `column` is the budget of its second
    column."""
    files.table["budget"] = {"short": {"note": "what we have", "seeds": [4], "rounds": 5, "average_last": 1}}
    files.table["columns"][1]["budget"] = {"short": column} if column else {}
    return files.plan({"scale": "short", "seeds": [8, 9, 10]})


def test_a_budget_wins_over_the_scale_and_a_columns_over_the_tables(files: Files) -> None:
    """The budget gives rounds, average_last, seeds and note, and is named as their source. Another scale ignores it, and
    params.yaml wins over it."""
    made = with_budget(files, rounds=2)
    assert (made["seeds"], made["scale_note"], made["on_budget"]) == ([4], "what we have", True)
    assert [run_of(made, "fedavg", c)["config"]["rounds"] for c in ("mnist", "fashion_mnist")] == [5, 2]
    assert run_of(made, "fedavg")["sources"]["rounds"] == "budget of the table at scale short"
    found = cell(made, "fedavg", "fashion_mnist")
    assert (found["average_last"], found["average_last_source"]) == (1, "budget of the table at scale short")
    full = files.plan({**FULL, "seeds": [8, 9, 10]})
    assert (full["seeds"], full["on_budget"], full["comparable"]) == ([8, 9, 10], False, True)
    edited = files.plan({"scale": "short", "settings": {"rounds": 7}})
    assert run_of(edited, "fedavg", "fashion_mnist")["config"]["rounds"] == 7


def test_a_budget_at_full_scale_is_not_comparable(files: Files) -> None:
    """A budget changes the paper's protocol, even with all rounds."""
    files.table["budget"] = {"full": {"note": "all rounds, one seed", "seeds": [8]}}
    assert not files.plan(FULL)["comparable"]


def test_rows_that_a_budget_leaves_out_say_so(files: Files) -> None:
    """The cell has the reason and its printed number, but no run. A companion that the budget names is shown and run."""
    files.table["companions"] = [{"key": "ours", "label": "Ours", "method": "fixed_gamma"}]
    made = with_budget(files, rows=["fedavg", "ours"])
    left = cell(made, "fedlaw", "fashion_mnist")
    assert (left["run_id"], left["reason"], left["printed"]) == (None, "not in the budget of the table at scale short", 52.0)
    assert cell(made, "fedlaw", "mnist")["run_id"]
    assert cell(made, "ours", "fashion_mnist")["run_id"]
    assert [row["key"] for row in files.plan(FULL)["rows"]] == ["fedavg", "fedprox", "fedlaw", "feddyn"]


def test_a_stand_in_takes_settings_and_arguments_of_the_data_set_it_stands_for(files: Files) -> None:
    """The sources say so, and the table is never comparable."""
    stand_in(files)
    made = files.plan(FULL)
    law = run_of(made, "fedlaw")
    assert (law["config"]["dataset"], law["config"]["client_lr"]) == ("digits", 0.01)
    assert law["sources"]["client_lr"] == "as mnist: paper"
    assert "fedlaw(server_lr=0.002" in law["method"]
    assert law["argument_sources"]["fedlaw.server_lr"] == "as mnist: paper"
    assert law["sources"]["client_momentum"] == "paper"
    assert (made["stand_in"], made["comparable"]) == ("Digits in the place of MNIST.", False)


@pytest.mark.parametrize(
    ("source", "whose"),
    [
        ("paper, section 5", "paper"),
        ("Table 3, p. 8", "paper"),
        ("as fedlaw/table3: Table 3, p. 8", "paper"),
        ("Beside Table 3 (ours)", "ours"),
        ("Table 3 (ours)", "ours"),
        ("Table 3, MNIST, varied", "ours"),
        ("authors' code, train.py", "authors' code"),
        ("inferred: from Figure 2", "inferred"),
        ("our choice", "ours"),
    ],
)
def test_whose_a_value_is(source: str, whose: str) -> None:
    """A value of a table of ours is not the paper's, though it names the paper's table."""
    assert _whose(source) == whose


def test_the_papers_values_stand_beside_what_changes_them(files: Files) -> None:
    """Values that scale, budget or stand-in replace are shown with the paper's value. Edits by params.yaml are not, and full
    scale has none."""
    made = with_budget(files, rounds=2)
    places = "mnist", "fashion_mnist"
    assert [cell(made, "fedavg", place)["instead_of"]["rounds"] for place in places] == [200, 200]
    assert [cell(files.plan(FULL), "fedavg", place)["instead_of"] for place in places] == [{}, {}]
    assert "rounds" not in cell(files.plan({"scale": "short", "settings": {"rounds": 7}}), "fedavg", "mnist")["instead_of"]
    stand_in(files)
    assert cell(files.plan(FULL), "fedavg", "mnist")["instead_of"] == {"dataset": "mnist"}
