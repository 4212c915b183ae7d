"""Tests across settings: one method against another over all settings of a table, ours and as printed. No stars per cell."""

import math
from collections.abc import Sequence
from typing import Any

from fedrepro.reports.analysis.paired import mean, paired, printed_gap, signed_rank
from fedrepro.reports.model import Cell, Comparison, Metric, Plan, Row, Score


def comparisons(plan: Plan, cells: list[Cell]) -> tuple[Comparison, ...]:
    """Per metric and pair of rows: over how many settings, wins, ties, losses, mean difference, exact Wilcoxon signed-rank p.

    Every row is compared with the first printed one, and a row `x+y` against `x` too where there is one. A setting is a run: of
    several columns that read one run at several rounds, the one that reads it last stands for it. Ours: in a setting the mean
    over the seeds that both rows have; a setting without a mean, of a row that diverged say, is left out.
    """
    by_place = {(cell.method, cell.setting): cell for cell in cells}
    metrics = {cell.metric.name: cell.metric for cell in plan.planned if cell.metric.ranked}
    labels = {row.key: row.label for row in plan.rows}
    found = []
    for metric in metrics.values():
        for baseline, method in pairs(plan.rows):
            columns = _settings(plan, by_place, baseline, method, metric.name)
            if not columns:
                continue
            couples = [(by_place[method, key], by_place[baseline, key]) for key in columns]
            printed = [printed_gap(a.printed, b.printed) for a, b in couples]
            about = metric.name, method, baseline, labels[method], labels[baseline], tuple(columns)
            found.append(Comparison(*about, _score(printed, metric), _score([_measured(*one) for one in couples], metric)))
    return tuple(found)


def pairs(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """(baseline, method): each row against the first printed one of its reading, and `x+y` against `x`."""
    rows = sorted(rows, key=lambda row: not row.printed)
    found = {}
    for row in rows:
        keys = [other.key for other in rows if other.variant == row.variant]
        plain = [other for other in keys if row.key.startswith(f"{other}+")]
        found |= dict.fromkeys((baseline, row.key) for baseline in [keys[0], *plain] if baseline != row.key)
    return list(found)


def _settings(plan: Plan, cells: dict[tuple[str, str], Cell], baseline: str, method: str, metric: str) -> list[str]:
    """One column for each setting in which both rows show the metric: the last that reads its runs."""
    last: dict[Any, str] = {}
    for column in plan.columns:
        both = [cell for row in (baseline, method) if (cell := cells.get((row, column.key))) and cell.metric == metric]
        if len(both) < 2:
            continue
        runs = tuple(cell.run_id or column.key for cell in both)
        before = cells.get((method, last.get(runs, "")))
        if before is None or _until(before) <= _until(cells[method, column.key]):
            last[runs] = column.key
    return [column.key for column in plan.columns if column.key in last.values()]


def _until(cell: Cell) -> float:
    return math.inf if cell.until_round is None else cell.until_round


def _measured(method: Cell, baseline: Cell) -> float | None:
    if method.mean is None or baseline.mean is None:
        return None
    gaps = [gap for gap in paired(method.per_seed, baseline.per_seed).values() if gap is not None]
    return mean(gaps) if gaps else None


def _score(differences: Sequence[float | None], metric: Metric) -> Score:
    """Counts and test of the differences that exist; a win is a difference for the better."""
    known = [round(value, 6) for value in differences if value is not None]
    # Two values that read the same at the decimals shown are tied.
    read = [round(value, metric.digits) * (1 if metric.higher else -1) for value in known]
    p = signed_rank([round(value, 6) for value in read])
    return Score(
        settings=len(known),
        wins=sum(value > 0 for value in read),
        ties=sum(value == 0 for value in read),
        losses=sum(value < 0 for value in read),
        mean_difference=round(mean(known), 6) if known else None,
        p_value=None if p is None else round(p, 6),
    )
