"""What a report says first: which data, seeds and devices its numbers come from, and when and from which commit they ran."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedrepro.registry import parse
from fedrepro.reports.cells import Cell
from fedrepro.reports.evidence import Evidence, Plan, Receipt, evidence_path
from fedrepro.reports.settings import reported, show

# What a real deployment would send; evidence that is older than these keys lacks them.
TRAFFIC = ("client_rounds", "bytes_up", "bytes_down")
VERSIONS = ("python", "torch", "numpy", "platform", "engine", "arithmetic", "linear_kernel", "products")


def about(plan: Plan, evidence: Evidence, cells: list[Cell]) -> dict[str, Any]:
    """The facts of the opening lines; dates and commits are those of the runs."""
    receipts = _all(evidence)
    cost = [receipt["cost"] for receipt in receipts]
    return {
        "data": _data(plan, evidence),
        "reported": reported(plan),
        "seeds": plan["seeds"],
        "devices": _distinct(_device(receipt["environment"]) for receipt in receipts),
        "first_finished_at": min((c["finished_at"] for c in cost), default=None),
        "last_finished_at": max((c["finished_at"] for c in cost), default=None),
        "commits": _distinct(_commit(receipt["environment"]) for receipt in receipts),
        "cells_measured": sum(cell.mean is not None for cell in cells),
        "cells": len(cells),
        "runs_done": len(receipts),
        "runs_planned": len(plan["runs"]) * len(plan["seeds"]),
        "wall_s": round(math.fsum(c["wall_s"] for c in cost), 1),
        "peak_rss_mib": max((c["peak_rss_mib"] for c in cost), default=None),
    }


def warnings(plan: Plan, evidence: Evidence, cells: list[Cell]) -> list[str]:
    """What a reader must know before trusting the numbers; one sentence each, empty when all is well."""
    receipts, said = _all(evidence), [plan["stand_in"]] if plan["stand_in"] else []
    planned = len(plan["runs"]) * len(plan["seeds"])
    if len(receipts) < planned:
        said.append(f"Incomplete: {len(receipts)} of {planned} runs (run = one cell's setting at one seed) have evidence.")
    diverged = sum(receipt["status"] == "diverged" for receipt in receipts)
    if diverged:
        named = sorted({f"{c.method_label} ({c.setting_label})" for c in cells if None in c.per_seed.values()})
        said.append(f"{diverged} of {len(receipts)} runs diverged; their cells have no mean: {', '.join(named)}.")
    edited = _edited(plan)
    if edited:
        said.append(f"params.yaml overrides what the table would take: {', '.join(edited)}.")
    commits = {receipt["environment"].get("commit") for receipt in receipts}
    if len(commits) > 1:
        said.append(f"The runs come from {len(commits)} different commits; see the provenance below.")
    if any(receipt["environment"].get("dirty") for receipt in receipts):
        said.append("Some runs were made from a working tree with uncommitted changes (marked dirty).")
    said += [
        f"Input {one['kind']} of {one['setting']} at seed {one['seed']} is not the same for every method ({one['sha256']})."
        for one in _conflicts(inputs(plan, evidence))
    ]
    return said


def cost(plan: Plan, evidence: Evidence, cells: list[Cell], root: Path) -> list[dict[str, Any]]:
    """Per run: what each seed cost, and where its evidence lies. Runs shared by several cells are listed once."""
    places: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.run_id:
            places.setdefault(cell.run_id, []).append(cell)
    return [
        {
            "run_id": run_id,
            "method": shared[0].method_label,
            "setting": ", ".join(dict.fromkeys(cell.setting_label for cell in shared)),
            "seeds": [
                {
                    "seed": seed,
                    "status": receipt["status"],
                    **{key: receipt["cost"][key] for key in ("wall_s", "peak_rss_mib", "samples", "samples_per_second")},
                    **{key: receipt["cost"].get(key) for key in TRAFFIC},
                    "finished_at": receipt["cost"]["finished_at"],
                    "commit": receipt["environment"].get("commit"),
                    "evidence": evidence_path(root, run_id, seed).as_posix(),
                }
                for seed, receipt in evidence.get(run_id, {}).items()
            ],
        }
        for run_id, shared in places.items()
    ]


def provenance(plan: Plan, evidence: Evidence) -> dict[str, Any]:
    """Versions of what computed the numbers, and the sha256 of every input by kind, identity and seed."""
    environments = [receipt["environment"] for receipt in _all(evidence)]
    versions = {key: _distinct(str(env[key]) for env in environments if env.get(key) is not None) for key in VERSIONS}
    unique: dict[tuple, dict[str, Any]] = {}
    for entry in inputs(plan, evidence):
        for digest in entry["sha256"]:
            blank = {"kind": entry["kind"], "id": entry["id"], "seeds": [], "sha256": digest}
            seeds = unique.setdefault((entry["kind"], entry["id"], digest), blank)["seeds"]
            if entry["seed"] not in seeds:
                seeds.append(entry["seed"])
    return {
        "versions": versions,
        "inputs": [unique[key] for key in sorted(unique, key=lambda key: (*key[:2], unique[key]["seeds"]))],
    }


def inputs(plan: Plan, evidence: Evidence) -> list[dict[str, Any]]:
    """Per kind, column and seed: the identity of the input and the sha256 that its runs report; more than one is a fault.

    Participation, initial model and data are shared by all rows of a column, so rows of one column that name the same input
    must have read the same bytes.
    """
    columns = {c["key"]: " · ".join(p for p in (c.get("group"), c["label"]) if p) for c in plan["columns"]}
    found: dict[tuple, dict[str, Any]] = {}
    for cell in plan["cells"]:
        for seed, receipt in evidence.get(cell["run_id"] or "", {}).items():
            for kind, digest in sorted((receipt.get("inputs") or {}).items()):
                name = str(plan["runs"][cell["run_id"]].get("inputs", {}).get(kind, ""))
                blank = {"kind": kind, "id": name, "seed": seed, "setting": columns[cell["column"]], "sha256": []}
                entry = found.setdefault((kind, name, seed, cell["column"]), blank)
                if digest is not None and digest not in entry["sha256"]:
                    entry["sha256"].append(digest)
    return list(found.values())


def _conflicts(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**entry, "sha256": ", ".join(d[:12] for d in entry["sha256"])} for entry in entries if len(entry["sha256"]) > 1]


def _data(plan: Plan, evidence: Evidence) -> list[dict[str, Any]]:
    """Per column group of the printed table: the data set (and input shape) of its runs, if any has evidence of those."""
    columns = {column["key"]: column for column in plan["columns"]}
    used: dict[str, dict[str, None]] = {}
    planned = [cell for cell in plan["cells"] if cell["run_id"]]
    for cell in [cell for cell in planned if evidence.get(cell["run_id"])] or planned:
        config = plan["runs"][cell["run_id"]]["config"]
        shape = config.get("input_shape")
        name = config["dataset"] + (f" ({show(shape)})" if shape else "")
        used.setdefault(columns[cell["column"]].get("group") or columns[cell["column"]]["label"], {})[name] = None
    return [{"printed": group, "used": list(names)} for group, names in used.items()]


def _edited(plan: Plan) -> list[str]:
    """`rounds = 5` for every value that comes from params.yaml instead of from the table, its paper or the scale."""
    found: dict[str, None] = {}
    for run in plan["runs"].values():
        for key, source in run.get("sources", {}).items():
            if source == "params.yaml":
                found[f"{key} = {show(run['config'][key])}"] = None
        for key, source in run.get("argument_sources", {}).items():
            if source == "params.yaml":
                part, _, argument = key.partition(".")
                call = next(call for call in parse(run["method"]) if call.name == part)
                found[f"{key} = {show(call.arguments[argument])}"] = None
    for cell in plan["cells"]:
        if cell["average_last_source"] == "params.yaml":
            found[f"average_last = {cell['average_last']}"] = None
    return sorted(found)


def _all(evidence: Evidence) -> list[Receipt]:
    return [receipt for seeds in evidence.values() for receipt in seeds.values()]


def _distinct(values: Iterable[str]) -> list[str]:
    return sorted(set(values))


def _device(environment: dict[str, Any]) -> str:
    parts = [environment.get("device"), environment.get("processor")]
    threads = environment.get("threads")
    if threads is not None:
        parts.append(f"{threads} thread{'' if threads == 1 else 's'} a run")
    return ", ".join(str(part) for part in parts if part)


def _commit(environment: dict[str, Any]) -> str:
    return f"{environment.get('commit') or 'unknown'}{' (dirty)' if environment.get('dirty') else ''}"
