"""A table that varies another: what it takes over, what its rows change, and mistakes."""

from pathlib import Path
from typing import Any

import pytest
from small_papers import Files, cell, run_of

from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.errors import UserError

ROOT = Path(__file__).parents[3]

FULL = {"scale": "full"}
SCHEME = "dirichlet_per_class(alpha=1)"
VARIANTS = "table1-variants"


def varied(files: Files, **row: Any) -> Files:
    """Adds a second table that varies the first, with one row, FedAvg."""
    fedavg = {"key": "other", "label": "FedAvg", "method": "fedavg", "published": "fedavg", "variant": "skewed"}
    files.more[VARIANTS] = {"title": "Varied", "source": "Table 1, varied", "variant_of": "table1", "rows": [fedavg | row]}
    return files


def test_it_takes_columns_and_printed_numbers(files: Files) -> None:
    """It takes the columns and printed numbers of the varied table. A row without a change has the same run."""
    made = varied(files).plan(FULL, VARIANTS)
    assert (made["variant_of"], [column["key"] for column in made["columns"]]) == ("table1", ["mnist", "fashion_mnist"])
    assert cell(made, "other", "mnist")["printed"] == 50.0
    assert made["rows"] == [
        {"key": "other", "label": "FedAvg, skewed", "printed": True, "variant": "skewed", "name": "fedavg", "metric": None}
    ]
    assert cell(made, "other", "mnist")["run_id"] == cell(files.plan(FULL), "fedavg", "mnist")["run_id"]


def test_a_row_changes_settings(files: Files) -> None:
    """A row sets a value in every column, or replaces one value of the columns by another. The sources name the row or the
    table."""
    iid = {"partition": {SCHEME: "iid"}}
    run = run_of(varied(files, setting={"clients": 7}, replace=iid).plan(FULL, VARIANTS), "other")
    assert (run["config"]["clients"], run["config"]["partition"]) == (7, "iid")
    assert run["sources"]["clients"] == "Table 1, varied: FedAvg, skewed"
    assert run["sources"]["model"] == "Table 1, varied"
    files.more[VARIANTS]["columns"] = [
        column | {"setting": column["setting"] | {"partition": scheme}}
        for column, scheme in zip(files.table["columns"], (SCHEME, "shards(per_client=2)"), strict=True)
    ]
    made = files.plan(FULL, VARIANTS)
    assert [run_of(made, "other", key)["config"]["partition"].partition("(")[0] for key in ("mnist", "fashion_mnist")] == [
        "iid",
        "shards",
    ]


def test_mistakes_are_named(files: Files) -> None:
    varied(files, replace={"partition": {"dirichlet_per_class(alpha=2)": "iid"}})
    with pytest.raises(UserError, match=r"row other: replace: no column has partition = 'dirichlet_per_class\(alpha=2\)'"):
        files.plan(FULL, VARIANTS)
    varied(files)
    for name, words in (
        ("tabel1", "unknown table 'tabel1'; did you mean 'table1'"),
        ("../tables/table1", "unknown table '../tables/table1'; Known: table1"),
        (VARIANTS, f"{VARIANTS} is a variant itself; name a table that varies no other"),
    ):
        files.more[VARIANTS]["variant_of"] = name
        with pytest.raises(UserError, match=rf"table1-variants\.yaml: variant_of: {words}"):
            files.plan(FULL, VARIANTS)


def test_an_edit_of_the_table_that_is_varied_counts(files: Files) -> None:
    varied(files).plan(FULL, VARIANTS)
    files.table["columns"][0]["setting"]["model"] = "lenet"
    assert run_of(files.plan(FULL, VARIANTS), "other")["config"]["model"] == "lenet"


def test_it_says_how_it_differs(files: Files) -> None:
    """The plan lists settings and arguments that no run of the varied table has. With the same runs the list is empty."""
    assert files.plan(FULL)["varied"] is None
    assert varied(files).plan(FULL, VARIANTS)["varied"] == {"source": "Table 1", "values": {}}
    row = {"setting": {"clients": 7}, "method": "fedavg+mean(weighting=uniform)"}
    made = varied(files, **row).plan(FULL, VARIANTS)["varied"]
    assert made == {"source": "Table 1", "values": {"clients": [7], "mean.weighting": ["uniform"]}}


def test_a_value_of_another_column_is_a_difference(files: Files) -> None:
    """MNIST trains at 0.1 and FashionMNIST at 0.2, so 0.2 on MNIST is a difference. Another reading is one too."""
    for column, rate in zip(files.table["columns"], (0.1, 0.2), strict=True):
        column["setting"]["client_lr"] = rate
    same = varied(files, replace={"client_lr": {"0.2": 0.2}}).plan(FULL, VARIANTS)["varied"]
    assert same["values"] == {}
    made = varied(files, setting={"client_lr": 0.2}, read="last(2)").plan(FULL, VARIANTS)["varied"]
    assert made["values"] == {"client_lr": [0.2], "what is read": ["last(rounds=2)"]}


def test_other_methods_are_named_without_their_arguments() -> None:
    """The control on FedLAW's Table 3 differs only in method parts that no row of Table 3 has."""
    made = plan(load_project(ROOT), "fedlaw", "table3-control", "full")
    assert made.varied is not None
    assert made.varied.values == {"methods": ["fedlaw_only", "proxy_buffers", "adaptive_gws", "attentive_law", "fedlaw_quad"]}
