"""FedLAW's claims on Table 3: they name what there is, and take the printed numbers from the table."""

import re
from pathlib import Path

from fedrepro.config.claims import check_names, claims_path, load_claims
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.judge import judge

ROOT = Path(__file__).parents[3]


def test_fedlaws_claims_take_the_printed_numbers_from_the_table() -> None:
    project = load_project(ROOT, {"scale": "full"})
    claims, path = load_claims(ROOT, "fedlaw"), claims_path(ROOT, "fedlaw")
    check_names(claims, {"table3": project.table("fedlaw", "table3")}, path)
    assert not re.search(r"\d\.\d\d", path.read_text())
    found = {one.claim.id: one for one in judge(claims, {"table3": Exhibit(plan(project, "fedlaw", "table3", "full"), {})})}
    printed = {key: [number.printed for number, _ in one.numbers] for key, one in found.items()}
    assert printed["LAW-13"] == [4.39, 5.89, 2.33, 6.79]
    assert printed["LAW-13-swa"] == [4.25]
    assert printed["LAW-14"] == [6.77, 4.56, 5.68]
    assert printed["LAW-15-mlp"] == printed["LAW-15-small"] == [-0.78, 1.19]
    assert printed["LAW-15-lenet"] == [0.12, 0.18]


def test_the_text_is_wrong_about_its_own_table() -> None:
    """ "Ahead of every baseline": the printed numbers say otherwise in three of the twelve columns."""
    project = load_project(ROOT, {"scale": "full"})
    claims = [claim for claim in load_claims(ROOT, "fedlaw") if claim.id.startswith("LAW-ahead")]
    found = judge(claims, {"table3": Exhibit(plan(project, "fedlaw", "table3", "full"), {})})
    numbers = [number for one in found for number, _ in one.numbers]
    assert len(numbers) == 6 * 12
    behind = {number.column for number in numbers if (number.printed or 0) < 0}
    assert behind == {"fashion_mnist-mlp-100", "cifar10-resnet20-0.1", "cifar100-resnet20-0.1"}
