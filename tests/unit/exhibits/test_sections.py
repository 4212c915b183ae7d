"""Single sections: rows that are one run, the overview of columns, mean ranks, facts on the runs."""

from types import SimpleNamespace
from typing import Any

import pytest
from small_table import SEEDS, exhibit, make_evidence, make_plan, make_run, typed

from fedrepro.exhibits import provenance
from fedrepro.exhibits.exhibit import Exhibit, totals
from fedrepro.exhibits.receipt import Environment
from fedrepro.exhibits.sections import about, answer, grid, words
from fedrepro.exhibits.sections.about import about_the_runs
from fedrepro.exhibits.sections.across import across
from fedrepro.exhibits.sections.numbers import numbers
from fedrepro.exhibits.write import blocks as b

A, B = "mlp-a100", "mlp-a01"
ALL = {(row, column): [80.0, 81.0, 82.0] for row in ("fedavg", "fedlaw") for column in (A, B)}


def places(plan: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(cell["row"], cell["column"]): cell for cell in plan["cells"]}


def table(plan: dict[str, Any], accuracies: Any = None) -> Exhibit:
    return exhibit(plan, make_evidence(plan, accuracies or ALL))


@pytest.mark.parametrize(
    ("done", "published", "said"),
    [(9, 4, "4 published, 5 trained here"), (3, 3, "3 published"), (2, 0, "2 trained here"), (0, 0, "none yet")],
)
def test_where_results_come_from(done: int, published: int, said: str) -> None:
    assert about._origin(SimpleNamespace(runs_done=done, published=published)) == said  # type: ignore[arg-type]


def test_a_seed_that_diverged_after_it_was_read_is_said() -> None:
    """The cell shows an earlier round, and keeps its value. A seed that diverged before is the cell's reason, not repeated."""
    seeds = {
        seed: SimpleNamespace(diverged=diverged, diverges=lambda _, early=early: early, curves={"round": [0, 1, 2]})
        for seed, diverged, early in ((8, False, False), (9, True, False), (10, True, True))
    }
    cell = SimpleNamespace(receipts=seeds, reason="", place=SimpleNamespace(reading=None, note="a note"))
    assert words.remark(cell) == "seed 9 diverged later, in round 3; a note"  # type: ignore[arg-type]


OURS, OTHER = "1 of ours without printed numbers", "1 whose printed numbers are of another setting"


@pytest.mark.parametrize(
    ("others", "good", "further"),
    [
        ([], True, ""),
        ([{"comparable": False}], False, OTHER),
        ([{"prints": False}], True, OURS),
        ([{"comparable": False, "prints": False}], False, OURS),
        ([{"comparable": False}, {"prints": False}], False, f"{OURS}; {OTHER}"),
    ],
)
def test_the_headline_of_a_page(others: list[dict[str, bool]], good: bool, further: str) -> None:
    """One table has comparable printed numbers. The others are counted by what they lack. One that is not comparable leaves no
    green banner."""
    usual = {"comparable": True, "prints": True, "varied": None}
    plans = [
        SimpleNamespace(**(usual | more), table=f"table{number}", source=f"Table {number}")
        for number, more in enumerate([{}, *others], 3)
    ]
    tables = [SimpleNamespace(plan=plan, cells=[]) for plan in plans]
    paper = SimpleNamespace(tables=tables, figures=[], claims=[], plan=SimpleNamespace(scale="full"))
    ending = f" Also on the page: {further}. No number there is judged." if further else ""
    assert answer._headline(paper).partition(": Table 3.")[2] == ending  # type: ignore[arg-type]
    assert answer.is_good(plans) == good  # type: ignore[arg-type]


@pytest.mark.parametrize(("scale", "what"), [("demo", "the settings of this scale"), ("full", "these settings")])
def test_rows_that_are_one_run_are_said(scale: str, what: str) -> None:
    """A table's page calls two rows one run only if they share the run in every column."""
    plan = make_plan(scale)
    cells = places(plan)
    cells["fedlaw", A]["run_id"] = cells["fedavg", A]["run_id"]
    assert words.together(typed(plan)[0]) == ""
    cells["fedlaw", B]["run_id"] = cells["fedavg", B]["run_id"]
    said = f"FedAvg and FedLAW are one run here: {what} make them the same."
    assert words.together(typed(plan)[0]) == said
    assert b.Paragraph(said) in [block for section in numbers(exhibit(plan)) for block in section.blocks]


