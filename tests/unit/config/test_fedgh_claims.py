"""FedGH's claims: they name what there is, and take the printed numbers from the tables."""

import re
from pathlib import Path

import pytest

from fedrepro.config.claims import check_names, claims_path, load_claims
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.judge import judge

ROOT = Path(__file__).parents[3]


def test_fedghs_claims_name_what_there_is() -> None:
    """Every table, row and column; misspelt ones are refused with the nearest name; no printed number is typed in again."""
    project = load_project(ROOT)
    claims, path = load_claims(ROOT, "fedgh"), claims_path(ROOT, "fedgh")
    assert {re.sub(r"-[a-z]+$", "", claim.id) for claim in claims} == {f"GH-{number}" for number in range(1, 9)}
    tables = {name: project.table("fedgh", name) for name in {claim.table for claim in claims}}
    check_names(claims, tables, path)
    for key, wrong, said in (
        ("pairs", {"fedavg+gb": "fedavg"}, "table1: unknown row 'fedavg\\+gb'; did you mean 'fedavg\\+gh'"),
        ("columns", ["clients5-top1", "clients6-top1"], "table1: unknown column 'clients6-top1'; did you mean 'clients"),
        ("columns", ["clients5-top1", "clients5-top3"], "test_accuracy and test_top3_accuracy, which have no mean or trend"),
    ):
        with pytest.raises(UserError, match=f"claims.yaml: GH-1: .*{said}"):
            check_names([claims[0].model_copy(update={key: wrong})], tables, path)
    values = r"(alpha( = )?|value: )[\d.]+"  # of settings, and bounds of ours
    assert not re.search(r"\d\.\d\d", re.sub(values, "", path.read_text()))


def test_fedghs_claims_take_the_printed_numbers_from_the_tables() -> None:
    """The differences that the slides print, recomputed from their accuracies; nothing has run, so that no verdict is given."""
    project = load_project(ROOT, {"scale": "full"})
    claims = load_claims(ROOT, "fedgh")
    tables = {name: Exhibit(plan(project, "fedgh", name, "full"), {}) for name in ("table1", "table2", "table3")}
    found = {one.claim.id: one for one in judge(claims, tables)}
    assert {one.verdict for one in found.values()} == {"not run"}
    printed = {key: [number.printed for number, _ in one.numbers] for key, one in found.items()}
    assert printed["GH-1"][1:] == [-0.89, 4.24, 6.43, 8.42]
    assert printed["GH-2"][1:] == [8.42, 5.75, 3.63, 0.39, 0.0]
    assert printed["GH-3"] == [6.42, 11.46, -1.79, -0.24, 8.42]
    assert printed["GH-2-iid"] == [0.0, 0.0]
    # Least squares: steps -1.5, -0.5, 0.5, 1.5 times the differences, over 5, times 3 steps.
    assert printed["GH-1"][0] == pytest.approx(3 * (1.5 * (8.42 + 0.89) + 0.5 * (6.43 - 4.24)) / 5)
