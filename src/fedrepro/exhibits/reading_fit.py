"""How well each reading of a paper fits what it prints, over all tables that it is tried on. Pure.

A table that varies another has rows of several readings (`variant` in its file); the table that it varies is a reading too, the
default. The distance of a reading is the mean, over printed numbers, of |measured mean - printed|. Our choice: no paper asks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.statistics import mean_of_all
from fedrepro.grouping import grouped

PrintedPlace = tuple[str, str, str, str, float]  # table, its line in the published file, method and metric there, number


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
    tried: dict[str | None, dict[PrintedPlace, float | None]] = {}
    for name in dict.fromkeys(row.variant for table in varied.values() for row in table.plan.rows):
        tried[name] = {}
        for table, exhibit in varied.items():
            tried[name] |= _distances(table, exhibit, name)
    places = {place for measured in tried.values() for place in measured}
    default = [item for table in varied for item in _distances(table, by_name[table], None).items() if item[0] in places]
    entries = [_entry(name, list(varied), measured) for name, measured in ({None: dict(default)} | tried).items() if varied]
    return sorted(entries, key=lambda fit: (fit.distance is None, fit.distance, fit.missing))


def _distances(name: str, table: Exhibit, variant: str | None) -> dict[PrintedPlace, float | None]:
    """Returns |measured - printed| of every cell of a reading that has a printed number; None where it has not been
    measured."""
    distances: dict[PrintedPlace, float | None] = {}
    for cell in (cell for cell in table.cells if cell.row.variant == variant and cell.printed is not None):
        line = cell.place.line
        text = " ".join(f"{key}={value}" for key, value in sorted(line.items()))
        names = line.get("method", cell.row.name), line.get("metric", cell.metric.name)
        distances[name, text, *names, cell.printed] = cell.distance  # type: ignore[index]
    return distances


def _entry(variant: str | None, tables: list[str], measured: dict[PrintedPlace, float | None]) -> Fit:
    by_number = grouped((place[2:], distance) for place, distance in measured.items())
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
