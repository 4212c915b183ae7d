"""FedIMA's claims and tables: they name what there is, take the printed numbers from the tables, and share their runs."""

from functools import cache
from pathlib import Path

from fedrepro.config.claims import check_names, claims_path, load_claims
from fedrepro.config.grid import plan
from fedrepro.config.plan import Plan
from fedrepro.config.project import load_project
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.judge import ClaimVerdict, judge

ROOT = Path(__file__).parents[3]
TABLES = tuple(f"table{number}" for number in (1, 2, 3, 8, 9, 10, 11, 12))


@cache
def planned(table: str, scale: str = "full") -> Plan:
    return plan(load_project(ROOT, {"scale": scale}), "fedima", table, scale)


@cache
def judged() -> dict[str, ClaimVerdict]:
    project, claims = load_project(ROOT, {"scale": "full"}), load_claims(ROOT, "fedima")
    check_names(claims, {name: project.table("fedima", name) for name in TABLES}, claims_path(ROOT, "fedima"))
    return {one.claim.id: one for one in judge(claims, {name: Exhibit(planned(name), {}) for name in TABLES})}


def printed(claim: str) -> list[float | None]:
    return [number.printed for number, _ in judged()[claim].numbers]


def run_of(table: str, row: str, column: str, scale: str = "full") -> str | None:
    return next(cell.run_id for cell in planned(table, scale).cells if (cell.row, cell.column) == (row, column))


def test_every_printed_number_has_a_cell() -> None:
    """Table 1: 12 settings x 8 methods, without and with IMA. Table 2: 6 x 5. Table 3: 8 x 5."""
    for table, count in (("table1", 192), ("table2", 30), ("table3", 40)):
        assert sum(cell.printed is not None for cell in planned(table).cells) == count
        assert all(cell.reason is None for cell in planned(table).cells)


def test_the_claims_take_the_printed_numbers_from_the_tables() -> None:
    """Differences worked from the fact sheet by hand."""
    assert printed("IM-2") == [9.65]
    assert printed("IM-3") == [5.03, 5.32, 1.04, 1.70, 5.12, 5.10, 2.06, 5.22]
    assert printed("IM-5") == [5.04, 1.37, 6.41]  # a rise from 1.37 to 6.41
    assert printed("IM-7")[:2] == [12.24, 7.73]
    assert printed("IM-10") == [-199, -193]
    assert printed("IM-11") == [96]
    assert printed("IM-13") == [1.61, 1.66, 1.62, 0.40, 1.05, 2.25, 2.73, 1.39]
    assert all((value or 0) > 0 for value in printed("IM-1") + printed("IM-1-domains"))
    assert {one.verdict for one in judged().values()} == {"not run"}


def test_tables_share_runs() -> None:
    """Table 2's start at 300, Table 3's first column, Figure 7's first line; at scale short Figures 1, 3 and 5."""
    assert run_of("table2", "fedavg", "start300") == run_of("table3", "fedavg+ima", "exponential")
    assert run_of("table2", "fedavg", "start300") == run_of("table1", "fedavg+ima", "c10-cnn-dirichlet")
    assert run_of("table2", "fedfa", "start150") == run_of("table9", "start150", "fedfa")
    for table, row, column in (
        ("table10", "fedavg", "late-loss"),
        ("figure3", "decay", "locality"),
        ("figure5", "fedavg", "near"),
    ):
        assert run_of(table, row, column, "short") == run_of("table1", "fedavg", "c10-cnn-shards", "short")


def test_the_late_decay_starts_with_ima_alone() -> None:
    """0.99 a round, and 0.97 from round 300 on in rows with IMA; FedASAM's radii are those of the network."""
    made = planned("table1")
    plain, late = (made.runs[run_of("table1", row, "c10-cnn-shards") or ""] for row in ("fedavg", "fedavg+ima"))
    assert "schedule" not in plain.config
    assert late.config["schedule"] == "exponential(start=0, factor=null)+exponential(start=0.75, factor=0.97)"
    assert "fedasam(rho=0.7" in made.runs[run_of("table1", "fedasam", "c10-cnn-shards") or ""].method
    assert "fedasam(rho=0.2" in made.runs[run_of("table1", "fedasam", "c10-resnet-shards") or ""].method
