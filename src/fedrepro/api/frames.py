"""Results as tidy data frames: a line for each metric of each round of each seed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pandas as pd

from fedrepro.choices import require_known
from fedrepro.cli.stored_runs import run_filter, stored_runs
from fedrepro.config.grid import plan
from fedrepro.config.layers import SETTINGS
from fedrepro.config.plan import Plan
from fedrepro.config.project import load_project, read_params, unknown_table
from fedrepro.config.run_differences import columns, method_names
from fedrepro.engine.records import read
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.registry import coerce, parse, require
from fedrepro.store import is_published

# Columns that describe a run, those of its values, and those that a table's frame has in addition.
_RUN = ("run_id", "method", "dataset", "model", "partition")
_SEED = ("source", "seed", "round", "metric", "value")
_CELL = ("row", "column", "candidate")


_SeedFile = tuple[dict[str, Any], int, Path]  # the place in a table, if any, a seed, and its evidence


def load(table: str, scale: str | None = "full", *, root: Path | str = ".") -> pd.DataFrame:
    """Every run of a table that has evidence, published or trained here.

    scale: demo, short or full, with the paper's own settings; None: the scale and the settings of params.yaml.

    table: as paper/table, `fedgh/table2`; a figure as paper/figure15. Columns: `row` and `column`, the table's keys;
    `candidate`, what a candidate of a tuned cell tries, `client_lr=0.1`, otherwise empty; then those of `runs`. A run that two
    cells share has its lines once for each cell. UserError for an unknown table or scale, for damaged evidence, and where there
    is none.
    """
    project = load_project(Path(root))
    if table not in project.table_names():
        raise UserError(f"load: {unknown_table(str(table), project.table_names())}")
    if scale is not None:
        require_known("load", "scale", scale, sorted(project.scales))
    paper, _, name = table.partition("/")
    table_plan = plan(project.as_published(scale) if scale else project, paper, name, scale or project.params.scale)
    runs_by_id = stored_runs(Path(root))
    parts: list[_SeedFile] = [
        (dict(zip(_CELL, place, strict=True)), *seed)
        for *place, run_id in _cells(table_plan)
        if run_id in runs_by_id
        for seed in runs_by_id[run_id].paths.items()
    ]
    if not parts:
        raise UserError(f"{table}: no evidence at scale {table_plan.scale}; `{table_plan.command}` trains its runs")
    return _frame(parts, _CELL)


def runs(pattern: str = "", *, root: Path | str = ".", **filters: Any) -> pd.DataFrame:
    """Every run that was trained here or is published.

    pattern: a part of the run_id, `mnist-two_nn`. filters: settings as a run has them, `dataset="mnist"`, `clients=20`; and
    parts that the method must have, `method="fedprox(mu=0.1)+gh"`; "fedavg": no others than FedAvg's.
    Columns: `run_id`; `method`, by the parts that say more than FedAvg and the arguments that differ between these runs;
    `dataset`, `model`, `partition`; a column for each other setting that differs between them; `source`, published or local;
    `seed`; `round`, counted from 1; `metric`; `value`, NaN where it is not finite.
    UserError for a table's name, which no run_id holds, for an unknown setting, for damaged evidence and outside of a project;
    an empty frame where nothing fits.
    """
    require(isinstance(pattern, str), "runs: pattern", pattern, "must be text, a part of the run_id")
    if "/" in pattern:
        raise UserError(f"runs({pattern!r}): no run_id has a /; `fedrepro.load({pattern!r})` gives the runs of a table")
    read_params(Path(root))
    settings = _settings(filters)
    methods = [settings.pop("method")] if "method" in settings else []
    runs_by_id = stored_runs(Path(root))
    parts = [({}, *seed) for run_id in sorted(runs_by_id) if pattern in run_id for seed in runs_by_id[run_id].paths.items()]
    return _frame(parts, (), run_filter(settings, methods, _where))


def _cells(table_plan: Plan) -> Iterator[tuple[str, str, str, str]]:
    """Yields (row, column, candidate, run_id) of every run that a plan may show, and of the candidates' trials."""
    for cell in table_plan.planned:
        if not cell.tuned and cell.run_id:
            yield cell.row, cell.column, "", cell.run_id
    for candidate in table_plan.candidates:
        tries = ", ".join(f"{key}={value}" for key, value in candidate.values.items())
        for run_id in dict.fromkeys((candidate.trial.run_id, candidate.run_id)):
            if run_id:
                yield candidate.row, candidate.column, tries, run_id


def _settings(filters: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings as a run has them. UserError for an unknown name, and for a value of another type."""
    names = sorted({*SETTINGS, "method"} - {"average_last"})
    for key in filters:
        require_known(_where(key), "setting", key, names)
    return {key: coerce(_where(key), value, SETTINGS.get(key, str)) for key, value in filters.items()}


def _where(key: str) -> str:
    return f"runs({key}=...)"


def _frame(
    parts: list[_SeedFile], place_columns: Iterable[str], fits: Callable[[dict[str, Any]], bool] | None = None
) -> pd.DataFrame:
    """Returns the evidence, each with its place in a table, as one frame."""
    records = {path: read(path) for path in dict.fromkeys(path for *_, path in parts)}
    configs = {path: record["config"] | {"method": record["method"]} for path, record in records.items()}
    selected = {path: record for path, record in records.items() if not fits or fits(configs[path])}
    descriptions = _describe_runs(selected.values())
    extra = [key for key in next(iter(descriptions.values()), {}) if key not in _RUN]
    values_by_column: dict[str, list[Any]] = {key: [] for key in (*place_columns, *_RUN, *extra, *_SEED)}
    for place, seed, path in parts:
        if (record := selected.get(path)) is None:
            continue
        source = "published" if is_published(path) else "local"
        shared_columns = place | descriptions[record["run_id"]] | {"source": source, "seed": seed}
        rounds = [number + 1 for number in record["curves"]["round"]]
        for metric, values in record["curves"].items():
            if metric != "round":
                for key, value in (shared_columns | {"metric": metric}).items():
                    values_by_column[key] += [value] * len(rounds)
                values_by_column["round"] += rounds
                values_by_column["value"] += values
    frame = pd.DataFrame(values_by_column)
    return frame.astype({"seed": "int64", "round": "int64", "value": "float64"})


def _describe_runs(records: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns run_id -> the columns that describe it; settings that differ between the runs are those of `fedrepro runs`."""
    defaults = {field.name: field.default for field in fields(RunSpec) if field.default is not MISSING}
    runs = {record["run_id"]: defaults | record["config"] | {"method": record["method"]} for record in records}
    names = method_names([config["method"] for config in runs.values()])
    differ = [key for key in (columns([*runs.values()]) if runs else {}) if key not in _RUN]
    descriptions: dict[str, dict[str, Any]] = {}
    for (run_id, config), name in zip(runs.items(), names, strict=True):
        values = parse(config["partition"])[0].arguments | config
        descriptions[run_id] = {"run_id": run_id, "method": name} | {key: values.get(key) for key in (*_RUN[2:], *differ)}
    return descriptions
