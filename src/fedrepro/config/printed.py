"""The numbers that a paper prints, from papers/<paper>/published/*.csv."""

import csv
from pathlib import Path

from fedrepro.config.schema import Table
from fedrepro.errors import UserError


def printed_numbers(path: Path, table: Table) -> dict[tuple[str, str], tuple[float | None, str]]:
    """(row key, column key) -> (printed value or None, the transcriber's note)."""
    found = {}
    if not path.is_file():
        raise UserError(f"{path}: no such file; check `published` in the table file")
    with path.open(newline="", encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            for column in table.columns:
                if all(line.get(key) == value for key, value in column.published.items()):
                    place = line["method"], column.key
                    if place in found:
                        raise UserError(f"{path}: two numbers for row {place[0]!r}, column {place[1]!r}; narrow `published`")
                    found[place] = (float(line["value"]) if line["value"] else None, line["note"])
    names = {row.key: row.published or row.key for row in table.rows}
    absent = [(row, c.key) for row, name in names.items() for c in table.columns if (name, c.key) not in found]
    if absent:
        raise UserError(
            f"{path}: no printed number for row {absent[0][0]!r}, column {absent[0][1]!r}; check `published` in the table file"
        )
    return {(row, c.key): found[name, c.key] for row, name in names.items() for c in table.columns}
