"""fedrepro list | describe: what can be named in a table, in params.yaml and on the command line."""

import ast
import dataclasses
import difflib
import importlib.util
import inspect
import shutil
import textwrap
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry
    from fedrepro.registry import Call, Registry

LATER_WINS = (
    "Later wins: papers/<paper>/paper.yaml (protocol, datasets); a table's base, columns and rows; papers/scales.yaml; a "
    "table's budget; params.yaml (settings); --set. Arguments of a method are set as part.argument: fedprox.mu=0.1."
)
_TYPES = {int: "whole number", float: "number", bool: "true or false", str: "word"}


def list_names(options: Namespace) -> None:
    """Prints a line or two for each of a kind."""
    print(*KINDS[options.kind](), sep="\n")


def describe(options: Namespace) -> None:
    """Prints a method's canonical name, then its parts with source and arguments, or the description of another name."""
    print(*_description(options.name), sep="\n")


def _description(name: str) -> Iterator[str]:
    from fedrepro.data.partition import SCHEMES
    from fedrepro.diagnostics.diagnostic import DIAGNOSTICS
    from fedrepro.methods.parts import PARTS
    from fedrepro.methods.presets import PRESETS
    from fedrepro.models.names import MODELS
    from fedrepro.registry import parse, unknown

    datasets = _datasets()
    if name in datasets:
        return _dataset(datasets[name])
    if "/" in name and "(" not in name:
        return _table(name)
    calls = parse(name)
    first, has_arguments = calls[0], bool(calls[0].arguments or calls[0].positional)
    kinds: dict[str, tuple[list[str], Callable[[], Iterator[str]]]] = {  # kind -> its names, what describes one of them
        "method": (sorted([*PARTS.names(), *PRESETS]), lambda: _method(name)),
        "model": (sorted(MODELS), lambda: _model(first.name)),
        "data set": (sorted(datasets), lambda: _dataset(datasets[first.name])),
    }
    for registry in (SCHEMES, DIAGNOSTICS):
        kinds[registry.noun] = registry.names(), partial(_scheme_or_diagnostic, first, registry)
    of_calls = [next((kind for kind, (names, _) in kinds.items() if call.name in names), "method") for call in calls]
    for call, kind in zip(calls, of_calls, strict=True):
        takes_arguments = kind in ("method", SCHEMES.noun, DIAGNOSTICS.noun)
        if kind != "method" and (len(calls) > 1 or (has_arguments and not takes_arguments)):
            raise UserError(f"describe {name}: {call.name} is a {kind}; describe {call.name} alone")
    names, describe_it = kinds[of_calls[0]]
    missing = next((call.name for call in calls if call.name not in names), None)
    if missing is not None:
        near = difflib.get_close_matches(missing, [name for names, _ in kinds.values() for name in names], n=1)
        kind = next((kind for kind, (names, _) in kinds.items() if near and near[0] in names), "method")
        raise UserError(unknown(kind, missing, kinds[kind][0]))  # of the kind that has the nearest name
    return describe_it()


# --- lists ---------------------------------------------------------------------------------------------------------------


def _methods() -> Iterator[str]:
    """Lists parts slot by slot, in the order of a round, then recipes."""
    from fedrepro.methods.parts import PARTS, REPEATABLE, SLOTS
    from fedrepro.methods.presets import DEFAULTS, PRESETS

    width = max(map(len, [*PARTS.names(), *PRESETS])) + 2
    for slot in SLOTS:
        names = [name for name in PARTS.names() if PARTS.get(name).slot == slot]
        yield f"{slot}{' (may repeat)' if slot in REPEATABLE else ''}"
        for name in names:
            default = " (default)" if name in DEFAULTS.values() else ""
            about = _sentence(inspect.getdoc(inspect.getmodule(PARTS.get(name)))) + default
            yield from _entry(f"  {name:<{width}}", about)
        if not names:
            yield "  none yet"
    yield "recipes"
    for name, text in PRESETS.items():
        yield f"  {name:<{width}}{text or 'the default of every slot'}"


def _models() -> Iterator[str]:
    """Lists input, what is special, and the first sentence of the architecture's source; needs no torch."""
    from fedrepro.models.names import MODELS

    width = max(map(len, MODELS)) + 2
    for name, network in MODELS.items():
        shape = "x".join(map(str, network.input_shape))
        options = ", ".join(f"{key}={value}" for key, value in network.options.items())
        special = {"BatchNorm": network.smallest_batch > 1, "dropout": network.dropout, "boxes": network.detects}
        words = [f"{network.reads} {shape}", *(word for word, holds in special.items() if holds), *filter(None, [options])]
        yield from _entry(f"{name:<{width}}", "; ".join(words), _sentence(_module_doc(f"fedrepro.models.{network.module}")))


