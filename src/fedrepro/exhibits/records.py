"""Exhibits as JSON and CSV: a header, then tidy records (one for a cell, a candidate, a run and seed, a claim).

docs/records.md says what the keys mean. JSON has all of it, CSV one line a cell; numbers are those of the pages, unrounded.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from fedrepro.exhibits import provenance, settings
from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.judge import rule
from fedrepro.exhibits.kinds.kind import Series
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.prose.answers import remarks
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.verdict import RULE
from fedrepro.files import json_text
from fedrepro.typed import plain

SCHEMA = 3  # raise it when a key changes its meaning or goes away
Record = dict[str, Any]
# Attributes that a record has under their own names.
_CELL = ("printed", "run_id", "per_seed", "runs", "mean", "std", "difference", "margin", "status", "reason", "arithmetic")
_CELL += ("best_printed",)
_PLAN = ("paper", "paper_name", "table", "title", "source", "scale", "own", "comparable", "stand_in", "on_budget", "variant_of")
_PLAN += ("seeds", "scale_note", "command")


def table_text(table: Exhibit) -> str:
    """Returns the JSON of a table."""
    sentences, waiting = remarks(table)
    return json_text(
        {
            "header": _header(table) | {"remarks": sentences, "waiting": waiting},
            "cells": [cell_record(table, cell) for cell in table.cells],
            "candidates": [record for choice in table.choices for record in _candidates(choice)],
            "comparisons": [_comparison(comparison) for comparison in table.comparisons],
            "settings": [
                {"setting": setting.key, "value": value.value, "where": value.where, "source": setting.source}
                for setting in settings.settings(table.plan)
                for value in setting.values
            ],
            "runs": _runs(table),
            "inputs": [
                {"kind": kind, "id": id, "sha256": sha256, "seeds": seeds}
                for kind, id, sha256, seeds in provenance.input_files(table.plan, table.evidence)
            ],
        },
        ascii=False,
    )


def figure_text(figure: Exhibit) -> str:
    """Returns the JSON of a figure."""
    drawing = figure.figure
    header = _header(figure) | {"kind": figure.plan.kind, "caption": figure.plan.caption, "x": drawing.x, "y": drawing.y}
    return json_text(
        {"header": header, "series": [asdict(series) for series in drawing.series], "runs": _runs(figure)}, ascii=False
    )


def paper_text(paper: PaperPage) -> str:
    """Returns the JSON of a paper's page. Each table has a JSON file besides."""
    claims = []
    for outcome in paper.claims:
        about = {"claim": outcome.claim.id, "kind": outcome.claim.kind, "text": outcome.claim.text, "says": outcome.claim.says}
        about |= {"where": outcome.claim.where, "rule": rule(outcome.claim), "verdict": outcome.verdict, "why": outcome.why}
        claims.append(about | {"numbers": [_number(number, verdict) for number, verdict in outcome.numbers]})
    return json_text(
        {
            "header": plain(paper.header),
            "claims": claims,
            "cells": [
                {"table": table.plan.table} | cell_record(table, cell)
                for table in paper.tables
                for cell in table.cells
                if cell.per_seed
            ],
            "gaps": [
                {"table": gap.plan.table, "method": gap.method.key, "base": gap.base.key, "unit": gap.unit}
                | {key: value for key, value in vars(setting).items() if key not in ("column", "metric")}
                | {"column": setting.column.key, "metric": setting.metric.name}
                for gap in paper.gaps
                for setting in gap.settings
            ],
            "readings": [asdict(fit) for fit in paper.fits],
            "changes": [plain(change) for change in paper.changes],
        },
        ascii=False,
    )


def cell_record(table: Exhibit, cell: Cell) -> Record:
    """Returns the record of one cell."""
    place, run = cell.place, table.plan.runs.get(cell.run_id or "")
    about = {
        "row": cell.row.key,
        "column": cell.column.key,
        "method": cell.row.label,
        "setting": cell.column.title,
        "dataset": run and run.config["dataset"],
        "metric": cell.metric.name,
        "unit": cell.metric.unit,
        "spec": run and run.method,
        "best": cell.best_measured,
        "other_readings": cell.readings,
    }
    return about | _of(place, "note", "line", "read") | _of(cell, *_CELL)


