"""The numbers that a paper prints, from papers/<paper>/published/*.csv."""

import csv
import difflib
from pathlib import Path

from fedrepro.config.schema import Row, Table
from fedrepro.errors import UserError


def printed_numbers(folder: Path, table: Table) -> dict[tuple[str, str], tuple[float | None, str]]:
    """(row key, column key) -> (printed value or None, the transcriber's note), of the cells that the paper's table has.

    Not printed: rows that `folder`/<published> does not name, columns without `published`, and tables without a file.
    UserError for a file that is missing, for a cell that two lines fit or none, and for what looks like a misspelt name.
    """
    if table.published is None:
        return {}
    columns = [column for column in table.columns if column.published]
    path = Path(folder) / table.published
    found = {}
    if not path.is_file():
        raise UserError(f"{path}: no such file; check `published` in the table file")
    with path.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            for column in columns:
                if all(line.get(key) == value for key, value in column.published.items()):
                    place = line["method"], column.key
                    if place in found:
                        raise UserError(f"{path}: two numbers for row {place[0]!r}, column {place[1]!r}; narrow `published`")
                    found[place] = (float(line["value"]) if line["value"] else None, line["note"])
    known = {name for name, _ in found}
    for column in columns:
        if not any((name, column.key) in found for name in known):
            raise UserError(f"{path}: no printed number for column {column.key!r}; check its `published`, or leave that out")
    names = {row.key: row.published or row.key for row in table.rows}
    for row in table.rows:
        if names[row.key] not in known:
            _require_own(row, path, known - {*names.values()})
    cells = [(row, column.key) for row, name in names.items() if name in known for column in columns]
    for row, column in cells:
        if (names[row], column) not in found:
            raise UserError(
                f"{path}: no printed number for row {row!r}, column {column!r}; check `published` in the table file"
            )
    return {(row, column): found[names[row], column] for row, column in cells}


def _require_own(row: Row, path: Path, unused: set[str]) -> None:
    """UserError for a row that seems to mean a printed one: it says which, or its key is nearly one that no other row has."""
    near = difflib.get_close_matches(row.published or row.key, sorted(unused), n=1, cutoff=0.8)
    if near or row.published:
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UserError(f"{path}: no printed number for row {row.key!r}; {hint}A row of your own has another key")
