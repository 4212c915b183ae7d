"""From the files a person edits to the runs that a table needs. Pure: reads files, draws nothing, writes nothing."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from fedrepro.config.layers import EDITED, SETTINGS, Layers, argument_sources, plain
from fedrepro.config.printed import printed_numbers
from fedrepro.config.schema import Arguments, Column, Paper, Params, Row, Scale, Table, check, read_yaml
from fedrepro.data import participation, partition, proxy
from fedrepro.data.arrays import arrays_folder
from fedrepro.data.registry import Entry, load_registry
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash
from fedrepro.methods.compose import Method, compose, with_arguments
from fedrepro.methods.parts import PARTS
from fedrepro.methods.presets import DEFAULTS
from fedrepro.models import initial
from fedrepro.models.names import MODELS
from fedrepro.registry import Call, coerce, parse, unknown

# Part of every run's hash: raise it when a change of the code is meant to change results.
RESULTS_VERSION = 1
# kind of artifact -> the module that defines, draws and loads it
MODULES = {"partition": partition, "participation": participation, "proxy": proxy, "init": initial}
FOLDERS = {
    "partition": partition.PARTITIONS,
    "participation": participation.PARTICIPATION,
    "proxy": proxy.PROXY,
    "init": initial.FOLDER,
}


@dataclass(frozen=True)
class Project:
    """Everything read from the root folder that decides a plan."""

    root: Path
    params: Params
    scales: dict[str, Scale]
    registry: dict[str, Entry]

    def paper(self, name: str) -> Paper:
        """papers/<name>/paper.yaml."""
        return _read(Paper, self.root / "papers" / name / "paper.yaml")

    def table(self, paper: str, name: str) -> Table:
        """papers/<paper>/tables/<name>.yaml."""
        path = self.root / "papers" / paper / "tables" / f"{name}.yaml"
        if not path.exists():
            known = self.table_names()
            raise UserError(f"params.yaml or the command: {unknown('table', f'{paper}/{name}', known)}")
        return _read(Table, path)

    def table_names(self) -> list[str]:
        """Every table there is a file for, as paper/table."""
        return sorted(f"{p.parent.parent.name}/{p.stem}" for p in self.root.glob("papers/*/tables/*.yaml"))

    def scale(self, name: str) -> Scale:
        """The scale called `name`."""
        if name not in self.scales:
            raise UserError(f"params.yaml: scale: {unknown('scale', name, sorted(self.scales))}")
        return self.scales[name]


def load_project(root: Path = Path(), params: dict[str, Any] | None = None) -> Project:
    """Reads and checks everything; `params` replaces the content of params.yaml (Snakemake merges --config into it)."""
    root = Path(root)
    content = read_yaml(root / "params.yaml") if params is None else params
    where = root / "papers" / "scales.yaml"
    scales = {name: check(Scale, value, f"{where}: {name}") for name, value in read_yaml(where).items()}
    for name, scale in scales.items():
        _check_methods(f"{where}: {name}: methods", scale.methods)
    registry = load_registry(root / "data" / "registry.yaml")
    project = Project(root, check(Params, content, "params.yaml"), scales, registry)
    project.scale(project.params.scale)
    _check_params(project)
    return project


def plan(project: Project, paper_name: str, table_name: str, scale_name: str) -> dict[str, Any]:
    """The plan of one table at one scale: rows, columns, cells with printed numbers, and every run in full."""
    table, paper, scale = project.table(paper_name, table_name), project.paper(paper_name), project.scale(scale_name)
    for layer in (paper.methods, *paper.methods_by_dataset.values()):
        _check_methods(f"papers/{paper_name}/paper.yaml: methods", {m: plain(arguments) for m, arguments in layer.items()})
    printed = printed_numbers(project.root / "papers" / paper_name / "published" / table.published, table)
    rows = [(row, True) for row in table.rows] + [(row, False) for row in table.companions if scale.companions]
    columns = [column for column in table.columns if column.demo or not scale.only_demo_columns]
    runs, cells = {}, []
    for row, is_printed in rows:
        for column in columns:
            value, note = printed.get((row.key, column.key), (None, ""))
            reason = row.pending if row.method is None else column.pending
            run = None
            if reason is None:
                run = _run(project, paper_name, paper, table_name, table, scale, row, column)
                runs[run["run_id"]] = run
                _refuse_twin(cells, row, column, run["run_id"], f"papers/{paper_name}/tables/{table_name}.yaml", scale_name)
            cell = {"row": row.key, "column": column.key, "printed": value if is_printed else None, "note": note}
            cells.append(cell | {"run_id": run and run["run_id"], "reason": reason})
    return {
        "schema": 1,
        "paper": paper_name,
        "paper_name": paper.name,
        "paper_title": f"{paper.authors}: {paper.title} ({paper.venue})",
        "table": table_name,
        "title": table.title,
        "source": table.source,
        "scale": scale_name,
        "scale_note": scale.note,
        "seeds": project.params.seeds,
        "device": project.params.device,
        "comparable": scale.comparable and not _edited(runs),
        "metric": table.metric.model_dump(),
        "rows": [{"key": row.key, "label": row.label, "printed": is_printed} for row, is_printed in rows],
        "columns": [column.model_dump(include={"key", "label", "group"}) for column in columns],
        "cells": cells,
        "runs": runs,
        "deviations": [item.model_dump() for item in paper.deviations],
        "disagreements": [item.model_dump() for item in paper.disagreements],
        "known_gaps": paper.known_gaps,
    }


def _refuse_twin(cells: list[dict[str, Any]], row: Row, column: Column, run_id: str, file: str, scale: str) -> None:
    """Two columns of one row that are the same run would print one number twice under two headings."""
    for cell in cells:
        if cell["row"] == row.key and cell["run_id"] == run_id:
            raise UserError(
                f"{file}: at scale {scale} the columns {cell['column']} and {column.key} are the same run; "
                "papers/scales.yaml or params.yaml: settings must leave what tells them apart"
            )


def every_run(project: Project) -> set[str]:
    """The run_ids of every table at every scale, as params.yaml stands."""
    tables = [name.partition("/") for name in project.table_names()]
    plans = (plan(project, paper, table, scale) for paper, _, table in tables for scale in project.scales)
    return {run_id for made in plans for run_id in made["runs"]}


def _run(
    project: Project, paper_name: str, paper: Paper, table_name: str, table: Table, scale: Scale, row: Row, column: Column
) -> dict[str, Any]:
    file = f"papers/{paper_name}/tables/{table_name}.yaml"
    layers = Layers(paper, table, scale, column, project.params)
    settings = layers.settings(f"{file}: {row.key}, {column.key}")
    values: dict[str, Any] = {key: item.value for key, item in settings.items()}
    where = lambda key: _place(key, settings[key].source, file, column.key)  # noqa: E731
    if values["dataset"] not in project.registry:
        raise UserError(f"{where('dataset')}: {unknown('data set', values['dataset'], sorted(project.registry))}")
    if values["model"] not in MODELS:
        raise UserError(f"{where('model')}: {unknown('model', values['model'], sorted(MODELS))}")
    entry, shape = project.registry[values["dataset"]], MODELS[values["model"]]
    with _at(f"{file}: rows: {row.key}: method"):
        arguments = layers.arguments(paper_name)
        method = compose(with_arguments(row.method or "", {name: plain(values) for name, values in arguments.items()}))
    with _at(where("partition")):
        values["partition"] = str(partition.SCHEMES.canonical(partition.make_scheme(values["partition"])))
    try:
        spec = RunSpec(**values, dataset_sha=entry.sha, input_shape=shape, classes=entry.classes, method=str(method))
    except UserError as error:
        raise UserError(f"{where(str(error).partition(' ')[0])}: {error}") from error
    if "proxy" in method.needs and not spec.proxy_per_class:
        raise UserError(f"{where('proxy_per_class')} = 0: {row.label} needs a proxy set; set it to at least 1")
    return {
        "run_id": run_id(spec, method),
        "method": str(method),
        "method_label": short_name(method),
        "config": spec.as_dict(),
        "sources": {key: item.source for key, item in settings.items()},
        "argument_sources": argument_sources(method, row.method or "", arguments, table.source),
        "inputs": artifacts(spec, entry),
    }


def _edited(runs: dict[str, dict[str, Any]]) -> bool:
    """Whether params.yaml has put any value in the place of the paper's: then nothing is held against a printed number."""
    return any(EDITED in (run["sources"] | run["argument_sources"]).values() for run in runs.values())


