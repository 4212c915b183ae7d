"""What was run: every setting with its value and its source, sorted by what the value depends on."""

import json
from dataclasses import dataclass
from typing import Any

from fedrepro.config.plan import Place, Plan, Run
from fedrepro.config.reading import EDITED
from fedrepro.console import some
from fedrepro.grouping import grouped

Values = list[tuple[Place, str]]
# The origin of the protocol's value, in words for a page.
WHOSE = {"paper": "the paper's", "authors' code": "the authors' code's", "inferred": "the inferred", "ours": "our"}


@dataclass(frozen=True)
class ValueInPlaces:
    """A value, and the labels of the places where it holds; no labels mean everywhere."""

    where: tuple[str, ...]
    value: str

    def __str__(self) -> str:
        return self.value + (f" ({'; '.join(self.where)})" if self.where else "")


@dataclass(frozen=True)
class Setting:
    """A setting and its values; `source`: where they come from."""

    key: str
    values: tuple[ValueInPlaces, ...]
    source: str


def settings(plan: Plan) -> tuple[Setting, ...]:
    """Returns one entry per configuration key, then what the table reports of a run.

    `where` names by label the columns that share a value, or the rows where it depends on the method, or else the cells; it is
    empty where the whole table has one value.
    """
    cells = [(cell, plan.run(cell)) for cell in plan.planned]
    keys = dict.fromkeys(key for _, run in cells for key in run.config)
    entries = []
    for key in keys:
        if key != "method":  # the rows are the methods
            values = [(cell, show(run.config.get(key))) for cell, run in cells]
            entries.append(_setting(key, values, [run.sources.get(key) for _, run in cells], plan))
    values = [(cell, show(cell.average_last)) for cell, _ in cells]
    return (*entries, _setting("average_last", values, [cell.average_last_source for cell, _ in cells], plan))


def reported(plan: Plan) -> tuple[ValueInPlaces, ...]:
    """Says over which rounds the values of the cells are; `where` as in `settings`."""
    values = [(cell, reading.over(run.config)) for cell, run, reading in plan.readings()]
    return _setting("reported", values, [], plan).values


def run_here(plan: Plan) -> list[str]:
    """Lists in words the data, the rounds, and what else a scale, a budget or a stand-in has changed.

    Each text has our value, the protocol's value and its origin. For a value of params.yaml it has only ours.
    """
    changed = dict.fromkeys(key for cell in plan.planned for key in cell.instead_of)
    texts = []
    for key in dict.fromkeys(["dataset", "rounds", *changed]):
        values = [(cell, _instead(key, plan.run(cell), cell)) for cell in plan.planned]
        entries = [entry for entry in _setting(key, values, [], plan).values if entry.value]
        texts.append(", ".join(entry.value if key == "dataset" else str(entry) for entry in entries))
    return texts


def _instead(key: str, run: Run, cell: Place) -> str:
    """Writes `5 of the paper's 200 rounds`; of other keys than data and rounds only what is not the protocol's."""
    ours: Any = run.config.get(key)
    protocol, whose = cell.instead_of, WHOSE[cell.unstated.get(key, "paper")]
    if key == "rounds" and run.sources[key] == EDITED:
        return some(ours, "round")
    if key == "rounds":
        all_of_them = f"all {ours} rounds" if ours > 1 else "the only round"
        return f"{ours} of {whose} {protocol[key]} rounds" if protocol.get(key, ours) > ours else all_of_them
    if key == "dataset":
        return f"{ours} in the place of {whose} {protocol[key]}" if key in protocol else ours
    return f"{key.replace('_', ' ')} {show(ours)} instead of {whose} {show(protocol[key])}" if key in protocol else ""


def _setting(key: str, values: Values, sources: list[Any], plan: Plan) -> Setting:
    place = _dependence(values)
    shared = grouped((value, " / ".join(_label(plan, axis, cell) for axis in place)) for cell, value in values)
    by_group = _groups(plan) if place == ("column",) else {}
    entries = tuple(ValueInPlaces(_place_names(where, by_group), value) for value, where in shared.items())
    return Setting(key, entries, "; ".join(source for source in dict.fromkeys(sources) if source))


def _groups(plan: Plan) -> dict[str, list[str]]:
    """Returns group of columns -> the titles of those columns in which anything runs."""
    run_columns = {cell.column for cell in plan.planned}
    return grouped((column.group, column.title) for column in plan.columns if column.group and column.key in run_columns)


def _place_names(where: list[str], by_group: dict[str, list[str]]) -> tuple[str, ...]:
    """Names the places. If all columns of a group are among them, the group is named once."""
    groups = {label: group for group, labels in by_group.items() if set(labels) <= set(where) for label in labels}
    return tuple(dict.fromkeys(groups.get(label, label) for label in where if label))


def _dependence(values: Values) -> tuple[str, ...]:
    """Returns the axes that decide the value: none where it is the same everywhere, the column alone, the row alone, or
    both."""
    for place in ((), ("column",), ("row",)):
        by_place = grouped((tuple(getattr(cell, axis) for axis in place), value) for cell, value in values)
        if all(len(set(of_place)) == 1 for of_place in by_place.values()):
            return place
    return ("row", "column")


def _label(plan: Plan, axis: str, cell: Place) -> str:
    return plan.row(cell.row).label if axis == "row" else plan.column(cell.column).title


def show(value: Any) -> str:
    """Writes a value as a reader would: text bare, sizes as 1×28×28, everything else as JSON. A share such as 10 of 715 clients
    has four digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and len(repr(value)) > 12:
        return f"{value:.4g}"
    if isinstance(value, list) and value and all(isinstance(item, int) for item in value):
        return "×".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