def test_columns_that_are_one_run_are_said() -> None:
    """A page calls two columns one run only if every row has the same run, reading and metric in both. Another round or metric
    gives another number."""
    plan = make_plan("demo")
    cells = places(plan)
    for (row, column), cell in cells.items():
        if column == B:
            cell |= {key: cells[row, A][key] for key in ("run_id", "read", "reason", "metric")}
    both = "FashionMNIST · MLP, α = 100 and FashionMNIST · MLP, α = 0.1"
    said = f"{both} are one run here: the settings of this scale make them the same."
    assert words.together(typed(plan)[0]) == said
    cells["fedlaw", B]["read"] = "at(1)"
    assert words.together(typed(plan)[0]) == ""


def test_rows_that_read_one_run_differently_are_not_one() -> None:
    """Two rows that read different metrics of one run are not reported as one run, for example three correlations of one
    training."""
    plan = make_plan("demo")
    cells = places(plan)
    for column in (A, B):
        cells["fedlaw", column]["run_id"] = cells["fedavg", column]["run_id"]
        cells["fedlaw", column]["metric"] = cells["fedavg", column]["metric"] | {"name": "test_loss"}
    assert words.together(typed(plan)[0]) == ""


def test_rows_without_any_run_are_not_one_run() -> None:
    """Two rows that the scale does not run share no run."""
    plan = make_plan("demo")
    for (row, _), cell in places(plan).items():
        if row != "fedavg":
            cell |= {"run_id": None, "reason": "not run at this scale"}
    assert words.together(typed(plan)[0]) == ""


def columns(of: b.Grid) -> list[str]:
    """The columns of an overview, as heads of columns or of rows."""
    names = [head.text for head in of.heads[0]] + [
        str(row.text if isinstance(row, b.Subheading) else row[0]) for row in of.rows
    ]
    return [name for name in names if name.startswith("FashionMNIST")]


def test_a_column_without_a_printed_number_is_not_at_a_glance() -> None:
    """The overview omits it if other columns have printed numbers. A table without printed numbers shows all columns."""
    plan = make_plan("full")
    both = ["FashionMNIST · MLP, α = 100", "FashionMNIST · MLP, α = 0.1"]
    assert columns(grid.compact(table(plan))) == both
    for row in ("fedavg", "fedlaw"):
        places(plan)[row, B]["printed"] = None
    assert columns(grid.compact(table(plan))) == both[:1]
    for row in ("fedavg", "fedlaw"):
        places(plan)[row, A]["printed"] = None
    assert columns(grid.compact(table(plan))) == both


def test_rows_of_ours_have_a_heading_only_beside_printed_numbers() -> None:
    plan = make_plan("full")
    ours = b.Subheading(grid.OURS)
    assert ours in grid.printed_grid(table(plan)).rows
    for place in plan["cells"]:
        place["printed"] = None
    assert ours not in grid.printed_grid(table(plan)).rows


def test_a_judged_cell_without_a_mean_has_its_sign_at_a_glance() -> None:
    """A cell with a diverged seed has no mean but is judged. Its mark is in the printed grid (third line) and in the overview's
    column of differences."""
    found = table(make_plan("full"), ALL | {("fedlaw", A): [88.0, None, 88.6]})
    (row,) = (row for row in grid.compact(found).rows if not isinstance(row, b.Subheading) and row[0].endswith("α = 100"))
    assert row[-1] == b.Text("✗", "bad")
    (cells,) = (row for row in grid.printed_grid(found).rows if not isinstance(row, b.Subheading) and row[0] == "FedLAW")
    assert cells[1].lines[-1] == b.Text("✗", "bad")
    found = table(make_plan("demo"), ALL | {("fedlaw", A): [88.0, None, 88.6]})
    assert "✗" not in str(grid.compact(found).rows)


def ranked(measured: dict[str, tuple[float | None, ...]], better: str = "higher") -> dict[str, tuple[str, str]]:
    """The mean rank of each method, as printed and as measured, over two settings with these values of three methods."""
    plan = make_plan("full")
    plan["rows"][2]["printed"] = True
    run, cells = make_run("ours", B), places(plan)
    plan["runs"][run["run_id"]], plan["seeds_by_run"][run["run_id"]] = run, SEEDS
    cells["ours", B] |= {"run_id": run["run_id"], "read": "last(2)", "reason": None, "printed": 86.0}
    cells["ours", A]["printed"] = 88.0
    for place in (*plan["columns"], *plan["cells"]):
        place["metric"]["better"] = better
    values = {(row, column): [value] * 3 for column, each in measured.items() for row, value in zip(ROWS, each, strict=True)}
    made = [block for section in across(table(plan, values)) for block in section.blocks if isinstance(block, b.Grid)]
    ranks = [block for block in made if block.name == "Mean rank of each method"]
    return {row[0]: row[1:] for block in ranks for row in block.rows}  # type: ignore[index, misc]


ROWS = ("fedavg", "fedlaw", "ours")


