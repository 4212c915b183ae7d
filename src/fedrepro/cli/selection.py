"""The part of a table that --rows, --columns and --run-id leave: the same for every command that takes them."""

from argparse import Namespace
from typing import Any

from fedrepro.errors import UserError


def cells(plan: dict[str, Any], options: Namespace) -> list[dict[str, Any]]:
    """The cells of `plan` in those rows, columns and runs, also the ones without a run. UserError for an unknown name."""
    from fedrepro.registry import unknown

    known = {axis: [entry["key"] for entry in plan[axis]] for axis in ("rows", "columns")} | {"run_id": sorted(plan["runs"])}
    found = plan["cells"]
    for kind, key in (("rows", "row"), ("columns", "column"), ("run_id", "run_id")):
        wanted = getattr(options, kind, None)
        for name in wanted or []:
            if name not in known[kind]:
                raise UserError(f"{options.target}: {unknown(key.replace('_', ' '), name, known[kind])}")
        found = [cell for cell in found if not wanted or cell[key] in wanted]
    return found


def runs(plan: dict[str, Any], cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs of these cells, each once."""
    return [plan["runs"][run_id] for run_id in dict.fromkeys(cell["run_id"] for cell in cells if cell["run_id"])]