def table_csv(table: Exhibit) -> str:
    """Returns a CSV with one line for each cell. A column such as `seed8` has the values of a seed."""
    keys = ["row", "column", "method", "setting", "dataset", "metric", "unit", "printed", "mean", "std"]
    keys += ["difference", "margin", "status", "run_id"]
    lines = []
    for cell in table.cells:
        record = cell_record(table, cell)
        lines.append([*(record[key] for key in keys), *(cell.per_seed.get(seed) for seed in table.plan.seeds)])
    return _lines([*keys, *(f"seed{seed}" for seed in table.plan.seeds)], lines)


def figure_csv(figure: Exhibit) -> str:
    """Returns a CSV with one line for each point, bar, field or bin. Columns of x and y have the names of the axes: `round`,
    a setting or a metric; `value`, `difference`, `count` or `share`. Spaces separate seeds."""
    drawing = figure.figure
    numbers = {"x": drawing.x or "x", "to": "to", "y": drawing.y, "low": "low", "high": "high"}
    keys = [key for key in numbers if any(getattr(series, key) for series in drawing.series)]
    lines = [
        [*(series.row, series.column, series.metric), *_numbers(series, keys, place), " ".join(map(str, series.seeds))]
        for series in drawing.series
        for place in range(len(series.y))
    ]
    return _lines(["row", "column", "metric", *(numbers[key] for key in keys), "seeds"], lines)


def _numbers(series: Series, keys: Sequence[str], place: int) -> list[float | None]:
    return [values[place] if (values := getattr(series, key)) else None for key in keys]


def _header(exhibit: Exhibit) -> Record:
    """Says what the exhibit is, and how its numbers may be used."""
    plan = exhibit.plan
    about = _of(plan, *_PLAN) | {"schema": SCHEMA, "run_here": words.protocol(plan), "warnings": exhibit.warnings}
    if not plan.kind:
        about |= {"counts": exhibit.counts, "rule": asdict(RULE)}
    about |= {"printed_seeds": plain(plan.printed_seeds), "spreads": plain(plan.spreads)}
    return about | {"versions": provenance.versions(exhibit.evidence), "commits": provenance.commits(exhibit.evidence)}


def _candidates(choice: Any) -> Iterable[Record]:
    for candidate in choice.tried:
        record: Record = {"row": choice.place.row, "column": choice.place.column, "metric": choice.metric.name}
        record |= _of(candidate, "values", "run_id", "read", "per_seed", "mean", "chosen")
        record |= {"ahead": choice.ahead if candidate.chosen else None, "reason": choice.reason}
        if choice.second and candidate.again:
            record |= {"second_metric": choice.second.name, "second_per_seed": candidate.again.per_seed}
            record |= {"second_mean": candidate.again.mean, "second_chosen": candidate.again.chosen, "worth": choice.worth}
        yield record


def _comparison(comparison: Any) -> Record:
    sides = {
        f"{name}_{key}": value for name in ("printed", "measured") for key, value in vars(getattr(comparison, name)).items()
    }
    keys = {"method": comparison.method.key, "baseline": comparison.baseline.key}
    return sides | keys | {"metric": comparison.quantity, "columns": comparison.columns}


def _runs(exhibit: Exhibit) -> list[Record]:
    """Lists a record for each run and seed: its cost and the path of its evidence."""
    return [
        {"run_id": run.run_id, "method": run.method, "setting": run.setting, "seed": receipt.seed, "status": receipt.status}
        | vars(receipt.cost)
        | {"commit": receipt.environment.commit, "evidence": receipt.path}
        for run in exhibit.cost
        for receipt in run.receipts
    ]


def _number(number: Any, verdict: str | None) -> Record:
    ends = number.interval or (None, None)
    about = {"ours": number.mean, "low": ends[0], "high": ends[1], "verdict": verdict}
    return about | _of(number, "label", "column", "printed", "per_seed", "runs", "unit")


def _of(item: Any, *names: str) -> Record:
    return {name: getattr(item, name) for name in names}


def _lines(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Writes CSV. Numbers have eight digits; the JSON has all digits."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(head)
    for row in rows:
        lines.writerow([f"{value:.8g}" if isinstance(value, float) else value for value in row])
    return text.getvalue()
