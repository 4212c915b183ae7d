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


def ran(plan: Plan) -> list[dict[str, Any]]:
    """Data, rounds, and what else a scale, a budget or a stand-in has changed: `[{key, values: [{where, value}]}]`.

    `value` names ours and the paper's; `where` as in `settings`. What params.yaml edits counts as ours alone.
    """
    cells = _cells(plan)
    changed = dict.fromkeys(key for cell in cells for key in cell["instead_of"])
    found = []
    for key in dict.fromkeys(["dataset", "rounds", *changed]):
        values = [(cell, _instead(key, plan["runs"][cell["run_id"]]["config"].get(key), cell["instead_of"])) for cell in cells]
        said = [value for value in _setting(key, values, [], plan)["values"] if value["value"]]
        found.append({"key": key, "values": [value | {"where": []} for value in said] if key == "dataset" else said})
    return found


def _instead(key: str, ours: Any, paper: dict[str, Any]) -> str:
    """`5 of the paper's 200 rounds`; of other keys than data and rounds only what is not the paper's."""
    if key == "rounds":
        all_of_them = f"all {ours} rounds" if ours > 1 else "the only round"
        return f"{ours} of the paper's {paper[key]} rounds" if paper.get(key, ours) > ours else all_of_them
    if key == "dataset":
        return f"{ours} in the place of {paper[key]}" if key in paper else ours
    return f"{key.replace('_', ' ')} {show(ours)} instead of {show(paper[key])}" if key in paper else ""


def _cells(plan: Plan) -> list[dict]:
    return [cell for cell in plan["cells"] if cell["run_id"]]


def _setting(key: str, values: list[tuple[dict, str]], sources: list[str | None], plan: Plan) -> dict[str, Any]:
    varies, place = _dependence(values)
    shared: dict[str, dict[str, None]] = {}
    for cell, value in values:
        where = " / ".join(_label(plan, axis, cell) for axis in place)
        shared.setdefault(value, {})[where] = None
    whole = _groups(plan) if varies == "setting" else {}
    return {
        "key": key,
        "varies": varies,
        "values": [{"where": _named(where, whole), "value": value} for value, where in shared.items()],
        "source": "; ".join(source for source in dict.fromkeys(sources) if source),
    }


def _groups(plan: Plan) -> dict[str, list[str]]:
    """Group of columns -> the labels of those in which anything runs."""
    run = {cell["column"] for cell in _cells(plan)}
    found: dict[str, list[str]] = {}
    for column in plan["columns"]:
        if column.get("group") and column["key"] in run:
            found.setdefault(column["group"], []).append(f"{column['group']} · {column['label']}")
    return found


def _named(where: dict[str, None], whole: dict[str, list[str]]) -> list[str]:
    """The places; a group whose columns are all there by its own name."""
    groups = {label: group for group, labels in whole.items() if set(labels) <= set(where) for label in labels}
    return list(dict.fromkeys(groups.get(label, label) for label in where if label))


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
