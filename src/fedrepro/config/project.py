"""The files of a project: read, checked against each other, and handed out by name. Draws nothing, writes nothing."""

import contextlib
import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from fedrepro.choices import require_known
from fedrepro.config import figure
from fedrepro.config.layers import SETTINGS, plain, require_setting
from fedrepro.config.places import FIGURES, TABLE_NAME, TABLES, is_figure, natural, paper_folder, paper_of, table_path
from fedrepro.config.schema import Arguments, Paper, Params, Scale, Times
from fedrepro.config.table import Table
from fedrepro.data.registry import Entry, load_registry
from fedrepro.errors import UserError
from fedrepro.files import read_yaml
from fedrepro.methods.parts import PARTS
from fedrepro.models.names import MODELS
from fedrepro.registry import Call, coerce, require
from fedrepro.typed import check

# What a variant takes from its table unless it has its own.
_VARIED = ("published", "metric", "base", "sources", "keep", "columns")


@dataclass(frozen=True)
class Project:
    """Everything read from the root folder that decides a plan."""

    root: Path
    params: Params
    scales: dict[str, Scale]
    registry: dict[str, Entry]
    published: bool = False  # with the papers' own settings, whatever params.yaml says
    own: Mapping[str, tuple[Paper, Table]] = field(default_factory=dict)  # paper/table -> what a command uses instead

    def paper(self, name: str) -> Paper:
        """papers/<name>/paper.yaml."""
        for place, (paper, _) in self.own.items():
            if place.partition("/")[0] == name:
                return paper
        return _read(Paper, paper_folder(self.root, name) / "paper.yaml")

    def table(self, paper: str, name: str) -> Table:
        """papers/<paper>/tables/<name>.yaml; papers/<paper>/figures/<name>.yaml, which is a `Figure`."""
        if f"{paper}/{name}" in self.own:
            return self.own[f"{paper}/{name}"][1]
        path = table_path(self.root, paper, name)
        if not path.exists():
            raise UserError(unknown_table(f"{paper}/{name}" if name else paper, self.table_names()))
        if not TABLE_NAME.fullmatch(name):
            raise UserError(f"{path}: rename it to table or figure and a number, table30.yaml or table3-mine.yaml")
        table = _read(figure.Figure, path, _with_table) if is_figure(name) else _read(Table, path, _with_columns)
        budgets = {*table.budget, *(name for column in table.columns for name in column.budget)}
        for key, scale_names in (("budget", budgets), ("remarks", {*table.remarks})):
            for scale in scale_names:
                require_known(f"{path}: {key}", "scale", scale, sorted(self.scales))
        return table

    def table_names(self) -> list[str]:
        """Every table and every figure there is a file for, as paper/table; table2 before table10."""
        folders = (f"{home}/*/{folder}/*.yaml" for home in ("papers", "sweeps") for folder in (TABLES, FIGURES))
        names = (f"{paper_of(path)}/{path.stem}" for pattern in folders for path in self.root.glob(pattern))
        return sorted(names, key=natural)

    def tables_of(self, paper: str) -> list[str]:
        """The tables and the figures of a paper that there is a file for."""
        return [name.partition("/")[2] for name in self.table_names() if name.startswith(f"{paper}/")]

    @property
    def papers_with_tables(self) -> list[str]:
        """The papers that have tables or figures, in the order of their names."""
        return list(dict.fromkeys(name.partition("/")[0] for name in self.table_names()))

    def scale(self, name: str) -> Scale:
        """The scale called `name`."""
        require_known("params.yaml: scale", "scale", name, sorted(self.scales))
        return self.scales[name]

    def unedited(self) -> "Project":
        """The project without the settings and the arguments of params.yaml."""
        return replace(self, params=self.params.model_copy(update={"settings": {}, "methods": {}}))

    def as_published(self, scale: str) -> "Project":
        """The project of reports/<scale>: the papers' own settings, and the scale's published seeds if it has some."""
        seeds = self.scale(scale).published_seeds
        params = {"scale": scale} | ({"seeds": seeds} if seeds else {})
        return replace(self, params=Params.model_validate(params), published=True)


