"""The part of a table that --rows, --columns and --run-id leave: the same for every command that takes them."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError


def cells(plan: dict[str, Any], options: Namespace) -> list[dict[str, Any]]:
    """The cells of `plan` in those rows, columns and runs, also the ones without a run; of a tuned one also its candidates.

    UserError for an unknown name.
    """
    from fedrepro.registry import unknown

    known = {axis: [entry["key"] for entry in plan[axis]] for axis in ("rows", "columns")} | {"run_id": sorted(plan["runs"])}
    found = [*plan["cells"], *plan.get("candidates", [])]
    for kind, key in (("rows", "row"), ("columns", "column"), ("run_id", "run_id")):
        wanted = getattr(options, kind, None)
        for name in wanted or []:
            if name not in known[kind]:
                raise UserError(f"{options.target}: {unknown(key.replace('_', ' '), name, known[kind])}")
        found = [cell for cell in found if not wanted or cell[key] in wanted]
    return found


def runs(plan: dict[str, Any], cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs of these cells, each once; of candidates the trials too."""
    found = (one["run_id"] for cell in cells for one in (cell, cell.get("trial", cell)))
    return [plan["runs"][run_id] for run_id in dict.fromkeys(found) if run_id]


def jobs(plan: dict[str, Any], cells: list[dict[str, Any]], seeds: list[int]) -> list[tuple[dict[str, Any], list[int]]]:
    """(run, its seeds) of what these cells need: `seeds` of each, and of candidates their trials, which come first."""
    trials = [(cell["trial"]["run_id"], cell["trial"]["seeds"]) for cell in cells if "trial" in cell]
    asked: dict[str, list[int]] = {}
    for run_id, wanted in [*trials, *((cell["run_id"], seeds) for cell in cells if "trial" not in cell and cell["run_id"])]:
        asked[run_id] = list(dict.fromkeys([*asked.get(run_id, []), *wanted]))
    return [(plan["runs"][run_id], wanted) for run_id, wanted in asked.items()]


def as_chosen(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The candidates among `cells` as if each were chosen."""
    return [{key: value for key, value in cell.items() if key != "trial"} for cell in cells if "trial" in cell]


def foreseen(plan: dict[str, Any], cells: list[dict[str, Any]], roots: Sequence[Path]) -> tuple[list[dict[str, Any]], str]:
    """(what follows the trials of the candidates among `cells`, their number in words).

    Of each cell it is the candidate that the receipts below one of `roots` choose; until then the first, since they cost
    alike.
    """
    follow: dict[tuple[str, str], dict[str, Any]] = {}
    for one in as_chosen(cells):
        follow.setdefault((one["row"], one["column"]), one)
    if not follow:
        return [], ""
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for root in roots:
        for cell in settle(plan, root)["cells"]:
            place = cell["row"], cell["column"]
            if place in follow and cell["run_id"]:
                chosen.setdefault(place, cell)
    count = sum("trial" in cell for cell in cells)
    said = f"{count} candidates of {len(follow)} tuned cells, {len(chosen)} of which are chosen"
    if len(chosen) < len(follow):
        said += "; of the others the first candidate is counted as the chosen one"
    return [*(follow | chosen).values()], said


def settle(plan: dict[str, Any], root: Path) -> dict[str, Any]:
    """The plan with the chosen candidates in its tuned cells, by the receipts below `root`, and no candidates."""
    from fedrepro.reports.analysis.tuning import settle as choose
    from fedrepro.reports.load import load_evidence
    from fedrepro.reports.model import Plan
    from fedrepro.reports.model.codec import decode

    typed = decode(Plan, plan)
    settled, _, _ = choose(typed, load_evidence(typed, root))
    chosen = {(cell.row, cell.column): cell for cell in settled.cells if cell.tuned}
    cells = []
    for cell in plan["cells"]:
        if cell["tuned"]:
            own = chosen[cell["row"], cell["column"]]
            same = lambda one, own=own: (one["row"], one["column"], one["run_id"]) == (own.row, own.column, own.run_id)  # noqa: E731
            cell = next((one for one in plan["candidates"] if same(one)), cell | {"reason": own.reason})
            cell = {key: value for key, value in cell.items() if key != "trial"}
        cells.append(cell)
    return plan | {"cells": cells, "candidates": []}
