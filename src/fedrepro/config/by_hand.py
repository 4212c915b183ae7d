"""Tables that a command describes instead of a file: any method in any setting, or a part of a table with other values. Pure.

What is not given comes from a paper (`like`), or from `config.defaults`. Values of method arguments are `part.argument`.
"""

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fedrepro.choices import require_known
from fedrepro.config import defaults
from fedrepro.config.layers import SETTINGS, unknown_setting
from fedrepro.config.printed import printed_numbers
from fedrepro.config.project import Project, unknown_table
from fedrepro.config.run_differences import argument_text
from fedrepro.config.schema import Paper, Scalar, Sourced
from fedrepro.config.table import Header, Table
from fedrepro.data import partition
from fedrepro.engine import schedule
from fedrepro.errors import UserError
from fedrepro.methods.compose import compose, expand
from fedrepro.methods.parts import PARTS
from fedrepro.models.names import primary_metric
from fedrepro.registry import Call, coerce, parse, unknown
from fedrepro.typed import check

PAPER, TABLE = "by_hand", "table1"  # what a table of `run --method` is called: it has no file
Values = Mapping[str, Scalar]


@dataclass(frozen=True)
class Request:
    """What a command asks for."""

    methods: tuple[str, ...]
    given: dict[str, Scalar] = field(default_factory=dict)  # settings, and part.argument
    like: str | None = None  # paper/table, or paper/table/column, that says what is not given
    # setting, argument of the partition scheme, or part.argument -> its values
    over: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()


# --- any method in any setting ---------------------------------------------------------------------------------------------


def alone(project: Project, request: Request) -> Project:
    """The project with the table of `request`, PAPER/TABLE; of params.yaml only the seeds decide its runs."""
    paper, table = contents(project, request)
    paper_and_table = check(Paper, paper, f"{PAPER}"), check(Table, table, f"{PAPER}")
    return replace(project.unedited(), own={f"{PAPER}/{TABLE}": paper_and_table})


