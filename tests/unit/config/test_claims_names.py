"""Claims name rows and columns of their paper's tables."""

from typing import Any

import pytest
import yaml
from small_papers import FULL, Files

from fedrepro.config.project import load_project
from fedrepro.config.words import check_claims
from fedrepro.errors import UserError
from tests.helpers.one_line import one_line

CLAIM = {
    "id": "A-C1",
    "text": "FedProx is ahead",
    "where": "Table 1",
    "kind": "difference",
    "table": "table1",
    "columns": ["mnist"],
    "pairs": {"fedprox": "fedavg"},
}


def checked(files: Files, **changes: Any) -> None:
    files.plan(FULL)
    (files.root / "papers/some/claims.yaml").write_text(yaml.safe_dump([CLAIM | changes]))
    check_claims(load_project(files.root, {}), "some")


def test_rows_companions_and_columns_are_found(files: Files) -> None:
    """Claims can name rows, companions and columns. A table without a file counts as not run."""
    files.table["companions"] = [{"key": "gh", "label": "gh", "method": "fedavg+gh"}]
    for changes in ({}, {"pairs": {"gh": ["fedavg", "fedprox"]}}, {"columns": ["fashion_mnist"]}, {"table": "table9"}):
        checked(files, **changes)


def test_a_paper_without_claims(files: Files) -> None:
    files.plan(FULL)
    check_claims(load_project(files.root, {}), "some")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pairs": {"fedporx": "fedavg"}}, "A-C1: table1: unknown row 'fedporx'; did you mean 'fedprox'?"),
        ({"pairs": {"fedprox": "gh"}}, "A-C1: table1: unknown row 'gh'"),
        ({"columns": ["minst"]}, "A-C1: table1: unknown column 'minst'; did you mean 'mnist'?"),
    ],
)
def test_what_is_not_there_is_one_line(files: Files, changes: dict[str, Any], says: str) -> None:
    with one_line() as caught:
        checked(files, **changes)
    assert f"{files.root}/papers/some/claims.yaml: {says}" in str(caught.value)


@pytest.mark.parametrize("changes", [{"combine": "mean"}, {"kind": "trend", "direction": "rises"}])
def test_columns_of_two_metrics_have_no_mean_and_no_trend(files: Files, changes: dict[str, Any]) -> None:
    """Without a mean or trend the columns are accepted."""
    files.table["columns"][1] |= {"metric": {"name": "test_loss", "unit": "loss", "description": "loss"}, "published": None}
    columns = {"columns": ["mnist", "fashion_mnist"]}
    checked(files, **columns)
    with pytest.raises(UserError, match="A-C1: columns hold test_accuracy and test_loss, which have no mean or trend"):
        checked(files, **columns, **changes)