def run_id(spec: RunSpec, method: Method) -> str:
    """A readable slug and a hash of everything that decides the result.

    A setting that came later has a default in RunSpec and counts only where it differs: older results keep their names.
    """
    defaults = {field.name: field.default for field in fields(RunSpec)}
    decides = {key: value for key, value in spec.as_dict().items() if value != defaults[key]}
    scheme = partition.make_scheme(spec.partition)
    values = "-".join(f"{value:g}" if isinstance(value, float) else str(value) for value in vars(scheme).values())
    slug = "-".join(filter(None, [spec.dataset, spec.model, parse(spec.partition)[0].name, values, short_name(method)]))
    return f"{slug}-{canonical_hash({'spec': decides, 'version': RESULTS_VERSION}, 8)}"


def short_name(method: Method) -> str:
    """The parts that are not the default of their slot, `fedprox+fixed_gamma`; `fedavg` when there are none."""
    defaults = [PARTS.make(Call(name, {})) for name in DEFAULTS.values()]
    return "+".join(part.name for part in method.parts if part not in defaults) or "fedavg"


def artifacts(spec: RunSpec, entry: Entry) -> dict[str, str]:
    """The artifacts that a run reads: the arrays' folder and the ids of the others."""
    ids = {kind: MODULES[kind].artifact_id(made) for kind, made in definitions(spec, entry).items()}
    return {"arrays": str(arrays_folder(Path(), spec.dataset, spec.input_shape))} | ids