def unknown_table(name: str, names: list[str]) -> str:
    """What is wrong with a name that is no paper/table: its paper is missing, it is a paper, or it is misspelt."""
    same_named = [table_name for table_name in names if table_name.partition("/")[2] == name]
    paper_tables = [table_name for table_name in names if table_name.partition("/")[0] == name.partition("/")[0]]
    if same_named:
        hint = f"write {' or '.join(same_named)};"
    elif name in {table_name.partition("/")[0] for table_name in paper_tables}:
        first = next((table_name for table_name in paper_tables if not is_figure(table_name)), paper_tables[0])
        hint = f"that is a paper; write {first}, or another of its tables and figures;"
    else:
        near = difflib.get_close_matches(name, paper_tables or names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "no paper has it;"
    return f"unknown table {name!r}; {hint} `fedrepro list tables` names all"


def read_params(root: Path) -> Any:
    """The content of params.yaml, unchecked. UserError when it is missing, empty or not YAML."""
    content = read_yaml(root / "params.yaml", missing="give this command in the project's root folder")
    if not content:
        raise UserError("params.yaml: is empty; `git checkout params.yaml` puts it back")
    return content


def load_project(root: Path = Path(), params: dict[str, Any] | None = None) -> Project:
    """Reads and checks everything; `params` replaces the content of params.yaml (Snakemake merges --config into it)."""
    root = Path(root)
    content = read_params(root) if params is None else params
    where = root / "papers" / "scales.yaml"
    scales = {name: check(Scale, value, f"{where}: {name}") for name, value in read_yaml(where).items()}
    for name, scale in scales.items():
        _check_methods(f"{where}: {name}: methods", scale.methods)
        _check_settings(f"{where}: {name}: settings", scale.settings)
    registry = load_registry(root / "data" / "registry.yaml")
    project = Project(root, check(Params, content, "params.yaml"), scales, registry)
    project.scale(project.params.scale)
    _check_settings("params.yaml: settings", project.params.settings)
    for paper, methods in project.params.methods.items():
        require_known("params.yaml: methods", "paper", paper, project.papers_with_tables)
        _check_methods(f"params.yaml: methods.{paper}", methods or {})
    return project


def check_paper(project: Project, paper_name: str, paper: Paper, table_name: str, table: Table) -> None:
    """What the schema cannot see in a paper and its table: arguments of methods, and which data sets stand in for which."""
    file, datasets = f"papers/{paper_name}/paper.yaml", sorted(project.registry)
    for key, by_dataset in (("datasets", paper.datasets), ("methods_by_dataset", paper.methods_by_dataset)):
        for name in by_dataset:
            require_known(f"{file}: {key}", "data set", name, datasets)
    for name, layer in {"protocol": paper.protocol, **{f"datasets: {n}": layer for n, layer in paper.datasets.items()}}.items():
        _check_settings(f"{file}: {name}", plain(layer))
    for name in paper.methods_by_model:
        require_known(f"{file}: methods_by_model", "model", name, sorted(MODELS))
    for layer in (paper.methods, *paper.methods_by_dataset.values(), *paper.methods_by_model.values()):
        _check_methods(f"{file}: methods", {m: plain(arguments) for m, arguments in layer.items()})
    for name in (name for pair in paper.stand_ins.items() for name in pair):
        require_known(f"{file}: stand_ins", "data set", name, datasets)
    file = str(table_path(Path(), paper_name, table_name))
    _check_settings(f"{file}: base", plain(table.base))
    for header in (*table.rows, *table.companions, *table.columns):
        _check_settings(f"{file}: {header.key}", header.setting, ": ")
    for place, budgets in ((file, table.budget), *((f"{file}: {column.key}", column.budget) for column in table.columns)):
        for scale_name, budget in budgets.items():
            _check_settings(f"{place}: budget.{scale_name}.settings", budget.settings)
    for column in table.columns if table.stand_in is None else ():
        name = str(column.setting.get("dataset"))
        if name in paper.stand_ins and project.registry[name].same_as != paper.stand_ins[name]:
            raise UserError(
                f"{file}: {column.key}: dataset = {column.setting['dataset']!r} "
                "stands in for another; say so in the table's key stand_in"
            )


def _check_settings(where: str, settings: Mapping[str, Any], joint: str = ".") -> None:
    """Names and types of settings, whose place is `where`, `joint` and their name. A share of the paper's value has that
    value's type."""
    for key, value in settings.items():
        require_setting(where, key)
        if not isinstance(value, Times):
            coerce(f"{where}{joint}{key}", value, SETTINGS[key])
        if key in ("rounds", "average_last") and not isinstance(value, Times):  # a scale may hide the paper's value
            require(value >= 1, f"{where}{joint}{key}", value, "must be at least 1")


def _check_methods(where: str, layer: Mapping[str, Arguments | None]) -> None:
    """Names, types and ranges of method arguments, those that are null too."""
    for method, arguments in layer.items():
        with at(where):
            PARTS.make(Call(method, {key: value for key, value in (arguments or {}).items() if value is not None}))
        names = [argument.name for argument in fields(PARTS.get(method))]
        for key in arguments or {}:
            require_known(f"{where}: {method}", "argument", key, names)


@contextlib.contextmanager
def at(where: str) -> Iterator[None]:
    """Adds to a mistake the place where a person wrote it."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def _with_columns(path: Path) -> Any:
    """A table's content; what a variant leaves out is taken from the table that it varies."""
    content = read_yaml(path)
    base_name = content.get("variant_of") if isinstance(content, dict) else None
    if base_name is None:
        return content
    base_path = _table_named(f"{path}: variant_of", base_name, path.parent)
    base = read_yaml(base_path)
    if isinstance(base, dict) and base.get("variant_of") is not None:
        raise UserError(f"{path}: variant_of: {base_name} is a variant itself; name a table that varies no other")
    _read(Table, base_path, _with_columns)  # a mistake in it is the table's
    inherited = {key: value for key, value in base.items() if key in _VARIED}
    if "columns" in content:
        inherited.pop("sources", None)
    return inherited | content


def _with_table(path: Path) -> Any:
    """A figure's content; what it leaves out is taken from the table that it is `of`."""
    content = read_yaml(path)
    table_name = content.get("of") if isinstance(content, dict) else None
    if table_name is None:
        return content
    table = _table_named(f"{path}: of", table_name, path.parent.parent / TABLES)
    _read(Table, table, _with_columns)  # a mistake in it is the table's
    with at(str(path)):
        return figure.taken(content, _with_columns(table))


def _table_named(where: str, name: object, folder: Path) -> Path:
    """The file in `folder` of the table `name`. UserError for a name that no file there has."""
    paths = {path.stem: path for path in folder.glob("*.yaml")}
    require_known(where, "table", name, sorted(paths))
    return paths[str(name)]


@cache
def _read_cached(model: type, path: Path, changed: tuple[int, ...], read: Callable[[Path], Any]) -> Any:
    return check(model, read(path), str(path))


def _read(model: type, path: Path, read: Callable[[Path], Any] = read_yaml) -> Any:
    """The file at `path` as `model`; read again when a file of its folder, or a table, has changed."""
    folders = {path.parent, path.parent.with_name(TABLES)}
    changed = tuple(sorted(p.stat().st_mtime_ns for folder in folders for p in folder.glob("*.yaml")))
    return _read_cached(model, path, changed, read)