def test_mean_ranks_by_hand() -> None:
    """Printed in A 89.29, 88.51, 88 and in B 85.11, 86.30, 86: ranks 1, 2, 3 and 3, 1, 2. Measured in A all three tie at two
    decimals with rank 2, in B ranks 3, 2, 1. The best comes first. If less is better, ranks reverse."""
    values = {A: (90.001, 90.0, 89.999), B: (80.0, 85.0, 90.0)}
    found = ranked(values)
    assert list(found.items()) == [("FedAvg + GH", ("2.5", "1.5")), ("FedLAW", ("1.5", "2.0")), ("FedAvg", ("2.0", "2.5"))]
    assert ranked(values, "lower") == {"FedAvg": ("2.0", "1.5"), "FedLAW": ("2.5", "2.0"), "FedAvg + GH": ("1.5", "2.5")}


def test_methods_that_tie_share_the_mean_of_their_ranks() -> None:
    """The first two tie in both settings: rank (1 + 2) / 2."""
    found = ranked({A: (90.0, 90.001, 80.0), B: (85.0, 85.0, 84.0)})
    assert {name: measured for name, (_, measured) in found.items()} == {"FedAvg": "1.5", "FedLAW": "1.5", "FedAvg + GH": "3.0"}


def test_what_is_shown_as_the_same_is_a_tie() -> None:
    """Mean 53.995000000000005 is written 53.99, as units.decimal has it, and 54.0 is 54.00."""
    found = ranked({A: (53.995000000000005, 54.0, 50.0), B: (53.995000000000005, 54.0, 50.0)})
    assert {name: measured for name, (_, measured) in found.items()} == {"FedAvg": "2.0", "FedLAW": "1.0", "FedAvg + GH": "3.0"}


def test_one_setting_ranks_nothing() -> None:
    """FedLAW diverged in one of two settings. The page has no mean ranks over the one setting that is left."""
    assert ranked({A: (90.0, 89.0, 88.0), B: (85.0, None, 84.0)}) == {}


def test_seeds_are_those_that_have_run() -> None:
    """If two of three seeds have run, the third is named as not run. If none has run, all are."""
    evidence = make_evidence(make_plan(), ALL)
    left = {run_id: {seed: one for seed, one in seeds.items() if seed != SEEDS[-1]} for run_id, seeds in evidence.items()}
    told = [fact("seeds", exhibit(make_plan(), each)) for each in (evidence, left, {})]
    assert told == ["8, 9, 10", "8, 9; not run yet: 10", "not run yet: 8, 9, 10"]


def test_seconds_of_rounds_that_another_run_trained_count_once() -> None:
    """Three seeds of 10 s, of which another run trained 4 s each: 18 s are counted."""
    evidence = make_evidence(make_plan(), {("fedavg", A): [89.0] * 3})
    for seeds in evidence.values():
        for receipt in seeds.values():
            receipt["cost"] |= {"wall_s": 10.0, "shared_s": 4.0}
    every = totals(exhibit(make_plan(), evidence))
    assert (every.wall_s, every.sharing) == (18.0, 3)


def fact(name: str, of: Exhibit) -> str:
    """The fact under this name on a table's page."""
    found = [block for section in about_the_runs(of) for block in section.blocks if isinstance(block, b.Pairs)]
    return next(values[0] for block in found for key, values in block.pairs if key == name)


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("reports/full/fedlaw/evidence", "fedrepro verify fedlaw/table3 --scale full"),
        ("results/runs", "fedrepro run fedlaw/table3 --scale full --again"),
    ],
)
def test_a_page_names_the_command_that_checks_its_evidence(folder: str, command: str) -> None:
    """Published evidence has `verify`. Local results have `run --again`, since `verify` does not find them."""
    plan = make_plan("full")
    found = make_evidence(plan, ALL)
    for run_id, seeds in found.items():
        for seed, receipt in seeds.items():
            receipt["environment"]["arithmetic"] = "portable"
            receipt["path"] = f"{folder}/{run_id}/seed{seed}.json"
    assert fact("arithmetic", exhibit(plan, found)).endswith(f"; to see for yourself: {command}")


def test_a_version_that_a_run_does_not_record_is_counted() -> None:
    """The count stands beside the values that other runs record, or alone. A value that all runs record has no count."""
    runs = [Environment(torch="2.13.0", arithmetic="portable"), Environment(torch="2.13.0"), Environment(torch="2.12.0")]
    evidence = {str(number): {8: SimpleNamespace(environment=one)} for number, one in enumerate(runs)}
    told = provenance.page_versions(evidence)  # type: ignore[arg-type]
    assert told["torch"] == ("2.12.0", "2.13.0")
    assert told["arithmetic"] == ("portable", "not recorded by 2 of 3 runs")
    assert told["linear kernel"] == ("not recorded by 3 of 3 runs",)
    assert set(provenance.page_versions({}).values()) == {()}
