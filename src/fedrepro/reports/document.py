"""The report as one JSON document; Markdown and HTML are renderings of it. The schema is `table.schema.json`."""

import dataclasses
from pathlib import Path
from typing import Any

from fedrepro.reports import about, settings
from fedrepro.reports import cells as table
from fedrepro.reports.cells import Cell
from fedrepro.reports.comparisons import comparisons
from fedrepro.reports.evidence import Evidence, Plan

SCHEMA = 1
SCHEMA_FILE = Path(__file__).with_name("table.schema.json")


def build(plan: Plan, evidence: Evidence, evidence_root: Path, figures: dict[str, Path]) -> dict[str, Any]:
    """Everything that a report says, as plain JSON values. Depends on its arguments alone: no clock, no host.

    `figures` maps a column's key to its learning-curve picture; paths are kept as given, which is relative to the project root.
    """
    measured = table.tabulate(plan, evidence)
    copied = (
        "paper",
        "paper_name",
        "paper_title",
        "table",
        "title",
        "source",
        "scale",
        "scale_note",
        "stand_in",
        "on_budget",
        "comparable",
        "variant_of",
        "varied",
        "metric",
        "rows",
        "columns",
    )
    return {
        "schema": SCHEMA,
        **{key: plan[key] for key in copied},
        "seeds": plan["seeds"],
        "ran": settings.ran(plan),
        "about": about.about(plan, evidence, measured),
        "warnings": about.warnings(plan, evidence, measured),
        "cells": [cell_json(cell) for cell in measured],
        "counts": table.count_statuses(measured),
        "rule": dataclasses.asdict(table.RULE),
        "rule_alternatives": alternatives(measured, plan),
        "comparisons": comparisons(plan, measured),
        "methods": _methods(plan),
        "settings": settings.settings(plan),
        "cost": about.cost(plan, evidence, measured, evidence_root),
        "disagreements": plan.get("disagreements", []),
        "deviations": plan.get("deviations", []),
        "known_gaps": plan.get("known_gaps", []),
        "remarks": plan.get("remarks", []),
        "figures": [{"setting": key, "path": Path(path).as_posix()} for key, path in figures.items()],
        "command": f"snakemake --cores 8 reports/{plan['scale']}/{plan['paper']}/{plan['table']}.md",
        "provenance": about.provenance(plan, evidence),
    }


def cell_json(cell: Cell) -> dict[str, Any]:
    """A cell with JSON's types: seeds become strings, run keys a list."""
    return {
        **dataclasses.asdict(cell),
        "per_seed": {str(seed): value for seed, value in cell.per_seed.items()},
        "runs": list(cell.runs),
    }


def alternatives(measured: list[Cell], plan: Plan) -> list[dict[str, Any]]:
    """How many cells have each status under the neighbours of the rule; empty when nothing may be compared."""
    if not plan["comparable"]:
        return []
    return [
        {**dataclasses.asdict(rule), "counts": table.count_statuses(table.judge(measured, plan, rule))}
        for rule in table.ALTERNATIVES
    ]


def _methods(plan: Plan) -> list[dict[str, Any]]:
    """Per row: the method strings that its runs used; more than one when an argument depends on the setting."""
    specs: dict[str, dict[str, None]] = {row["key"]: {} for row in plan["rows"]}
    for cell in plan["cells"]:
        if cell["run_id"]:
            specs[cell["row"]][plan["runs"][cell["run_id"]]["method"]] = None
    return [{"method": row["key"], "label": row["label"], "specs": list(specs[row["key"]])} for row in plan["rows"]]
