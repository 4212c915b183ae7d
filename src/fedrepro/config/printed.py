"""The numbers that a paper prints, from papers/<paper>/published/*.csv."""

import csv
import difflib
import itertools
import re
from pathlib import Path
from typing import Any

from fedrepro.config.table import Header, Table
from fedrepro.errors import UserError
from fedrepro.registry import unknown

Printed = dict[tuple[str, str], tuple[float | None, str]]
NEEDED = {"value", "note"}  # columns of every file, beside those that `published` names
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?")
WITHOUT_UNIT = "dimensionless"


def printed_numbers(folder: Path, table: Table) -> Printed:
    """(row key, column key) -> (printed value or None, the transcriber's note), of the cells that the paper's table has.

    Not printed: methods that `folder`/<published> does not name, other entries without `published`, tables without a file.
    UserError for a file that is missing, for a cell that two lines fit or none, and for what looks like a misspelt name.
    """
    if table.published is None:
        return {}
    path = Path(folder) / table.published
    if not path.is_file():
        raise UserError(f"{path}: no such file; check `published` in the table file")
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        lines = list(reader)
    for key in sorted(NEEDED - {*(reader.fieldnames or ())}):
        raise UserError(f"{path}: has no column {key!r}; it has {', '.join(reader.fieldnames or ()) or 'none'}")
    numbers: Printed = {}
    expected: set[tuple[str, str]] = set()
    users: dict[Any, tuple[str, str]] = {}  # line and variants -> the cell that has its number
    for row, column in itertools.product(table.rows, table.columns):
        place, criteria = (row.key, column.key), table.criteria(row, column)
        if criteria is None:
            continue
        expected.add(place)
        hits = [line for line in lines if all(line.get(key) == criteria[key] for key in criteria)]
        if len(hits) > 1:
            raise UserError(f"{path}: two numbers for {_cell_name(place)}; narrow `published`")
        for line in hits:
            unit = (row.metric or column.metric or table.metric).unit
            numbers[place] = (_value(line, unit, path, place), line["note"])
            other = users.setdefault((id(line), row.variant, column.variant), place)
            if other != place and not table.variant_of:
                raise UserError(
                    f"{path}: one number for {_cell_name(other)} and for {_cell_name(place)}; "
                    "each needs a `published` of its own"
                )
    _require_all(path, table, lines, expected, numbers)
    return numbers


def _cell_name(place: tuple[str, str]) -> str:
    return f"row {place[0]!r}, column {place[1]!r}"


def _value(line: dict[Any, str], unit: str, path: Path, place: tuple[str, str]) -> float | None:
    """The printed number of a line; None where the paper prints nothing. UserError for what is no number, for a line with more
    fields than the file has columns (a comma in a number), and where its `unit` is another than the cell's."""
    text = line["value"]
    if not text:
        return None
    where = f"{path}: value = {text!r} of {_cell_name(place)}"
    if None in line or not NUMBER.fullmatch(text):
        raise UserError(f"{where}: is no number; write it with a point and without its unit, for example 91.30")
    if line.get("unit", unit) not in (unit, WITHOUT_UNIT):
        raise UserError(f"{where}: is in {line['unit'] or 'no unit'}, and the cell shows {unit}; give both in one unit")
    if unit == "percent" and not -100 <= float(text) <= 100:
        raise UserError(f"{where}: is no percentage; correct it")
    return float(text)


def _require_all(
    path: Path, table: Table, lines: list[dict[str, str]], expected_cells: set[tuple[str, str]], numbers: Printed
) -> None:
    """UserError where a number is missing: of a whole row or column, or of one cell."""
    columns = [column.key for column in table.columns if any(key == column.key for _, key in expected_cells)]
    rows = [row for row in table.rows if any(key == row.key for key, _ in expected_cells)]
    printed = {row for row, _ in numbers}
    for column in columns:
        if not any(key == column for _, key in numbers):
            raise UserError(f"{path}: no printed number for column {column!r}; {_published_hint(table, column, lines)}")
    names = {line.get("method") or "" for line in lines} - {_name(row) for row in rows if row.key in printed}
    for row in rows:
        if row.key not in printed:
            _refuse_misspelt(row, path, names)
    for row, column in sorted(expected_cells - numbers.keys()):
        if row in printed:
            raise UserError(f"{path}: no printed number for {_cell_name((row, column))}; check `published` in the table file")


def _published_hint(table: Table, column: str, lines: list[dict[str, str]]) -> str:
    """What a column without a number asks for, and whether the file lacks a column for it."""
    (entry,) = (header for header in table.columns if header.key == column)
    criteria = entry.published if isinstance(entry.published, dict) else {}
    missing = [key for key in criteria if lines and key not in lines[0]]
    if missing:
        return f"its `published` names {unknown('column', missing[0], [*lines[0]])}; correct either"
    return "check its `published`, or leave that out"


def _refuse_misspelt(row: Header, path: Path, unused: set[str]) -> None:
    """UserError for a row that seems to mean a printed one: it says which, or its key is nearly one that no other row has."""
    near = difflib.get_close_matches(_name(row), sorted(unused), n=1, cutoff=0.8)
    if near or row.published:
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UserError(f"{path}: no printed number for row {row.key!r}; {hint}A row of your own has another key")


def _name(row: Header) -> str:
    """What the published file calls the row's method."""
    name = row.published.get("method") if isinstance(row.published, dict) else row.published
    return name or row.key


def printed_total(folder: Path) -> int:
    """How many results the tables of a paper print, by the CSV files in `folder`: rows with a value, without differences and
    ratios, which follow from others. Of the running text accuracies count on data that no table has."""
    rows: dict[bool, list[dict[str, str]]] = {True: [], False: []}
    for path in sorted(Path(folder).glob("*.csv")):
        rows[path.stem.endswith("_text")] += csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    printed = {row["dataset"] for row in rows[False]}
    text_rows = [row for row in rows[True] if row["metric"] == "test_accuracy" and row["dataset"] not in printed]
    derived_marks = "_delta", "_over_fma"
    return sum(
        bool(row["value"]) and not any(mark in row["metric"] for mark in derived_marks) for row in [*rows[False], *text_rows]
    )
