"""Reads the evidence that a report rests on: one receipt per run and seed."""

from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.files import read_json

Plan = dict[str, Any]
Receipt = dict[str, Any]
Evidence = dict[str, dict[int, Receipt]]  # run_id -> seed -> receipt

SCHEMA = 1
PLAN_KEYS = (
    *("paper", "paper_name", "paper_title", "table", "title", "source", "scale", "scale_note", "comparable", "seeds", "metric"),
    *("rows", "columns", "cells", "runs"),
)
RECEIPT_KEYS = ("status", "summary", "curves", "inputs", "environment", "cost", "config", "method", "method_label")


def load_plan(path: Path) -> Plan:
    """The plan of one table at one scale. UserError when the file is missing, is not JSON or has another schema."""
    plan = read_json(path)
    if not isinstance(plan, dict) or plan.get("schema") != SCHEMA:
        raise UserError(f"{path}: not a plan of schema {SCHEMA}; delete it and run the same command again")
    _require(plan, PLAN_KEYS, path)
    return plan


def load_evidence(plan: Plan, root: Path) -> Evidence:
    """The receipts `<root>/<run_id>/seed<k>.json` of every run and seed that the plan asks for, so far as they exist.

    Seeds and runs that the plan does not ask for are left alone: a report never shows more than its plan.
    """
    found: Evidence = {}
    for run_id in sorted(plan["runs"]):
        for seed in plan["seeds"]:
            path = evidence_path(root, run_id, seed)
            if path.exists():
                found.setdefault(run_id, {})[seed] = load_receipt(path, run_id, seed, plan["metric"]["name"])
    return found


def evidence_path(root: Path, run_id: str, seed: int) -> Path:
    """Where one seed's evidence lies."""
    return Path(root) / run_id / f"seed{seed}.json"


def load_receipt(path: Path, run_id: str, seed: int, metric: str | None = None) -> Receipt:
    """One receipt, checked to be the one that its path promises and to hold the table's `metric`."""
    receipt = read_json(path)
    expected = {"schema": SCHEMA, "run_id": run_id, "seed": seed}
    for key, value in expected.items():
        if not isinstance(receipt, dict) or receipt.get(key) != value:
            got = receipt.get(key) if isinstance(receipt, dict) else receipt
            raise UserError(f"{path}: {key} = {got!r} where {value!r} belongs; delete the file and run the same command again")
    _require(receipt, RECEIPT_KEYS, path)
    if receipt["status"] == "finished" and metric is not None and receipt["summary"].get(metric) is None:
        raise UserError(
            f"{path}: summary has no {metric!r}, which the table shows; delete the file and run the same command again"
        )
    return receipt


def _require(value: dict, keys: tuple[str, ...], path: Path) -> None:
    missing = [key for key in keys if key not in value]
    if missing:
        raise UserError(f"{path}: key {missing[0]!r} is missing; delete the file and run the same command again")
