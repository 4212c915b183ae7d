"""Kept models and what diagnostics measure on them, as files: which rounds of a run, which calls, which evidence."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedrepro.engine import diagnosed
from fedrepro.errors import UserError
from fedrepro.files import read_json

PUBLISHED = ("short", "full")


def keeps(plans: Iterable[dict[str, Any]]) -> dict[str, list[int]]:
    """run_id -> every round, counted from 1, that one of the plans keeps the models of."""
    found: dict[str, set[int]] = {}
    for plan in plans:
        for run_id, run in plan["runs"].items():
            found.setdefault(run_id, set()).update(run["keep"])
    return {run_id: sorted(rounds) for run_id, rounds in found.items()}


def calls(plans: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The name of its folder -> every diagnostic that a cell of the plans shows."""
    asked = dict.fromkeys(cell["diagnostic"] for plan in plans for cell in plan["cells"])
    return {diagnosed.folder(call): call for call in asked if call}


def evidence(plan: dict[str, Any]) -> list[str]:
    """What the diagnostics of a plan leave beside its receipts."""
    asked = dict.fromkeys((cell["run_id"], cell["diagnostic"]) for cell in plan["cells"] if cell["run_id"])
    root = f"reports/{plan['scale']}/{plan['paper']}/evidence"
    pairs = [(run_id, diagnosed.folder(call)) for run_id, call in asked if call]
    return [f"{root}/{run_id}/{folder}/seed{seed}.parquet" for run_id, folder in pairs for seed in plan["seeds"]]


def settled(plans: dict[str, dict[str, Any]], published: Iterable[str]) -> list[str]:
    """The evidence of diagnostics, below reports/, that is taken as it is: it has all of the rounds that its tables keep, and
    it is published, or nothing is left of it but the evidence. `plans`: scale/paper/table -> plan."""
    found = []
    for path in sorted(Path("reports").glob("*/*/evidence/*/*/seed*.parquet")):
        _, scale, paper, _, run_id, folder, name = path.parts
        if scale in published or not (diagnosed.DIAGNOSTICS / run_id / folder / name).exists():
            here = [plan for key, plan in plans.items() if key.startswith(f"{scale}/{paper}/")]
            if diagnosed.covers(path, keeps(here).get(run_id, [])):
                found.append(str(path.relative_to("reports")))
    return found


def origin(run_id: str, folder: str, seed: str, rounds: list[int]) -> str:
    """What evidence of a diagnostic is copied from: what was measured here, or else what is published of the same rounds."""
    own = diagnosed.DIAGNOSTICS / run_id / folder / f"seed{seed}.parquet"
    for scale in PUBLISHED if not own.exists() else ():
        for path in sorted(Path("reports", scale).glob(f"*/evidence/{run_id}/{folder}/seed{seed}.parquet")):
            if diagnosed.covers(path, rounds):
                return str(path)
    return str(own)


def lacks(run_id: str, seed: str, rounds: list[int]) -> bool:
    """Whether there is a list of kept rounds without all of them: models were kept by hand, or for another table."""
    path = diagnosed.kept_path(Path(), run_id, int(seed))
    try:
        content = read_json(path) if path.exists() else None
        return content is not None and any(str(one) not in content["rounds"] and one <= content["reached"] for one in rounds)
    except (UserError, KeyError, TypeError):
        return True
