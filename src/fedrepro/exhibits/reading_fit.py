"""How well each reading of a paper fits what it prints, over all tables that it is tried on. Pure.

A table that varies another has rows of several readings (`variant` in its file); the table that it varies is a reading too, the
default. The distance of a reading is the mean, over printed numbers, of |measured mean - printed|. Our choice: no paper asks.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.statistics import mean_of_all
from fedrepro.grouping import grouped

PrintedPlace = tuple[str, str, str, str, float]  # table, its line in the published file, method and metric there, number
Distances = dict[PrintedPlace, float | None]


@dataclass(frozen=True)
class Fit:
    """How close a reading is to the printed numbers. `variant`: None for the reading of the tables themselves. `distance`: the
    mean over `tables`; a number that several tables print counts once. It is None while a number is `missing`."""

    variant: str | None
    tables: dict[str, float | None]
    distance: float | None
    numbers: int
    missing: int


def fits(tables: Sequence[Exhibit]) -> list[Fit]:
    """Returns one entry per reading, nearest first; `variant` is None for the default; of its numbers only those count that
    another reading has too. A number that several tables print counts once. [] for a paper without tables of several readings.
    """
    by_name = {table.plan.table: table for table in tables}
    varied = {
        table.plan.variant_of: table
        for table in tables
        if table.plan.variant_of in by_name and any(row.variant for row in table.plan.rows)
    }
    tried: dict[str | None, Distances] = {}
    for name in dict.fromkeys(row.variant for table in varied.values() for row in table.plan.rows):
        tried[name] = {}
        for table, exhibit in varied.items():
            tried[name] |= _distances(table, exhibit, name)
    places = {place for measured in tried.values() for place in measured}
    default = [item for table in varied for item in _distances(table, by_name[table], None).items() if item[0] in places]
    # Tables that print one run's number share it, in every reading: what the default reads says which numbers are the same.
    own_cells = [(table, cell) for table in varied for cell in by_name[table].cells if cell.printed is not None]
    same = {_place(table, cell): (cell.row.name, *cell.number) for table, cell in own_cells}
    readings = {None: dict(default)} | tried
    entries = [_entry(name, list(varied), measured, same) for name, measured in readings.items() if varied]
    return sorted(entries, key=lambda fit: (fit.distance is None, fit.distance, fit.missing))


def _distances(name: str, table: Exhibit, variant: str | None) -> Distances:
    """Returns |measured - printed| of every cell of a reading that has a printed number; None where it has not been
    measured."""
    cells = (cell for cell in table.cells if cell.row.variant == variant and cell.printed is not None)
    return {_place(name, cell): cell.distance for cell in cells}


def _place(table: str, cell: Cell) -> PrintedPlace:
    line = cell.place.line
    text = " ".join(f"{key}={value}" for key, value in sorted(line.items()))
    names = line.get("method", cell.row.name), line.get("metric", cell.metric.name)
    return (table, text, *names, cell.printed)  # type: ignore[return-value]


def _entry(variant: str | None, tables: list[str], measured: Distances, same: Mapping[PrintedPlace, Hashable]) -> Fit:
    by_number = grouped((same.get(place, place), distance) for place, distance in measured.items())
    numbers = [_whole(distances) for distances in by_number.values()]
    return Fit(
        variant=variant,
        tables={name: _whole([d for (table, *_), d in measured.items() if table == name]) for name in tables},
        distance=_whole(numbers),
        numbers=len(numbers),
        missing=sum(value is None for value in numbers),
    )


def _whole(values: Sequence[float | None]) -> float | None:
    """Returns the mean to six decimals; None where a value is missing."""
    mean = mean_of_all(values)
    return None if mean is None else round(mean, 6)
