"""How well each reading of a paper fits what it prints, over all tables that it is tried on. Pure functions of reports.

A table that varies another has rows of several readings (`variant` in its file); the table that it varies is a reading too, the
default. The distance of a reading is the mean, over printed numbers, of |measured mean - printed|. Our choice: no paper asks.
"""

from collections.abc import Sequence

from fedrepro.reports.analysis.paired import mean
from fedrepro.reports.model import Fit, Shown

Place = tuple[str, str, str, str, float]  # table, its line in the published file, method and metric there, printed number


def fits(reports: Sequence[Shown]) -> list[Fit]:
    """One entry per reading, nearest first; `variant` is None for the default, of which the numbers count that some reading is
    tried on. A number that several tables print counts once. Nothing for a paper in which no table has readings.
    """
    by_name = {report.table: report for report in reports}
    varied = {r.variant_of: r for r in reports if r.variant_of in by_name and any(row.variant for row in r.rows)}
    names = dict.fromkeys(row.variant for report in varied.values() for row in report.rows)
    tried: dict[str | None, dict[Place, float | None]] = {}
    for name in names:
        tried[name] = {}
        for table, report in varied.items():
            tried[name] |= _distances(table, report, name)
    places = {place for measured in tried.values() for place in measured}
    default = [item for table in varied for item in _distances(table, by_name[table], None).items() if item[0] in places]
    found = [_entry(name, list(varied), measured) for name, measured in ({None: dict(default)} | tried).items() if varied]
    return sorted(found, key=lambda fit: (fit.distance is None, fit.distance, fit.missing))


def _distances(table: str, report: Shown, variant: str | None) -> dict[Place, float | None]:
    """|measured - printed| of every cell of a reading that has a printed number; None where it has not been measured."""
    rows = {row.key: row.name for row in report.rows if row.variant == variant}
    found: dict[Place, float | None] = {}
    for cell in (cell for cell in report.cells if cell.method in rows):
        if cell.printed is not None:
            line = " ".join(f"{key}={value}" for key, value in sorted(cell.line.items()))
            named = cell.line.get("method", rows[cell.method]), cell.line.get("metric", cell.metric)
            found[table, line, *named, cell.printed] = None if cell.mean is None else abs(cell.mean - cell.printed)
    return found


def _entry(variant: str | None, tables: list[str], measured: dict[Place, float | None]) -> Fit:
    once: dict[tuple[str, str, float], list[float | None]] = {}
    for (_, _, row, metric, printed), distance in measured.items():
        once.setdefault((row, metric, printed), []).append(distance)
    whole = lambda values: None if None in values or not values else round(mean(values), 6)  # noqa: E731
    numbers = [whole(distances) for distances in once.values()]
    return Fit(
        variant=variant,
        tables={name: whole([d for (table, *_), d in measured.items() if table == name]) for name in tables},
        distance=whole(numbers),
        numbers=len(numbers),
        missing=sum(value is None for value in numbers),
    )
