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
from fedrepro.registry import coerce, parse
from fedrepro.store import is_published

# Of a run, before the columns of a table, where it is one's.
_RUN = ("run_id", "method", "dataset", "model", "partition")
_SEED = ("source", "seed", "round", "metric", "value")
_CELL = ("row", "column", "candidate")


_Found = tuple[dict[str, Any], int, Path]  # the place in a table, if any, a seed, and its evidence


def load(table: str, scale: str | None = "full", *, root: Path | str = ".") -> pd.DataFrame:
    """Every run of a table that has evidence, published or trained here.

    scale: demo, short or full, with the paper's own settings; None: the scale and the settings of params.yaml.

    table: as paper/table, `fedgh/table2`; a figure as paper/figure15. Columns: `row` and `column`, the table's keys;
    `candidate`, what a candidate of a tuned cell tries, `client_lr=0.1`, otherwise empty; then those of `runs`. A run that two
    cells share is there for both. UserError for an unknown table or scale, for damaged evidence, and where there is none.
    """
    project = load_project(Path(root))
    if table not in project.table_names():
        raise UserError(f"load: {unknown_table(str(table), project.table_names())}")
    if scale is not None:
        require_known("load", "scale", scale, sorted(project.scales))
    paper, _, name = table.partition("/")
    made = plan(project.as_published(scale) if scale else project, paper, name, scale or project.params.scale)
    known = stored_runs(Path(root))
    parts: list[_Found] = [
        (dict(zip(_CELL, place, strict=True)), *seed)
        for *place, run_id in _cells(made)
        if run_id in known
        for seed in known[run_id].paths.items()
    ]
    if not parts:
        raise UserError(f"{table}: no evidence at scale {made.scale}; `{made.command}` trains its runs")
    return _frame(parts, _CELL)


def runs(pattern: str = "", *, root: Path | str = ".", **wanted: Any) -> pd.DataFrame:
    """All that has been trained here or is published.

    pattern: a part of the run_id, `mnist-two_nn`. wanted: settings as a run has them, `dataset="mnist"`, `clients=20`; and
    parts that the method must have, `method="fedprox(mu=0.1)+gh"`; "fedavg": no others than FedAvg's.
    Columns: `run_id`; `method`, by the parts that say more than FedAvg and the arguments that differ between these runs;
    `dataset`, `model`, `partition`; a column for each other setting that differs between them; `source`, published or local;
    `seed`; `round`, counted from 1; `metric`; `value`, NaN where it is not finite.
    UserError for a table's name, which no run_id holds, for an unknown setting, for damaged evidence and outside of a project;
    an empty frame where nothing fits.
    """
    if "/" in pattern:
        raise UserError(f"runs({pattern!r}): no run_id has a /; `fedrepro.load({pattern!r})` gives the runs of a table")
    read_params(Path(root))
    settings = _settings(wanted)
    methods = [settings.pop("method")] if "method" in settings else []
    known = stored_runs(Path(root))
    parts = [({}, *seed) for run_id in sorted(known) if pattern in run_id for seed in known[run_id].paths.items()]
    return _frame(parts, (), run_filter(settings, methods, _where))


def _cells(made: Plan) -> Iterator[tuple[str, str, str, str]]:
    """(row, column, candidate, run_id) of all that a plan may show; of candidates the trial too."""
    for cell in made.planned:
        if not cell.tuned and cell.run_id:
            yield cell.row, cell.column, "", cell.run_id
    for one in made.candidates:
        tries = ", ".join(f"{key}={value}" for key, value in one.values.items())
        for run_id in dict.fromkeys((one.trial.run_id, one.run_id)):
            if run_id:
                yield one.row, one.column, tries, run_id


def _settings(wanted: dict[str, Any]) -> dict[str, Any]:
    """As a run has them. UserError for an unknown name, and for a value of another type."""
    known = sorted({*SETTINGS, "method"} - {"average_last"})
    for key in wanted:
        require_known(_where(key), "setting", key, known)
    return {key: coerce(_where(key), value, SETTINGS.get(key, str)) for key, value in wanted.items()}


def _where(key: str) -> str:
    return f"runs({key}=...)"


def _frame(parts: list[_Found], first: Iterable[str], fits: Callable[[dict[str, Any]], bool] | None = None) -> pd.DataFrame:
    """Evidence with what is known of its place, as one frame."""
    records = {path: read(path) for path in dict.fromkeys(path for *_, path in parts)}
    wanted = {path: one for path, one in records.items() if not fits or fits(one["config"] | {"method": one["method"]})}
    described = _described(wanted.values())
    more = [key for key in next(iter(described.values()), {}) if key not in _RUN]
    found: dict[str, list[Any]] = {key: [] for key in (*first, *_RUN, *more, *_SEED)}
    for place, seed, path in parts:
        if (record := wanted.get(path)) is None:
            continue
        same = place | described[record["run_id"]] | {"source": "published" if is_published(path) else "local", "seed": seed}
        rounds = [number + 1 for number in record["curves"]["round"]]
        for metric, values in record["curves"].items():
            if metric != "round":
                for key, value in (same | {"metric": metric}).items():
                    found[key] += [value] * len(rounds)
                found["round"] += rounds
                found["value"] += values
    frame = pd.DataFrame(found)
    return frame.astype({"seed": "int64", "round": "int64", "value": "float64"})


def _described(records: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """run_id -> what is told of the run; the settings that differ between the runs are those that `fedrepro runs` lists."""
    defaults = {field.name: field.default for field in fields(RunSpec) if field.default is not MISSING}
    runs = {record["run_id"]: defaults | record["config"] | {"method": record["method"]} for record in records}
    names = method_names([config["method"] for config in runs.values()])
    differ = [key for key in (columns([*runs.values()]) if runs else {}) if key not in _RUN]
    told: dict[str, dict[str, Any]] = {}
    for (run_id, config), name in zip(runs.items(), names, strict=True):
        values = parse(config["partition"])[0].arguments | config
        told[run_id] = {"run_id": run_id, "method": name} | {key: values.get(key) for key in (*_RUN[2:], *differ)}
    return told
