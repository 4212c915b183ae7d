"""From the files a person edits to the runs that a table needs. Pure: reads files, draws nothing, writes nothing."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fedrepro.choices import require_known
from fedrepro.config import labels
from fedrepro.config.candidates import candidates, merged_seeds
from fedrepro.config.figure import Figure
from fedrepro.config.layers import REPORTED, Layers, argument_sources, plain
from fedrepro.config.places import table_path
from fedrepro.config.plan import Candidate, Column, Place, Plan, Row, Run, rounds_of_both
from fedrepro.config.printed import printed_numbers
from fedrepro.config.project import Project, at, check_paper
from fedrepro.config.reading import EDITED, READINGS
from fedrepro.config.spreads import read_spreads
from fedrepro.config.table import Header, Table
from fedrepro.config.variation import varied
from fedrepro.data import partition
from fedrepro.data import proxy as proxy_sets
from fedrepro.data.labels import NO_GROUPS
from fedrepro.data.registry import Entry
from fedrepro.engine import augment, forks
from fedrepro.engine.artifacts import artifacts
from fedrepro.engine.identity import settings_hash
from fedrepro.engine.spec import RunSpec
from fedrepro.errors import UserError
from fedrepro.methods.compose import LOSES_MESSAGES, Method, compose, with_arguments
from fedrepro.models.names import MODELS, Architecture
from fedrepro.registry import parse, require


def plan(project: Project, paper_name: str, table_name: str, scale_name: str) -> Plan:
    """The plan of one table or figure at one scale: rows, columns, cells with printed numbers, and every run in full."""
    table, paper, scale = project.table(paper_name, table_name), project.paper(paper_name), project.scale(scale_name)
    check_paper(project, paper_name, paper, table_name, table)
    budget = table.budget.get(scale_name)
    printed = printed_numbers(project.root / "papers" / paper_name / "published", table)
    in_print = {row for row, _ in printed} if printed else {row.key for row in table.rows}
    columns = [column for column in table.columns if column.demo or not scale.only_demo_columns]
    rows = [(row, row.key in in_print) for row in table.rows]
    budgeted = {key for at in (table, *columns) if scale_name in at.budget for key in at.budget[scale_name].rows or ()}
    rows += [(row, False) for row in table.companions if row not in table.rows and row.key in budgeted]  # run, and shown
    seeds = tuple((budget and budget.seeds) or table.seeds or project.params.seeds)
    file = str(table_path(Path(), paper_name, table_name))
    make = partial(_run, project, paper_name, file)
    runs: dict[str, Run] = {}
    cells: list[Place] = []
    tuned_candidates: list[Candidate] = []
    columns_by_reading: dict[tuple, str] = {}  # see `_refuse_twin`
    for row, is_printed in rows:
        for column in columns:
            layers = Layers(paper, table, scale_name, scale, column, row, project.params)
            value, note = printed.get((row.key, column.key), (None, ""))
            line = (table.criteria(row, column) or {}) if is_printed and value is not None else {}
            reason = row.pending or column.pending or layers.left_out(row.key)
            cell = Place(row.key, column.key, value if is_printed else None, layers.metric, None, reason, note=note, line=line)
            cell_candidates: list[Candidate] = []
            if cell.reason is None and layers.tune:
                for candidate, *candidate_runs in candidates(layers, make, cell, seeds, file):
                    cell_candidates.append(candidate)
                    for run in candidate_runs:
                        _add(runs, run)
            elif cell.reason is None:
                run, reported = make(layers)
                _add(runs, run)
                cell = replace(cell, run_id=run.run_id, **reported)
            if not project.own:  # else equal cells run once, and the page says so
                new_places = [place for place in (cell, *cell_candidates) if place.run_id and not _edited([runs[place.run_id]])]
                _refuse_twin(columns_by_reading, new_places, file, scale_name)
            cells.append(replace(cell, tuned=bool(cell_candidates)))
            tuned_candidates += cell_candidates
    compared = scale.comparable and not (table.stand_in or budget or _edited(runs.values(), [*cells, *tuned_candidates]))
    base = plan(project, paper_name, table.variant_of, scale_name) if table.variant_of else None
    shared = forks.find_forks(runs)  # the rounds at which runs part
    cell_seeds = [(cell.run_id, seeds) for cell in cells if cell.run_id]
    trial_seeds = [(candidate.trial.run_id, candidate.trial.seeds) for candidate in tuned_candidates]
    table_plan = Plan(
        paper=paper_name,
        paper_name=paper.name,
        paper_title=f"{paper.authors}: {paper.title} ({paper.venue})",
        paper_url=paper.url,
        table=table_name,
        title=table.title,
        source=table.source,
        scale=scale_name,  # type: ignore[arg-type]
        own=not project.published,
        scale_note=budget.note if budget else scale.note,
        remarks=(*table.remarks.get(scale_name, []), *(budget.remarks if budget else [])),
        stand_in=table.stand_in,
        on_budget=budget is not None,
        printed_seeds=paper.printed_seeds,
        seeds=seeds,
        seeds_by_run=merged_seeds([*cell_seeds, *trial_seeds]),
        comparable=compared,
        spreads=read_spreads(project.root, paper_name) if compared else {},
        kind=table.kind if isinstance(table, Figure) else None,
        caption=table.caption if isinstance(table, Figure) else None,
        variant_of=table.variant_of,
        varied=None,
        rows=tuple(_row(row, is_printed) for row, is_printed in rows),
        columns=tuple(_column(column, table, [*cells, *tuned_candidates], runs, project) for column in columns),
        cells=tuple(cells),
        candidates=tuple(tuned_candidates),
        runs={run_id: replace(run, forks=shared.get(run_id, [])) for run_id, run in runs.items()},
        deviations=tuple(paper.deviations),
        disagreements=tuple(paper.disagreements),
        known_gaps=tuple(paper.known_gaps),
    )
    return replace(table_plan, varied=varied(table_plan, base)) if base else table_plan


def _column(column: Header, table: Table, cells: Sequence[Place], runs: dict[str, Run], project: Project) -> Column:
    plain_column = Column(column.key, column.full_label, column.metric or table.metric, column.group)
    return labels.at_this_scale(plain_column, [cell for cell in cells if cell.column == column.key], runs, project.registry)


def _add(runs: dict[str, Run], run: Run) -> None:
    """Cells that share a run keep its models together."""
    if known := runs.get(run.run_id):
        run = replace(run, keep=sorted({*run.keep, *known.keep}), measures=rounds_of_both(known.measures, run.measures))
    runs[run.run_id] = run


def _row(row: Header, is_printed: bool) -> Row:
    name = row.published if isinstance(row.published, str) else row.key
    return Row(row.key, row.full_label, is_printed, row.variant, name, row.metric)


def _refuse_twin(columns_by_reading: dict[tuple, str], new_places: list[Place], file: str, scale: str) -> None:
    """UserError if two columns of one row read the same run in the same way: they would print one number twice.

    `columns_by_reading`: reading -> its column; the readings of `new_places` are added. Cells that params.yaml changes are not
    included: it may make two of them the same run, and the page says so.
    """
    new_readings = {
        (place.row, place.run_id, place.metric.name, place.diagnostic, place.read): place.column for place in new_places
    }
    for reading, column in new_readings.items():
        if reading in columns_by_reading:
            raise UserError(
                f"{file}: at scale {scale} the columns {columns_by_reading[reading]} and {column} are the same run; "
                "the table's settings and papers/scales.yaml must leave what tells them apart"
            )
    columns_by_reading |= new_readings


def every_run(project: Project) -> set[str]:
    """The ids of the runs that tables show; all tables, all scales, with the papers' settings and with those of params.yaml."""
    run_ids: set[str] = set()
    for paper, _, table in (name.partition("/") for name in project.table_names()):
        for scale in project.scales:
            for table_plan in (plan(project, paper, table, scale), plan(project.as_published(scale), paper, table, scale)):
                run_ids |= {run.run_id for _, run, _ in (*table_plan.readings(), *table_plan.tried())}
    return run_ids