def _partitions() -> Iterator[str]:
    """Lists schemes with their arguments, and the first sentence of each."""
    from fedrepro.data.partition import SCHEMES

    for name in SCHEMES.names():
        cls = SCHEMES.get(name)
        arguments = ", ".join(
            field.name if field.default is dataclasses.MISSING else f"{field.name}={field.default}"
            for field in dataclasses.fields(cls)
        )
        yield f"{name}({arguments})" if arguments else name
        yield from _entry("  ", _sentence(inspect.getdoc(inspect.getmodule(cls))))


def _list_datasets() -> Iterator[str]:
    """Lists each data set's classes, shape, size and title, and whether it has been prepared here."""
    from fedrepro.data.arrays import ARRAYS

    datasets = _datasets()
    width = max(map(len, datasets)) + 2
    for name, entry in datasets.items():
        shape = "x".join(map(str, entry.native_shape))
        size = [f"{entry.images[0]:,} + {entry.images[1]:,}"] if entry.images else []
        groups = ["groups"] if entry.has_groups else []
        prepared = ["prepared"] if (ARRAYS / name).is_dir() else []
        what = "boxes" if entry.has_boxes else f"{entry.classes} classes"
        about = "; ".join([f"{entry.holds} {shape}", what, *size, *groups, *prepared])
        yield from _entry(f"{name:<{width}}", about, entry.title)


def _settings() -> Iterator[str]:
    """Lists each setting's type, meaning and default, and the papers whose protocol gives it."""
    from fedrepro.config import defaults
    from fedrepro.config.layers import SETTINGS
    from fedrepro.config.run_differences import argument_text
    from fedrepro.engine.spec import RunSpec
    from fedrepro.files import read_yaml

    protocols = {path.parent.name: read_yaml(path).get("protocol") or {} for path in sorted(Path().glob("papers/*/paper.yaml"))}
    values = {field.name: field.default for field in dataclasses.fields(RunSpec)} | defaults.SETTINGS
    width = max(map(len, SETTINGS)) + 2
    for name, kind in SETTINGS.items():
        given = {paper: protocol[name]["value"] for paper, protocol in protocols.items() if name in protocol}
        paper_values = [f"{paper} {argument_text(value)}" for paper, value in given.items()]
        where = f"; papers: {', '.join(paper_values)}" if paper_values else ""
        about = f"{_TYPES.get(kind, 'value')}; {defaults.MEANINGS[name]}", f"default {argument_text(values[name])}{where}"
        yield from _entry(f"{name:<{width}}", *about)
    yield ""
    yield from _entry("", LATER_WINS)


def _papers() -> Iterator[str]:
    """Lists what each paper is, how many tables and figures it has here, and the page that shows all of them."""
    from fedrepro.config.places import is_figure, report_folder
    from fedrepro.config.project import load_project
    from fedrepro.console import some

    project = load_project()
    width = max(map(len, project.papers_with_tables)) + 2
    for name in project.papers_with_tables:
        paper, names = project.paper(name), project.tables_of(name)
        figures = sum(map(is_figure, names))
        page = f"{some(len(names) - figures, 'table')}, {some(figures, 'figure')}; {report_folder(name, 'full')}/index.html"
        yield from _entry(f"{name:<{width}}", f"{paper.authors}: {paper.title} ({paper.venue})", page)


def _tables() -> Iterator[str]:
    """Lists the tables and figures of each paper, with their titles."""
    from fedrepro.config.places import is_figure
    from fedrepro.config.project import load_project

    project = load_project()
    names = project.table_names()
    width = max(map(len, names)) + 2
    for name in sorted(names, key=lambda name: (name.partition("/")[0], is_figure(name))):
        yield from _entry(f"{name:<{width}}", project.table(*name.split("/")).title)


def _diagnostics() -> Iterator[str]:
    """Lists each call with its arguments' defaults, its metrics, and the first sentence."""
    from fedrepro.diagnostics.diagnostic import DIAGNOSTICS

    for name in DIAGNOSTICS.names():
        cls = DIAGNOSTICS.get(name)
        yield str(DIAGNOSTICS.canonical(cls()))
        yield from _entry("  ", f"measures {', '.join(cls.metrics)}", _sentence(inspect.getdoc(inspect.getmodule(cls))))


KINDS: dict[str, Callable[[], Iterator[str]]] = {
    "papers": _papers,
    "tables": _tables,
    "methods": _methods,
    "models": _models,
    "partitions": _partitions,
    "datasets": _list_datasets,
    "settings": _settings,
    "diagnostics": _diagnostics,
}


# --- one of them ---------------------------------------------------------------------------------------------------------


