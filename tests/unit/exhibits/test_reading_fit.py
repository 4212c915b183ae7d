"""Which reading of a paper fits its tables best: distances worked out by hand."""

from dataclasses import replace

import pytest
from small_table import make_plan, typed

from fedrepro.config.plan import Row
from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.reading_fit import fits


def report(
    table: str, cells: dict[tuple[str, str], tuple[float, float | None]], variants: dict[str, str] | None = None
) -> Exhibit:
    """A table with only the data that a fit needs. cells: (row, column) -> (printed, measured). variants: row -> its
    reading."""
    blank, _ = typed(make_plan())
    variants = variants or {}
    rows = {key: Row(key, key, printed=True, variant=variants.get(key), name=key[0]) for key, _ in cells}
    columns = {key: replace(blank.columns[0], key=key) for _, key in cells}
    variant_of = table.removesuffix("-variants") if variants else None
    made = Exhibit(replace(blank, table=table, variant_of=variant_of, rows=tuple(rows.values())), {})
    vars(made)["cells"] = [
        Cell(
            replace(
                blank.cells[0],
                row=row,
                column=column,
                run_id=f"{row}-{column}",
                printed=printed,
                line={"method": row[0], "column": column},
            ),
            *(rows[row], columns[column], {}, {}),
            mean=mean,
        )
        for (row, column), (printed, mean) in cells.items()
    ]
    return made


TABLE1 = report("table1", {("a", "x"): (80.0, 81.0), ("b", "x"): (90.0, 87.0)})
TABLE2 = report("table2", {("a", "x"): (80.0, 82.0), ("b", "y"): (70.0, 70.0)})
READ = {"a2": "other", "b2": "other"}


def test_distances_by_hand() -> None:
    """Default: table 1 (1 + 3) / 2, table 2 (2 + 0) / 2. Both print a's 80.0, which counts once as 1.5: (1.5 + 3 + 0) / 3."""
    one = report("table1-variants", {("a2", "x"): (80.0, 80.5), ("b2", "x"): (90.0, 90.0)}, READ)
    two = report("table2-variants", {("a2", "x"): (80.0, 79.5), ("b2", "y"): (70.0, 74.0)}, READ)
    nearest, other = fits([TABLE1, one, TABLE2, two])
    assert (nearest.variant, nearest.tables) == (None, {"table1": 2.0, "table2": 1.0})
    assert nearest.distance == pytest.approx(1.5)
    assert (other.variant, other.tables) == ("other", {"table1": 0.25, "table2": 2.25})
    assert other.distance == pytest.approx((0.5 + 0.0 + 4.0) / 3)
    assert [entry.numbers for entry in (nearest, other)] == [3, 3]


def test_the_nearest_comes_first_and_what_is_missing_last() -> None:
    one = report("table1-variants", {("a2", "x"): (80.0, 80.5), ("b2", "x"): (90.0, 90.0)}, READ)
    late = report("table1-variants", {("a2", "x"): (80.0, 80.0), ("b2", "x"): (90.0, None)}, READ)
    assert [entry.variant for entry in fits([TABLE1, one])] == ["other", None]
    default, waiting = fits([TABLE1, late])
    assert (waiting.variant, waiting.distance, waiting.missing) == ("other", None, 1)
    assert default.distance == 2.0


def test_the_default_counts_where_readings_were_tried() -> None:
    """No reading was tried in column y. The default is compared by column x, though y is not measured."""
    wide = report("table1", {("a", "x"): (80.0, 81.0), ("b", "x"): (90.0, 87.0), ("a", "y"): (60.0, None)})
    one = report("table1-variants", {("a2", "x"): (80.0, 80.5), ("b2", "x"): (90.0, 90.0)}, READ)
    default = next(entry for entry in fits([wide, one]) if entry.variant is None)
    assert (default.distance, default.numbers, default.missing) == (2.0, 2, 0)


def test_settings_that_print_the_same_number_count_each() -> None:
    """Column z prints what x does, of another run: (1 + 5) / 2 for the default, (0.5 + 0) / 2 for the other."""
    table = report("table1", {("a", "x"): (80.0, 81.0), ("a", "z"): (80.0, 85.0)})
    other = report("table1-variants", {("a2", "x"): (80.0, 80.5), ("a2", "z"): (80.0, 80.0)}, READ)
    assert [(fit.variant, fit.numbers, fit.distance) for fit in fits([table, other])] == [("other", 2, 0.25), (None, 2, 3.0)]


def test_no_readings_no_fit() -> None:
    """A variant table without named readings gives no fit, nor does a reading of a table that has not run."""
    assert fits([TABLE1, TABLE2]) == []
    assert fits([TABLE1, report("table1-more", {("a", "x"): (80.0, 80.0)})]) == []
    assert fits([report("table1-variants", {("a2", "x"): (80.0, 80.5)}, READ)]) == []