def _run(project: Project, paper_name: str, file: str, layers: Layers) -> tuple[Run, dict[str, Any]]:
    """(the run of one cell, what the table reports of it and why). `file`: of the table."""
    row, column = layers.row, layers.column
    settings = layers.settings(f"{file}: {row.key}, {column.key}")
    values: dict[str, Any] = {key: item.value for key, item in settings.items()}

    def where(key: str) -> str:
        return layers.place(key, settings[key].source, f"{file}: {column.key}")

    entry, network = _data_and_model(project, values, where)
    with at(f"{file}: rows: {row.key}: method"):
        arguments = layers.arguments(paper_name)
        arguments_json = json.dumps({name: plain(values) for name, values in arguments.items()})
        method = _method(layers.method, arguments_json)
        sources = argument_sources(method, layers.method, arguments, layers.table.source)
        method = layers.followed(method, sources, values["rounds"], file)
    if 1 <= values["batch_size"] < network.smallest_batch:
        raise UserError(
            f"{where('batch_size')} = {values['batch_size']}: {values['model']} has BatchNorm; set it to at least 2"
        )
    if values["normalise"] == "standard":
        values["channel_statistics"] = _statistics(entry, network.input_shape, where("normalise"))
    with at(where("partition")):
        values["partition"], needs_groups = _scheme(values["partition"])
        if needs_groups and not entry.has_groups:
            raise UserError(NO_GROUPS.format(values["partition"], entry.name))
    for key, canonical in (("augment", augment.canonical), ("proxy", proxy_sets.canonical)):
        if key in values:
            with at(f"{where(key)} = {values[key]!r}"):
                canonical(values[key])
    reported = {key: values.pop(key) for key in REPORTED}
    try:
        require(reported["average_last"] >= 1, "average_last", reported["average_last"], "must be at least 1")
        spec = _spec(
            **values, dataset_sha=entry.sha, input_shape=network.input_shape, classes=entry.classes, method=str(method)
        )
    except UserError as error:
        key = str(error).partition(" ")[0]
        raise UserError(f"{where(key) if key in settings else file}: {error}") from error
    with at(file):
        read = str(READINGS.canonical(layers.read(spec.rounds, reported["average_last"])))
        keep, diagnostic = layers.keep(spec.rounds), layers.metric.diagnostic
        measures = {diagnostic: layers.measured(spec.rounds, read)} if diagnostic else {}
    if "proxy" in method.needs and network.detects:
        raise UserError(
            f"{file}: rows: {row.key}: {row.label} learns on a proxy set of class labels, but {spec.model} detects boxes"
        )
    if "proxy" in method.needs and not spec.proxy_per_class:
        raise UserError(f"{where('proxy_per_class')} = 0: {row.label} needs a proxy set; set it to at least 1")
    if spec.cohorts == "late" and method.sends_own_changes:
        raise UserError(f"{where('cohorts')} = 'late': {LOSES_MESSAGES.format(method.client.name)}")
    run = Run(
        run_id=run_id(spec, method),
        method=spec.method,
        method_label=method.label,
        config=spec.as_dict(),
        sources={key: item.source for key, item in settings.items() if key not in REPORTED},
        argument_sources=sources,
        inputs=dict(_inputs(spec, entry.name, entry.sha)),
        keep=keep,
        measures=measures,
    )
    reported |= {f"{key}_source": settings[key].source for key in REPORTED}
    instead = layers.instead_of(settings)
    return run, reported | {"read": read, "instead_of": instead, "unstated": layers.unstated(instead)}


