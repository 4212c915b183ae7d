"""Tables that a command asks for, and no file: any method in any setting, and a part of a table with other values. Pure.

What is not given comes from a paper (`like`), or from `config.defaults`. Values of method arguments are `part.argument`.
"""

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fedrepro.choices import require_known, unknown_key
from fedrepro.config import defaults
from fedrepro.config.layers import SETTINGS
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


def alone(project: Project, wanted: Request) -> Project:
    """The project with the table of `wanted`, PAPER/TABLE; nothing of params.yaml decides its runs but the seeds."""
    paper, table = contents(project, wanted)
    made = check(Paper, paper, f"{PAPER}"), check(Table, table, f"{PAPER}")
    return replace(project.unedited(), own={f"{PAPER}/{TABLE}": made})


def contents(project: Project, wanted: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """paper.yaml and a table as a person would write them: a row for each method and value of its arguments, a column for each
    combination of settings. UserError for what is unknown or out of range.
    """
    base = _Base.of(project, wanted.like)
    settings = {key: value for key, value in wanted.given.items() if "." not in key}
    arguments = {key: value for key, value in wanted.given.items() if "." in key}
    rows_over = {key: values for key, values in wanted.over.items() if "." in key}
    columns_over = {key: values for key, values in wanted.over.items() if "." not in key}
    columns = [_column(base, settings, dict(one)) for one in _combinations(columns_over)]
    methods = [with_values(method, arguments) for method in wanted.methods]
    require_used([*methods, *wanted.methods], [*arguments, *rows_over])
    texts = (with_values(method, dict(one)) for method in methods for one in _combinations(rows_over))
    rows = [_row(text) for text in dict.fromkeys(texts)]
    metric = columns[0]["metric"]
    for column in columns:  # the table's, where they show the same
        if column["metric"] == metric:
            del column["metric"]
    table = {
        "title": ", ".join(wanted.methods),
        "source": "by hand",
        "metric": metric,
        "stand_in": "These runs were chosen by hand.",
        "base": {key: item.model_dump() for key, item in base.table.items()},
        "rows": _distinct(rows),
        "columns": _distinct(columns),
    }
    return base.paper_content(), table | ({"seeds": [*wanted.seeds]} if wanted.seeds else {})


@dataclass(frozen=True)
class _Base:
    """What holds where nothing is given: a paper's protocol and a table's base and column, or the defaults alone."""

    paper: Paper
    table: dict[str, Sourced]

    @classmethod
    def of(cls, project: Project, like: str | None) -> "_Base":
        """UserError for a table or a column that is not there."""
        own = {key: Sourced(value=value, source=defaults.SOURCE) for key, value in defaults.SETTINGS.items()}
        if like is None:
            nothing = {"name": "by hand", "title": "runs chosen by hand", "authors": "fedrepro", "venue": "by hand", "url": ""}
            return cls(Paper.model_validate(nothing | {"protocol": own}), {})
        name, _, table_name = like.partition("/")
        table_name, _, column = table_name.partition("/")
        if f"{name}/{table_name}" not in project.table_names():
            raise UserError(f"--like {like}: {unknown_table(f'{name}/{table_name}'.strip('/'), project.table_names())}")
        table, paper = project.table(name, table_name), project.paper(name)
        found = dict(table.base)
        if column:
            columns = {one.key: one for one in table.columns}
            require_known(f"--like {like}", "column", column, columns)
            found |= {key: Sourced(value=value, source=table.source) for key, value in columns[column].setting.items()}
        return cls(paper.model_copy(update={"protocol": own | paper.protocol}), found)

    def paper_content(self) -> dict[str, Any]:
        """As paper.yaml has it: what decides runs."""
        keys = ("name", "title", "authors", "venue", "url")
        layers = ("protocol", "datasets", "stand_ins", "methods", "methods_by_dataset", "methods_by_model")
        return self.paper.model_dump(include={*keys, *layers})

    def value(self, key: str, given: Values) -> Scalar:
        """What a run has, where so much is given."""
        if key in given:
            return given[key]
        dataset = str(given.get("dataset") or self._value("dataset", {}))
        own = self.paper.datasets.get(self.paper.stand_ins.get(dataset, dataset), {})
        return self._value(key, own)

    def _value(self, key: str, of_dataset: Mapping[str, Sourced]) -> Scalar:
        found = {**self.paper.protocol, **of_dataset, **self.table}
        return found[key].value if key in found else schedule.DEFAULTS.get(key)


def _column(base: _Base, settings: Values, over: Values) -> dict[str, Any]:
    """A column of one combination of values; schedules follow its rounds."""
    given = {**settings}
    for key, value in over.items():
        given |= (
            {key: value} if key in SETTINGS else {"partition": _with_argument(str(base.value("partition", given)), key, value)}
        )
    given = {key: coerce(f"--set {key}", value, SETTINGS[key]) for key, value in given.items()}
    rounds = base.value("rounds", {"dataset": base.value("dataset", given)})
    for key in (key for key in schedule.DEFAULTS if key not in given and "rounds" in given):
        text = schedule.scaled(str(base.value(key, given)), key, int(given["rounds"]), int(str(rounds)))  # type: ignore[arg-type]
        if text != base.value(key, given):
            given[key] = text
    model = str(base.value("model", given))
    return {
        "key": _slug(over) or "own",
        "label": ", ".join(f"{key} = {argument_text(value)}" for key, value in over.items()) or "as given",
        "metric": _metric(model),
        "demo": True,
        "setting": given,
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
    known = [one.name for one in dataclasses.fields(partition.SCHEMES.get(call.name))]
    if key not in known:
        near = unknown_key("setting, or argument of the partition scheme", key, [*SETTINGS, *known])
        raise UserError(f"--over {key}: {near}; of a method it is part.argument")
    changed = Call(call.name, call.arguments | {key: value})
    return str(partition.SCHEMES.canonical(partition.SCHEMES.make(changed)))


def _combinations(over: Mapping[str, Sequence[Scalar]]) -> list[tuple[tuple[str, Scalar], ...]]:
    return [tuple(zip(over, values, strict=True)) for values in itertools.product(*over.values())]


def _distinct(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries whose keys differ: a number is added where two would be the same."""
    seen: dict[str, int] = {}
    for entry in entries:
        seen[entry["key"]] = seen.get(entry["key"], 0) + 1
        if seen[entry["key"]] > 1:
            entry["key"] += f"-{seen[entry['key']]}"
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
    return any(one.name == part for one in compose(method).parts)


def require_used(methods: Sequence[str], names: Sequence[str]) -> None:
    """UserError for a part.argument of which none of the methods has the part."""
    for name in names:
        part = name.partition(".")[0]
        PARTS.get(part)
        if not any(_has(method, part) for method in methods):
            parts = sorted({one.name for method in methods for one in compose(method).parts})
            raise UserError(f"{name}: none of the methods has the part {part!r}; they have {', '.join(parts)}")


# --- a part of a table, with other values ----------------------------------------------------------------------------------


def narrowed(
    project: Project, name: str, rows: Sequence[str] | None, columns: Sequence[str] | None, arguments: Values
) -> Project:
    """The project whose table `name` (paper/table) has the chosen rows and columns alone, with these arguments of methods.

    A row may be any row of the file, also one that only a budget shows, or a method of one's own; a column any column.
    UserError for an unknown name, and for an argument that none of the chosen cells has.
    """
    paper_name, _, table_name = name.partition("/")
    table, paper = project.table(paper_name, table_name), project.paper(paper_name)
    chosen = _rows(table, rows, name)
    known = {one.key: one for one in table.columns}
    for key in columns or ():
        require_known(name, "column", key, known)
    across = [known[key].model_copy(update={"demo": True}) for key in columns] if columns else table.columns
    if arguments:
        methods = ["+".join(filter(None, (row.method, column.method))) for row in chosen for column in across]
        require_used([one for one in methods if one], [*arguments])
        chosen = [_edited(row, arguments, implied=True) for row in chosen]
        across = [_edited(column, arguments, implied=False) for column in across]
    more = [row for row in chosen if row.key not in {one.key for one in table.rows}]  # which print nothing
    across = [column.model_copy(update={"budget": _with_rows(column.budget, more)}) for column in across]
    update = {"rows": chosen, "companions": more, "columns": across, "remarks": {}, "budget": _with_rows(table.budget, more)}
    printed = printed_numbers(project.root / "papers" / paper_name / "published", table)
    if not any((row.key, column.key) in printed for row in chosen for column in across):
        update["published"] = None  # rows of ours alone: none is missing there
    return replace(project, own={**project.own, name: (paper, table.model_copy(update=update))})


def _with_rows(budgets: Mapping[str, Any], more: Sequence[Header]) -> dict[str, Any]:
    """Budgets that run these rows too."""

    def rows(budget: Any) -> list[str] | None:
        return budget.rows if budget.rows is None else [*budget.rows, *(row.key for row in more)]

    return {scale: budget.model_copy(update={"rows": rows(budget)}) for scale, budget in budgets.items()}


def _rows(table: Table, wanted: Sequence[str] | None, name: str) -> list[Header]:
    if not wanted:
        return table.rows
    known = {row.key: row for row in (*table.rows, *table.companions)}
    return [known[key] if key in known else _own_row(key, [*known], name) for key in wanted]


def _own_row(method: str, known: list[str], name: str) -> Header:
    """A new row for a method that the table lacks. UserError if no method has that name."""
    try:
        compose(method)
    except UserError as error:
        if re.fullmatch(r"[\w-]+", method):
            raise UserError(f"{name}: {unknown('row', method, known)}; a method of your own is one too") from error
        raise UserError(f"--rows {method}: {error}") from error
    return Header.model_validate({"key": method, "label": method, "method": method})


def _edited(entry: Header, arguments: Values, implied: bool) -> Header:
    """With these arguments of the parts that it names; `implied`: what it leaves open is added to it."""
    method = entry.method and with_values(entry.method, arguments, implied)
    label = method if entry.label == entry.method else entry.label  # of a method of one's own
    return entry.model_copy(update={"method": method, "label": label})
