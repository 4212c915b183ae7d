"""How far two methods are apart: printed difference and measured one, paired by seed. Pure functions of a table's report."""

from collections.abc import Sequence

from fedrepro.reports.analysis.paired import interval, mean, paired, printed_gap
from fedrepro.reports.model import Cell, Gap, GapSetting, Row, Shown


def gaps(table: Shown) -> list[Gap]:
    """One entry per pair of rows and unit of the metric, in order.

    A pair is `x+part` against `x`, where the table has both, and otherwise a row against the first one. `settings` has an entry
    per column in which both show one ranked metric and a difference is measured or printed; a pair without any measured one is
    left out.
    """
    cells = {(cell.method, cell.setting): cell for cell in table.cells}
    metrics = [column.metric for column in table.columns] + [row.metric for row in table.rows if row.metric]
    unranked = {metric.name for metric in metrics if not metric.ranked}
    found = []
    for row, base in pairs(table):
        for unit in dict.fromkeys(column.metric.unit for column in table.columns):
            columns = [column for column in table.columns if column.metric.unit == unit]
            couples = [(cells[row.key, column.key], cells[base.key, column.key], column.title) for column in columns]
            settings = [_gap(*one) for one in couples if one[0].metric == one[1].metric and one[0].metric not in unranked]
            if any(gap.ours is not None for gap in settings):
                known = tuple(gap for gap in settings if gap.ours is not None or gap.printed is not None)
                place = table.table, table.source, table.scale, table.comparable
                found.append(Gap(*place, row.key, base.key, row.label, base.label, unit, known))
    return found


def proposed(gaps: Sequence[Gap]) -> Gap:
    """Of the first table's, that of what the paper proposes: its last row with printed numbers. Rows of ours come after it."""
    first = [gap for gap in gaps if gap.table == gaps[0].table]
    return next((gap for gap in reversed(first) if any(one.printed is not None for one in gap.settings)), first[-1])


def pairs(table: Shown) -> list[tuple[Row, Row]]:
    """(row, the row it is compared with), in the table's order. Rows of several readings stay among themselves."""
    rows = {row.key: row for row in table.ordered_rows}
    first: dict[str | None, Row] = {}
    for row in rows.values():
        first.setdefault(row.variant, row)
    bases = {key: rows.get(key.rpartition("+")[0], first[row.variant]) for key, row in rows.items()}
    return [(rows[key], base) for key, base in bases.items() if base.key != key]


def _gap(cell: Cell, base: Cell, label: str) -> GapSetting:
    """One setting. As in the table, a diverged seed of either method leaves no measured difference."""
    found = paired(cell.per_seed, base.per_seed)
    diverged = None in found.values()
    per_seed = {} if diverged else {seed: gap for seed, gap in found.items() if gap is not None}
    low, high = interval(list(per_seed.values())) or (None, None)
    return GapSetting(
        setting=cell.setting,
        label=label,
        metric=cell.metric,
        printed=printed_gap(cell.printed, base.printed),
        ours=mean(list(per_seed.values())) if per_seed else None,
        low=low,
        high=high,
        per_seed=per_seed,
        runs=tuple(f"{one.run_id}/seed{seed}" for one in (cell, base) for seed in per_seed),
        reason="a seed diverged" if diverged else None if per_seed else "no seed of both",
    )