def definitions(spec: RunSpec, entry: Entry) -> dict[str, dict[str, Any]]:
    """What decides each drawn artifact of a run, by kind."""
    return {
        "partition": partition.definition(entry, spec.partition, spec.clients, spec.local_validation),
        "participation": participation.definition(spec.clients, spec.participation, spec.rounds),
        "proxy": proxy.definition(entry, spec.proxy_per_class),
        "init": initial.definition(spec.model, spec.input_shape, spec.classes),
    }


def _check_params(project: Project) -> None:
    """What the schema cannot see: names of settings, papers, methods and arguments in params.yaml."""
    for key, value in project.params.settings.items():
        if key not in SETTINGS:
            raise UserError(f"params.yaml: settings: {unknown('setting', key, sorted(SETTINGS))}")
        coerce(f"params.yaml: settings.{key}", value, SETTINGS[key])
    papers = sorted({name.partition("/")[0] for name in project.table_names()})
    for paper, methods in project.params.methods.items():
        if paper not in papers:
            raise UserError(f"params.yaml: methods: {unknown('paper', paper, papers)}")
        _check_methods(f"params.yaml: methods.{paper}", methods or {})


def _check_methods(where: str, layer: Mapping[str, Arguments | None]) -> None:
    """Names, types and ranges of method arguments, those that are null too."""
    for method, arguments in layer.items():
        with _at(where):
            PARTS.make(Call(method, {key: value for key, value in (arguments or {}).items() if value is not None}))
        known = [field.name for field in fields(PARTS.get(method))]
        for key in arguments or {}:
            if key not in known:
                raise UserError(f"{where}: {method}: {unknown('argument', key, known)}")


@contextlib.contextmanager
def _at(where: str) -> Iterator[None]:
    """Adds to a mistake the place where a person wrote it."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def _place(key: str, source: str, file: str, column: str) -> str:
    """Where a person writes the setting `key`, from where its value came."""
    if source == EDITED:
        return f"params.yaml: settings.{key}"
    return f"papers/scales.yaml: settings.{key}" if source == "scale" else f"{file}: {column}: {key}"


@cache
def _read_cached(model: type, path: Path, changed: int) -> Any:
    return check(model, read_yaml(path), str(path))


def _read(model: type, path: Path) -> Any:
    return _read_cached(model, path, path.stat().st_mtime_ns if path.exists() else 0)