def _data_and_model(project: Project, values: dict[str, Any], where: Callable[[str], str]) -> tuple[Entry, Architecture]:
    """The data set and the network of a cell. UserError if one is unknown, or if the network cannot train on the data set."""
    name, model = values["dataset"], values["model"]
    require_known(where("dataset"), "data set", name, sorted(project.registry))
    require_known(where("model"), "model", model, sorted(MODELS))
    entry, network = project.registry[name], MODELS[model]

    def refuse(has: str, wants: str) -> UserError:
        return UserError(f"{where('dataset')} = {name!r}: {has}, but {model} {wants}; change either")

    if entry.has_boxes != network.detects:
        has, wants = ("boxes", "class labels") if entry.has_boxes else ("class labels", "boxes")
        raise refuse(f"has {has}", f"learns from {wants}")
    shapes = ["x".join(map(str, shape)) for shape in (entry.native_shape, network.input_shape)]
    if entry.holds != network.reads or (network.reads == "text" and entry.native_shape != network.input_shape):
        raise refuse(f"is {entry.holds} of {shapes[0]}", f"reads {network.reads} of {shapes[1]}")
    if network.reads == "images" and entry.native_shape[0] not in (1, network.input_shape[0]):
        raise refuse(f"has {entry.native_shape[0]} channels", f"reads {network.input_shape[0]}")
    return entry, network


# Many tables and scales share their methods and runs, and every plan of a project is made at once.
@cache
def _method(text: str, arguments: str) -> Method:
    """The method `text` with {part: {argument: value}}, given as JSON."""
    return compose(with_arguments(text, json.loads(arguments)))


@cache
def _scheme(text: str) -> tuple[str, bool]:
    """A partition scheme with every argument, and whether it reads the groups of samples."""
    scheme = str(partition.SCHEMES.canonical(partition.make_scheme(text)))
    return scheme, partition.needs_groups(scheme)


@cache
def _spec(**values: Any) -> RunSpec:
    return RunSpec(**values)


@cache
def _inputs(spec: RunSpec, dataset: str, sha: str) -> dict[str, str]:
    return artifacts(spec, SimpleNamespace(name=dataset, sha=sha))


def _statistics(entry: Entry, shape: tuple[int, ...], where: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation for every channel that the model sees; grey images are repeated."""
    if not entry.channel_mean:
        raise UserError(
            f"{where} = 'standard': data/registry.yaml has no channel_mean and channel_std of {entry.name}; add them"
        )
    times = shape[0] // entry.native_shape[0]
    return entry.channel_mean * times, entry.channel_std * times


def _edited(runs: Iterable[Run], cells: Sequence[Place] = ()) -> bool:
    """Whether params.yaml replaces any value of the paper: then nothing is compared with a printed number."""
    reported = any(cell.average_last_source == EDITED for cell in cells)
    return reported or any(EDITED in (run.sources | run.argument_sources).values() for run in runs)


@cache
def run_id(spec: RunSpec, method: Method) -> str:
    """A readable slug and a hash of everything that decides the result."""
    scheme = partition.make_scheme(spec.partition)
    values = "-".join(f"{value:g}" if isinstance(value, float) else _word(value) for value in vars(scheme).values())
    slug = "-".join(filter(None, [spec.dataset, spec.model, parse(spec.partition)[0].name, values, method.label]))
    return f"{slug}-{settings_hash(spec.as_dict())}"


def _word(value: Any) -> str:
    """The value as part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "", str(value))