def _method(text: str) -> Iterator[str]:
    from fedrepro.config.run_differences import argument_text
    from fedrepro.methods.compose import compose

    method = compose(text)
    yield str(method)
    for part in method.parts:
        yield f"\n{part.name} ({part.slot})"
        for doc in (inspect.getdoc(inspect.getmodule(type(part))), inspect.getdoc(type(part))):
            yield textwrap.indent(doc or "", "  ")
        for field in dataclasses.fields(type(part)):  # pyright: ignore[reportArgumentType]
            yield f"  {field.name} = {argument_text(getattr(part, field.name))} (default {argument_text(field.default)})"
        if part.needs:
            yield f"  needs: {', '.join(sorted(part.needs))}"


def _table(name: str) -> Iterator[str]:
    """Lists what `--rows` and `--columns` take. UserError for an unknown table."""
    from fedrepro.config.grid import plan
    from fedrepro.config.project import load_project

    project = load_project().as_published("full")
    paper, _, table = name.partition("/")
    table_plan = plan(project, paper, table, "full")
    yield f"{name}: {table_plan.source}, {table_plan.title}"
    yield f"  made by: {table_plan.command}"
    rows, columns = {row.key: row.label for row in table_plan.rows}, {column.key: column.title for column in table_plan.columns}
    for axis, labels in (("rows", rows), ("columns", columns)):
        yield f"  {axis}:"
        width = max(map(len, labels)) + 2
        yield from (f"    {key:<{width}}{label}" for key, label in labels.items())


def _model(name: str) -> Iterator[str]:
    from fedrepro.models import build
    from fedrepro.models.names import MODELS

    network = MODELS[name]
    yield f"{name} (model)"
    yield textwrap.indent(_module_doc(f"fedrepro.models.{network.module}") or "", "  ")
    yield f"  reads {network.reads} {'x'.join(map(str, network.input_shape))}; runs are judged by {network.metric}"
    for key, value in network.options.items():
        yield f"  {key} = {value}"
    classes = 1 if network.detects else 10
    yield f"  {build(name, network.input_shape, classes).parameters:,} parameters at {classes} class{'es' * (classes > 1)}"
    if not network.stackable:
        yield "  clients train one by one"


def _scheme_or_diagnostic(call: "Call", registry: "Registry") -> Iterator[str]:
    """Describes a partition scheme or a diagnostic: both are dataclasses whose fields are the arguments."""
    if call.arguments or call.positional:
        registry.make(call)
    cls = registry.get(call.name)
    yield f"{cls.name} ({registry.noun})"
    for doc in filter(None, (inspect.getdoc(inspect.getmodule(cls)), inspect.getdoc(cls))):
        yield textwrap.indent(doc, "  ")
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING
        yield f"  {field.name}: {_TYPES.get(field.type, 'value')}" + ("" if required else f" (default {field.default})")


def _dataset(entry: "Entry") -> Iterator[str]:
    yield f"{entry.name} (data set)"
    yield f"  {entry.title}"
    shape = "x".join(map(str, entry.native_shape))
    size = f"; {entry.images[0]:,} to train on, {entry.images[1]:,} to test on" if entry.images else ""
    yield f"  {entry.holds} {shape}{size}"
    names = f": {', '.join(entry.class_names)}" if 0 < len(entry.class_names) <= 20 else ""
    yield f"  {entry.classes} class{'es' * (entry.classes > 1)}{names}"
    yield f"  licence: {entry.licence}"
    yield f"  homepage: {entry.homepage}"
    if entry.has_groups:
        yield "  its samples have groups, for the scheme by_group"
    elsewhere = "from a mirror (FEDREPRO_MIRROR)" if entry.files else "made here"
    yield f"  fetched from: {', '.join(entry.urls)}" if entry.urls else f"  {elsewhere}"


# --- where it is read ----------------------------------------------------------------------------------------------------


def _datasets() -> "dict[str, Entry]":
    """Returns the data sets of this project; outside of a project there are none."""
    from fedrepro.data.registry import REGISTRY, load_registry

    return load_registry(REGISTRY) if REGISTRY.is_file() else {}


def _module_doc(name: str) -> str | None:
    """Returns a module's docstring, read from its source: nothing is imported."""
    package = importlib.util.find_spec(name.rpartition(".")[0])
    folder = Path((package and package.origin) or "").parent
    return ast.get_docstring(ast.parse((folder / f"{name.rpartition('.')[2]}.py").read_text()))


def _sentence(text: str | None) -> str:
    """Returns the first paragraph, without a clause that leads to what follows it."""
    first = " ".join((text or "").split("\n\n")[0].split())
    return f"{first.rpartition(';')[0] or first[:-1]}." if first.endswith(":") else first


def _entry(lead: str, *texts: str) -> Iterator[str]:
    """Yields texts beside `lead`, each from a new line, wrapped to the terminal; what has no space, as a URL, stays whole."""
    columns, indent = shutil.get_terminal_size((120, 24)).columns, " " * len(lead)
    for place, text in enumerate(texts):
        begin = indent if place else lead
        options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        yield from textwrap.wrap(text, columns, initial_indent=begin, subsequent_indent=indent, **options)
