"""Reads the evidence that a report rests on, one receipt per run and seed, and the value that a table takes from each."""

from pathlib import Path
from typing import Any

from fedrepro.config.reading import PLAN_SCHEMA, readings
from fedrepro.engine.identity import require_settings
from fedrepro.engine.records import Record as Receipt
from fedrepro.engine.records import read, repair
from fedrepro.errors import UserError
from fedrepro.files import read_json

Plan = dict[str, Any]
Evidence = dict[str, dict[int, Receipt]]  # run_id -> seed -> receipt

PLAN_KEYS = (
    *("paper", "paper_name", "paper_title", "table", "title", "source", "scale", "scale_note", "comparable", "seeds", "metric"),
    *("stand_in", "on_budget", "rows", "columns", "cells", "runs", "variant_of", "varied"),
)


def load_plan(path: Path) -> Plan:
    """The plan of one table at one scale. UserError when the file is missing, is not JSON or has another schema."""
    plan = read_json(path)
    if not isinstance(plan, dict) or plan.get("schema") != PLAN_SCHEMA:
        raise UserError(f"{path}: not a plan of schema {PLAN_SCHEMA}; delete it and run the same command again")
    missing = [key for key in PLAN_KEYS if key not in plan]
    if missing:
        raise UserError(f"{path}: key {missing[0]!r} is missing; delete it and run the same command again")
    for run in plan["runs"].values():
        require_settings(run, path, "delete it and run the same command again")
    return plan


def load_evidence(plan: Plan, root: Path) -> Evidence:
    """The receipts `<root>/<run_id>/seed<k>.json` of every run and seed that the plan asks for, so far as they exist.

    Seeds and runs that the plan does not ask for are left alone: a report never shows more than its plan.
    """
    found: Evidence = {}
    asked: dict[str, set[str]] = {run_id: set() for run_id in plan["runs"]}
    for cell, reading in readings(plan):
        asked[cell["run_id"]].add(reading.metric)
    for run_id in sorted(plan["runs"]):
        for seed in plan["seeds"]:
            path = evidence_path(root, run_id, seed)
            if path.exists():
                receipt = load_receipt(path, *asked[run_id])
                _require_same(receipt, plan["runs"][run_id], path)
                found.setdefault(run_id, {})[seed] = receipt
    return found


def _require_same(receipt: Receipt, run: dict[str, Any], path: Path) -> None:
    """A short hash is no proof: the receipt must be of this very setting and method."""
    for key, value in {**run["config"], "method": run["method"]}.items():
        got = receipt["method"] if key == "method" else receipt["config"].get(key)
        if got != value:
            raise UserError(f"{path}: {key} = {got!r}, the table asks for {value!r}; {repair(path)}")


def evidence_path(root: Path, run_id: str, seed: int) -> Path:
    """Where one seed's evidence lies."""
    return Path(root) / run_id / f"seed{seed}.json"


def load_receipt(path: Path, *metrics: str) -> Receipt:
    """One receipt, verified (see `fedrepro.engine.records`), and checked to hold the `metrics` of the tables."""
    receipt = read(path)
    for metric in metrics if receipt["status"] == "finished" else ():
        if (receipt["curves"].get(metric) or [None])[-1] is None:
            raise UserError(f"{path}: curves have no {metric!r}, which the table shows; {repair(path)}")
    return receipt