def contents(project: Project, request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """paper.yaml and a table as a person would write them: a row for each method and value of its arguments, a column for each
    combination of settings. UserError for what is unknown or out of range.
    """
    base = _Base.of(project, request.like)
    settings = {key: value for key, value in request.given.items() if "." not in key}
    arguments = {key: value for key, value in request.given.items() if "." in key}
    rows_over = {key: values for key, values in request.over.items() if "." in key}
    columns_over = {key: values for key, values in request.over.items() if "." not in key}
    columns = [_column(base, settings, dict(combination)) for combination in _combinations(columns_over)]
    methods = [with_values(method, arguments) for method in request.methods]
    require_used([*methods, *request.methods], [*arguments])
    require_used([*methods, *request.methods], [*rows_over], "--over")
    texts = (with_values(method, dict(combination)) for method in methods for combination in _combinations(rows_over))
    rows = [_row(text) for text in dict.fromkeys(texts)]
    metric = columns[0]["metric"]
    for column in columns:  # the table's, where they show the same
        if column["metric"] == metric:
            del column["metric"]
    table = {
        "title": ", ".join(request.methods),
        "source": "by hand",
        "metric": metric,
        "stand_in": "These runs were chosen by hand.",
        "base": {key: item.model_dump() for key, item in base.table.items()},
        "rows": _distinct(rows),
        "columns": _distinct(columns),
    }
    return base.paper_content(), table | ({"seeds": [*request.seeds]} if request.seeds else {})


@dataclass(frozen=True)
class _Base:
    """The settings where the request gives none: a paper's protocol and a table's base and column, or the defaults alone."""

    paper: Paper
    table: dict[str, Sourced]

    @classmethod
    def of(cls, project: Project, like: str | None) -> "_Base":
        """Takes it from the table or the column `like`, or from the defaults. UserError for an unknown table or column."""
        default_settings = {key: Sourced(value=value, source=defaults.SOURCE) for key, value in defaults.SETTINGS.items()}
        if like is None:
            citation = {"name": "by hand", "title": "runs chosen by hand", "authors": "fedrepro", "venue": "by hand", "url": ""}
            return cls(Paper.model_validate(citation | {"protocol": default_settings}), {})
        name, _, table_name = like.partition("/")
        table_name, _, column = table_name.partition("/")
        if f"{name}/{table_name}" not in project.table_names():
            raise UserError(f"--like {like}: {unknown_table(f'{name}/{table_name}'.strip('/'), project.table_names())}")
        table, paper = project.table(name, table_name), project.paper(name)
        settings = dict(table.base)
        if column:
            columns = {header.key: header for header in table.columns}
            require_known(f"--like {like}", "column", column, columns)
            settings |= {key: Sourced(value=value, source=table.source) for key, value in columns[column].setting.items()}
        return cls(paper.model_copy(update={"protocol": default_settings | paper.protocol}), settings)

    def paper_content(self) -> dict[str, Any]:
        """Returns what decides runs, as paper.yaml has it."""
        keys = ("name", "title", "authors", "venue", "url")
        layers = ("protocol", "datasets", "stand_ins", "methods", "methods_by_dataset", "methods_by_model")
        return self.paper.model_dump(include={*keys, *layers})

    def value(self, key: str, settings: Values) -> Scalar:
        """Returns a run's value of the setting `key`, where a command gives these `settings`."""
        if key in settings:
            return settings[key]
        dataset = str(settings.get("dataset") or self._value("dataset", {}))
        dataset_settings = self.paper.datasets.get(self.paper.stand_ins.get(dataset, dataset), {})
        return self._value(key, dataset_settings)

    def _value(self, key: str, of_dataset: Mapping[str, Sourced]) -> Scalar:
        settings = {**self.paper.protocol, **of_dataset, **self.table}
        return settings[key].value if key in settings else schedule.DEFAULTS.get(key)


def _column(base: _Base, settings: Values, over: Values) -> dict[str, Any]:
    """A column of one combination of values; schedules follow its rounds."""
    column_settings = {**settings}
    for key, value in over.items():
        if key in SETTINGS:
            column_settings[key] = value
        else:
            column_settings["partition"] = _with_argument(str(base.value("partition", column_settings)), key, value)
    column_settings = {key: coerce(f"--set {key}", value, SETTINGS[key]) for key, value in column_settings.items()}
    rounds = base.value("rounds", {"dataset": base.value("dataset", column_settings)})
    for key in (key for key in schedule.DEFAULTS if key not in column_settings and "rounds" in column_settings):
        text = schedule.scaled(str(base.value(key, column_settings)), key, int(column_settings["rounds"]), int(str(rounds)))  # type: ignore[arg-type]
        if text != base.value(key, column_settings):
            column_settings[key] = text
    model = str(base.value("model", column_settings))
    return {
        "key": _slug(over) or "own",
        "label": ", ".join(f"{key} = {argument_text(value)}" for key, value in over.items()) or "as given",
        "metric": _metric(model),
        "demo": True,
        "setting": column_settings,
    }


def _metric(model: str) -> dict[str, Any]:
    name = primary_metric(model)
    if name == "test_accuracy":
        return {"name": name, "unit": "percent", "description": "top-1 accuracy of the global model on the test set"}
    return {"name": name, "unit": "fraction", "description": "mean average precision of the global model on the test set"}


def _row(text: str) -> dict[str, Any]:
    compose(text)
    return {"key": re.sub(r"[^a-z0-9_.]+", "-", text.lower()).strip("-"), "label": text, "method": text}


def _with_argument(scheme: str, key: str, value: Scalar) -> str:
    """The partition scheme with another value. UserError for an argument that it does not have."""
    (call,) = parse(scheme)[:1]
    names = [argument.name for argument in dataclasses.fields(partition.SCHEMES.get(call.name))]
    if key not in names:
        raise UserError(f"--over {key}: {unknown_setting(key, names)}; the partition here is {call.name}")
    changed = Call(call.name, call.arguments | {key: value})
    return str(partition.SCHEMES.canonical(partition.SCHEMES.make(changed)))


def _combinations(over: Mapping[str, Sequence[Scalar]]) -> list[tuple[tuple[str, Scalar], ...]]:
    return [tuple(zip(over, values, strict=True)) for values in itertools.product(*over.values())]


def _distinct(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries with distinct keys: a repeated key gets a number."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry["key"]] = counts.get(entry["key"], 0) + 1
        if counts[entry["key"]] > 1:
            entry["key"] += f"-{counts[entry['key']]}"
    return entries


def _slug(values: Values) -> str:
    return "-".join(
        re.sub(r"[^a-z0-9_.]+", "-", f"{key}{argument_text(value)}".lower()).strip("-") for key, value in values.items()
    )


# --- a method with other arguments -----------------------------------------------------------------------------------------


def with_values(method: str, values: Values, implied: bool = True) -> str:
    """`method` with {part.argument: value}, of the parts that it names; of those that it leaves open too where `implied`.

    UserError for an unknown part or argument, and for a value out of range.
    """
    calls = expand(parse(method))
    for name, value in values.items():
        part, _, argument = name.partition(".")
        changed = PARTS.canonical(PARTS.make(Call(part, {argument: value}))).arguments[argument]
        if any(call.name == part for call in calls):
            calls = [Call(c.name, c.arguments | {argument: changed}) if c.name == part else c for c in calls]
        elif implied and _has(method, part):
            calls.append(Call(part, {argument: changed}))
    return "+".join(map(str, calls)) or method if values else method


def _has(method: str, part: str) -> bool:
    return any(method_part.name == part for method_part in compose(method).parts)


def require_used(methods: Sequence[str], names: Sequence[str], option: str = "--set") -> None:
    """UserError for a part.argument, given by `option`, of which none of the methods has the part."""
    for name in names:
        part = name.partition(".")[0]
        PARTS.get(part)
        if not any(_has(method, part) for method in methods):
            parts = sorted({method_part.name for method in methods for method_part in compose(method).parts})
            what = f"none of the methods has the part {part!r}; their parts are {', '.join(parts)}"
            raise UserError(f"{option} {name}: {what}; leave it out, or name a method that has it")


# --- a part of a table, with other values ----------------------------------------------------------------------------------


def narrowed(
    project: Project, name: str, rows: Sequence[str] | None, columns: Sequence[str] | None, arguments: Values
) -> Project:
    """The project whose table `name` (paper/table) has the chosen rows and columns alone, with these arguments of methods.

    A row may be any row of the file, also one that only a budget shows, or a method that no row has. Every column is allowed.
    An argument that is given here is not tuned. UserError for an unknown name, and for an argument that no chosen cell has.
    """
    paper_name, _, table_name = name.partition("/")
    table, paper = project.table(paper_name, table_name), project.paper(paper_name)
    row_headers = _rows(table, rows, name)
    columns_by_key = {header.key: header for header in table.columns}
    for key in columns or ():
        require_known(name, "column", key, columns_by_key)
    column_headers = [columns_by_key[key].model_copy(update={"demo": True}) for key in columns] if columns else table.columns
    if arguments:
        methods = ["+".join(filter(None, (row.method, column.method))) for row in row_headers for column in column_headers]
        require_used([method for method in methods if method], [*arguments])
        row_headers = [_edited(row, arguments, implied=True) for row in row_headers]
        column_headers = [_edited(column, arguments, implied=False) for column in column_headers]
    companions = [row for row in row_headers if row.key not in {header.key for header in table.rows}]  # no printed numbers
    column_headers = [column.model_copy(update={"budget": _with_rows(column.budget, companions)}) for column in column_headers]
    update = {
        "rows": row_headers,
        "companions": companions,
        "columns": column_headers,
        "remarks": {},
        "budget": _with_rows(table.budget, companions),
        "tune": table.tune and table.tune.without(arguments),
    }
    printed = printed_numbers(project.root / "papers" / paper_name / "published", table)
    if not any((row.key, column.key) in printed for row in row_headers for column in column_headers):
        update["published"] = None  # no chosen row has a printed number
    return replace(project, own={**project.own, name: (paper, table.model_copy(update=update))})


def _with_rows(budgets: Mapping[str, Any], companions: Sequence[Header]) -> dict[str, Any]:
    """Returns budgets that run these rows too."""
    keys = [row.key for row in companions]
    return {
        scale: budget if budget.rows is None else budget.model_copy(update={"rows": [*budget.rows, *keys]})
        for scale, budget in budgets.items()
    }


def _rows(table: Table, keys: Sequence[str] | None, name: str) -> list[Header]:
    if not keys:
        return table.rows
    rows_by_key = {row.key: row for row in (*table.rows, *table.companions)}
    return [rows_by_key[key] if key in rows_by_key else _new_row(key, [*rows_by_key], name) for key in keys]


def _new_row(method: str, keys: list[str], name: str) -> Header:
    """A new row for a method that the table lacks. UserError if no method has that name."""
    try:
        compose(method)
    except UserError as error:
        if re.fullmatch(r"[\w-]+", method):
            raise UserError(f"{name}: {unknown('row', method, keys)}; a method of your own is one too") from error
        raise UserError(f"--rows {method}: {error}") from error
    return Header.model_validate({"key": method, "label": method, "method": method})


def _edited(entry: Header, arguments: Values, implied: bool) -> Header:
    """The entry with these arguments of the parts that it names; `implied`: parts that it leaves open are added to it."""
    method = entry.method and with_values(entry.method, arguments, implied)
    label = method if entry.label == entry.method else entry.label  # a method given on the command line is its own label
    return entry.model_copy(update={"method": method, "label": label, "tune": entry.tune and entry.tune.without(arguments)})
