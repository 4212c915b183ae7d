"""How a table that varies another differs from it, read off the runs of both. Pure."""

from typing import Any

from fedrepro.config.plan import Plan, Run, Varied
from fedrepro.grouping import grouped
from fedrepro.registry import named_arguments

READ, PARTS = "what is read", "methods"


def varied(plan: Plan, base: Plan) -> Varied:
    """The varied table's source, and {setting, part.argument or "what is read": the new values}.

    A value is new in a column when no run of that column of `base` has it; where `base` has no such column, when none of its
    runs has it. Parts of methods that no run of `base` has are listed under `methods`, without their arguments. Both are plans,
    `base` that of the table that is varied.
    """
    base_columns = _by_column(base)
    base_runs = [run for column in base_columns.values() for run in column]
    new_values: dict[str, list[Any]] = {}
    parts = {call.name for run, _ in base_runs for call in run.calls}
    for column, runs in _by_column(plan).items():
        base_values = _values(base_columns.get(column, base_runs))
        for name in dict.fromkeys(call.name for run, _ in runs for call in run.calls if call.name not in parts):
            if name not in new_values.setdefault(PARTS, []):
                new_values[PARTS].append(name)
        for key, values in _values(runs).items():
            if key.partition(".")[0] in new_values.get(PARTS, []):
                continue
            added = [value for value in values if value not in [*base_values.get(key, []), *new_values.get(key, [])]]
            new_values.setdefault(key, []).extend(added)
    return Varied(base.source, {key: values for key, values in sorted(new_values.items()) if values})


def _by_column(plan: Plan) -> dict[str, list[tuple[Run, str]]]:
    """The runs of each column, its candidates' too, with how a cell reads them."""
    return grouped((cell.column, (plan.run(cell), cell.read or "")) for cell in (*plan.planned, *plan.candidates))


def _values(runs: list[tuple[Run, str]]) -> dict[str, list[Any]]:
    """Every value that each setting and each argument takes, once, in the order of the runs."""
    values_by_key: dict[str, list[Any]] = {}
    for run, read in runs:
        arguments = named_arguments(run.method)
        settings = {key: run.config[key] for key in run.sources if key in run.config}
        for key, value in (settings | arguments | {READ: read}).items():
            values = values_by_key.setdefault(key, [])
            if value not in values:
                values.append(value)
    return values_by_key
