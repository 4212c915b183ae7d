"""How far seeds lie apart in a paper's published evidence: what `fedrepro spread` writes into papers/<paper>/spread.json."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from fedrepro.config.spreads import Spread, spread_path
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.names import natural
from fedrepro.exhibits.verdict import estimate
from fedrepro.files import write_json
from fedrepro.registry import unknown
from fedrepro.store import Store
from fedrepro.typed import plain


def spreads(tables: Iterable[Exhibit]) -> dict[str, Spread]:
    """Of every quantity, from all distinct measurements that these tables have of it at a scale that is compared with print.

    A run counts once for a metric, as the first table reads it that shows it; seeds that have the same values to the last bit
    count once, whatever runs they are of. A measurement with a diverged seed is left out.
    """
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for table in tables:
        for _, run, reading in table.plan.readings() if table.plan.comparable else ():
            receipts = [one for one in table.evidence.get(run.run_id, {}).values() if one.has(reading)]
            values = [one.value(reading) for one in receipts]
            known = tuple(value for value in values if value is not None)
            if known and len(known) == len(values):
                found.setdefault(reading.quantity, {}).setdefault(run.run_id, known)
    made = {quantity: estimate(dict.fromkeys(runs.values())) for quantity, runs in sorted(found.items())}
    return {quantity: one for quantity, one in made.items() if one is not None}


def write_spreads(made: Mapping[str, Spread], root: Path, paper: str) -> Path:
    """Writes papers/<paper>/spread.json, rounded to six digits after the point."""
    rounded = {key: Spread(round(one.deviation, 6), round(one.freedom, 6), one.measurements) for key, one in made.items()}
    return write_json(spread_path(root, paper), plain(rounded))


def measured(root: Path, paper: str) -> list[Exhibit]:
    """Every table of a paper at the scales that are compared with print, with its published evidence; numbered tables first."""
    from fedrepro.config.grid import plan
    from fedrepro.config.places import is_figure
    from fedrepro.config.project import load_project

    project = load_project(root)
    names = project.tables_of(paper)
    if not names:
        raise UserError(unknown("paper", paper, project.papers_with_tables))
    found = []
    for scale in (name for name, one in project.scales.items() if one.comparable):
        for table in (name for name in names if not is_figure(name)):
            made = plan(project.as_published(scale), paper, table, scale)
            found.append(Exhibit.of(made, Store((root / "reports" / scale / paper / "evidence",))))
    return sorted(found, key=lambda one: (one.plan.variant_of is not None, natural(one.plan.table)))
