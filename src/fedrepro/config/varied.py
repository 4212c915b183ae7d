"""How a table that varies another differs from it, read off the runs of both. Pure."""

from typing import Any

from fedrepro.registry import parse


def varied(runs: dict[str, dict[str, Any]], base: dict[str, Any]) -> dict[str, Any]:
    """{source: the varied table's, values: {setting or part.argument: values that no run of the varied table has}}.

    `runs` are a plan's, `base` is the plan of the table that it varies.
    """
    known = _values(base["runs"])
    new = {key: [value for value in values if value not in known.get(key, [])] for key, values in sorted(_values(runs).items())}
    return {"source": base["source"], "values": {key: values for key, values in new.items() if values}}


def _values(runs: dict[str, dict[str, Any]]) -> dict[str, list[Any]]:
    """Every value that each setting and each argument takes, once, in the order of the runs."""
    found: dict[str, list[Any]] = {}
    for run in runs.values():
        arguments = {f"{call.name}.{key}": value for call in parse(run["method"]) for key, value in call.arguments.items()}
        settings = {key: run["config"][key] for key in run["sources"] if key in run["config"]}
        for key, value in (settings | arguments).items():
            values = found.setdefault(key, [])
            if value not in values:
                values.append(value)
    return found
