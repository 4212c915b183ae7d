"""What was run: every setting with its value and its source, sorted by what the value depends on."""

import json
from typing import Any

from fedrepro.config.reading import readings
from fedrepro.reports.evidence import Plan


def settings(plan: Plan) -> list[dict[str, Any]]:
    """One entry per configuration key, then what the table reports of a run: `{key, varies, values: [{where, value}], source}`.

    `varies` is "no" (one value for the whole table), "setting" (one value per column), "method" (one value per row) or "cell".
    `where` names the columns, rows or cells that share the value, by label; it is empty when `varies` is "no".
    """
    cells, runs = _cells(plan), plan["runs"]
    keys = dict.fromkeys(key for cell in cells for key in runs[cell["run_id"]]["config"])
    found = []
    for key in keys:
        if key != "method":  # the rows are the methods
            values = [(cell, show(runs[cell["run_id"]]["config"].get(key))) for cell in cells]
            found.append(_setting(key, values, [runs[cell["run_id"]].get("sources", {}).get(key) for cell in cells], plan))
    values = [(cell, show(cell["average_last"])) for cell in cells]
    return [*found, _setting("average_last", values, [cell["average_last_source"] for cell in cells], plan)]


def reported(plan: Plan) -> list[dict[str, Any]]:
    """Over which rounds the values of the cells are: `[{where, value}]`, as in `settings`."""
    rounds = lambda cell: plan["runs"][cell["run_id"]]["config"]["rounds"]  # noqa: E731
    values = [(cell, reading.rounds(rounds(cell))) for cell, reading in readings(plan)]
    return _setting("reported", values, [], plan)["values"]


def _cells(plan: Plan) -> list[dict]:
    return [cell for cell in plan["cells"] if cell["run_id"]]


def _setting(key: str, values: list[tuple[dict, str]], sources: list[str | None], plan: Plan) -> dict[str, Any]:
    varies, place = _dependence(values)
    shared: dict[str, dict[str, None]] = {}
    for cell, value in values:
        where = " / ".join(_label(plan, axis, cell) for axis in place)
        shared.setdefault(value, {})[where] = None
    return {
        "key": key,
        "varies": varies,
        "values": [{"where": [w for w in where if w], "value": value} for value, where in shared.items()],
        "source": "; ".join(source for source in dict.fromkeys(sources) if source),
    }


def _dependence(values: list[tuple[dict, str]]) -> tuple[str, tuple[str, ...]]:
    """Whether the value is the same everywhere, or decided by the column alone, by the row alone, or by neither."""
    for varies, place in (("no", ()), ("setting", ("column",)), ("method", ("row",))):
        by_place: dict[tuple, set[str]] = {}
        for cell, value in values:
            by_place.setdefault(tuple(cell[axis] for axis in place), set()).add(value)
        if all(len(found) == 1 for found in by_place.values()):
            return varies, place
    return "cell", ("row", "column")


def _label(plan: Plan, axis: str, cell: dict) -> str:
    entry = next(entry for entry in plan[axis + "s"] if entry["key"] == cell[axis])
    return " · ".join(part for part in (entry.get("group"), entry["label"]) if part)


def show(value: Any) -> str:
    """A value as a reader writes it: text bare, sizes as 1×28×28, everything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(item, int) for item in value):
        return "×".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
