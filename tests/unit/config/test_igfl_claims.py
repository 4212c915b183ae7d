"""IGFL's claims on its tables: they name what there is, and take the printed numbers from the tables."""

import re
from functools import cache
from pathlib import Path

from fedrepro.config.claims import check_names, claims_path, load_claims
from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.judge import ClaimVerdict, judge

ROOT = Path(__file__).parents[3]
TABLES = tuple(f"table{number}" for number in range(1, 7))


@cache
def judged() -> dict[str, ClaimVerdict]:
    project = load_project(ROOT, {"scale": "full"})
    claims, path = load_claims(ROOT, "igfl"), claims_path(ROOT, "igfl")
    check_names(claims, {name: project.table("igfl", name) for name in TABLES}, path)
    assert not re.search(r"\d\.\d\d", path.read_text()), "a printed number is typed in"
    tables = {name: Exhibit(plan(project, "igfl", name, "full"), {}) for name in TABLES}
    return {one.claim.id: one for one in judge(claims, tables)}


def printed(claim: str) -> list[float | None]:
    return [number.printed for number, _ in judged()[claim].numbers]


def test_the_claims_take_the_printed_numbers_from_the_tables() -> None:
    """Differences worked from the fact sheet by hand."""
    assert printed("IG-1") == [0.83, 0.35, 0.41, 0.20, 0.12, 0.28]
    assert printed("IG-2") == [0.87, 0.91, 0.17, 1.31, 0.14, 0.94]
    assert printed("IG-3") == [12.71]
    assert printed("IG-3-others") == [3.43, 3.40]
    assert printed("IG-4") == [1.98, 6.11, 10.83, 1.53, 4.29, 10.09]
    assert printed("IG-6") == [3.45, 6.44]
    assert printed("IG-8-time") == [0.60, 1.06, 1.62, 1.65]
    assert printed("IG-8-self") == [2.66, 6.82, 2.44, 4.70]
    assert {one.verdict for one in judged().values()} == {"not run"}


def test_the_gain_over_momentum_grows_with_the_local_steps() -> None:
    """Table 4 prints the differences too: 0.35, 1.52, 2.39, 3.00."""
    assert {0.35, 1.52, 2.39, 3.0} <= set(printed("IG-7"))


def test_the_text_is_wrong_about_its_own_tables() -> None:
    """B-T7, B-T8: the printed numbers lie on the other side than the text."""
    behind = lambda claim: sum((value or 0) < 0 for value in printed(claim))  # noqa: E731
    assert behind("IG-text-server") == 4  # of 8: three at E = 1, SCAFFOLD at E = 5
    assert behind("IG-text-server-device") == 5  # of 9: ahead of FedAvg, and by 0.01 of FedAvgM at rho = 1
    assert behind("IG-text-emnist") == 2  # of 2
    assert behind("IG-8-global") == 1  # of 12: time-attention at E = 1, rho = 1000; the text has no "ahead" for it
