"""How far seeds lie apart in a paper's published evidence: what `fedrepro spread` writes into papers/<paper>/spread.json."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from fedrepro.config.places import is_figure, natural
from fedrepro.config.spreads import Spread, spread_path
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.receipt import why_mixed
from fedrepro.exhibits.verdict import estimate
from fedrepro.files import write_json
from fedrepro.registry import unknown
from fedrepro.store import Store
from fedrepro.typed import plain


def spreads(tables: Iterable[Exhibit]) -> dict[str, Spread]:
    """Estimates the spread of every quantity from all distinct measurements that these tables have of it at a scale that is
    compared with print.

    A run counts once for a metric, as the first table reads it that shows it; seeds that have the same values to the last bit
    count once, whatever runs they are of. A measurement with a diverged seed, or with seeds of different code or data, is
    left out.
    """
    measurements: dict[str, dict[str, tuple[float, ...]]] = {}
    for table in tables:
        for _, run, reading in table.plan.readings() if table.plan.comparable else ():
            receipts = [receipt for receipt in table.evidence.get(run.run_id, {}).values() if receipt.has(reading)]
            values = [receipt.value(reading) for receipt in receipts]
            present = tuple(value for value in values if value is not None)
            if present and len(present) == len(values) and not why_mixed(receipts):
                measurements.setdefault(reading.quantity, {}).setdefault(run.run_id, present)
    estimates = {quantity: estimate(dict.fromkeys(runs.values())) for quantity, runs in sorted(measurements.items())}
    return {quantity: spread for quantity, spread in estimates.items() if spread is not None}


def write_spreads(estimates: Mapping[str, Spread], root: Path, paper: str) -> Path:
    """Writes papers/<paper>/spread.json, rounded to six digits after the point."""
    rounded = {
        key: Spread(round(spread.deviation, 6), round(spread.freedom, 6), spread.measurements)
        for key, spread in estimates.items()
    }
    return write_json(spread_path(root, paper), plain(rounded))


def measured(root: Path, paper: str) -> list[Exhibit]:
    """Lists the tables of a paper at the scales that are compared with print, with their published evidence; numbered tables
    first."""
    from fedrepro.config.grid import plan
    from fedrepro.config.project import load_project

    project = load_project(root)
    names = project.tables_of(paper)
    if not names:
        raise UserError(unknown("paper", paper, project.papers_with_tables))
    exhibits = []
    for scale in (name for name, spec in project.scales.items() if spec.comparable):
        for table in (name for name in names if not is_figure(name)):
            table_plan = plan(project.as_published(scale), paper, table, scale)
            exhibits.append(Exhibit.of(table_plan, Store((root / "reports" / scale / paper / "evidence",))))
    return sorted(exhibits, key=lambda exhibit: (exhibit.plan.variant_of is not None, natural(exhibit.plan.table)))
