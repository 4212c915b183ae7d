"""Where a run belongs: the cell of a table that it is, or comes closest to, and what was changed of that."""

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fedrepro.config.grid import plan
from fedrepro.config.plan import Place, Plan
from fedrepro.config.project import Project
from fedrepro.config.reading import Last, Reading
from fedrepro.errors import UserError
from fedrepro.models.names import primary_metric
from fedrepro.registry import named_arguments, parse
from fedrepro.units import unit

# A setting that follows from another one; it is no change by itself.
_FOLLOWS = {"dataset_sha": "dataset", "classes": "dataset", "channel_statistics": "dataset", "input_shape": "model"}


Where = tuple[str, str, str, str, str]  # paper/table, scale, row, column; what a candidate of a tuned cell tries


@dataclass(frozen=True)
class Shown:
    """What a table shows of a run: the reading, and how its values are written and compared."""

    reading: Reading
    unit: str
    better: str  # higher or lower

    def number(self, value: float | None, sign: str = "") -> str:
        """`85.20`, at the decimals of the unit; `diverged` or the like for None."""
        return unit(self.unit).none if value is None else unit(self.unit).text(value, sign)


@dataclass(frozen=True)
class Cell:
    """One cell of a table at one scale, with its run."""

    place: Where
    run_id: str
    config: dict[str, Any]
    shown: Shown

    @cached_property
    def flat(self) -> dict[str, Any]:
        """See `flatten`."""
        return flatten(self.config)


@dataclass(frozen=True)
class Change:
    """A setting or an argument of the method that differs; `method` stands for parts that only one of the two has."""

    key: str
    value: str
    before: str

    def __str__(self) -> str:
        return f"{self.key} {self.value} (table: {self.before})"


class Catalogue:
    """All cells of all tables, or of `only` some (`paper/table`, scale): as params.yaml has them, and without what params.yaml
    changes."""

    def __init__(self, project: Project, only: Collection[tuple[str, str]] | None = None) -> None:
        base = unedited(project)
        self.published = list(cells(base, only))
        self.asked: dict[str, list[Cell]] = {}
        for cell in self.published if project.params == base.params else cells(project, only):
            self.asked.setdefault(cell.run_id, []).append(cell)
        self._by_place = {cell.place: cell for cell in self.published}
        chosen = project.params
        self._rank = lambda cell: (cell.place[1] != chosen.scale, cell.place[0] not in chosen.tables)

    def find(self, run_id: str, config: dict[str, Any]) -> tuple[list[Shown], list[Change]]:
        """What tables show of a run, and its changes to the table's own run. A run that no table asks for is read as the cell
        that it has most in common with.
        """
        found = self.asked.get(run_id)
        if found:
            base = [self._by_place[cell.place] for cell in found if cell.place in self._by_place]
            changed = changes(config, base[0].config) if base else []
        else:
            flat = flatten(config)
            near = min(self.published, key=lambda cell: (_distance(flat, cell.flat), self._rank(cell)))
            found = [cell for cell in self.published if cell.run_id == near.run_id]
            changed = changes(config, near.config)
        shown = [cell.shown for cell in found if not cell.shown.reading.diagnostic]
        return list(dict.fromkeys(shown or [last_round(config["model"])])), changed


def last_round(model: str) -> Shown:
    """What is shown of a run that tables read by diagnostics alone: these are no part of its receipt."""
    metric = primary_metric(model)
    return Shown(Reading(metric, Last()), "percent" if metric.endswith("accuracy") else "fraction", "higher")


def unedited(project: Project) -> Project:
    """The project without the settings and the arguments of params.yaml."""
    return dataclasses.replace(project, params=project.params.model_copy(update={"settings": {}, "methods": {}}))


def cells(project: Project, only: Collection[tuple[str, str]] | None = None) -> Iterator[Cell]:
    """Every cell that has a run, of all tables at all scales, or of `only` some. A table with a mistake in it is left out."""
    for name in project.table_names():
        for scale in project.scales:
            if only is not None and (name, scale) not in only:
                continue
            paper, _, table = name.partition("/")
            try:
                made = plan(project, paper, table, scale)
            except UserError:  # who asks for that table hears of it
                continue
            yield from cells_of(made)


def cells_of(made: Plan) -> Iterator[Cell]:
    """The cells of a plan that have a run; of a tuned cell every candidate and its trial."""
    for cell, run, reading in (*made.readings(), *made.tried()):
        metric = cell.metric
        yield Cell(place_of(made, cell), run.run_id, run.config, Shown(reading, metric.unit, metric.better))


def place_of(made: Plan, cell: Place) -> Where:
    """Of a cell of a plan; of a tuned one also by what its candidate tries."""
    values = ", ".join(f"{key}={value}" for key, value in cell.values.items())
    return f"{made.paper}/{made.table}", made.scale, cell.row, cell.column, values


def flatten(config: dict[str, Any]) -> dict[str, Any]:
    """Every setting of a run by its name, every argument of its method as `part.argument`, and each part."""
    settings = {key: value for key, value in config.items() if key != "method"}
    parts = {f"{call.name}()": True for call in parse(config["method"])}
    return settings | parts | named_arguments(config["method"])


def changes(config: dict[str, Any], base: dict[str, Any]) -> list[Change]:
    """What differs between two runs' configurations, each once: arguments of parts that both have, other parts whole."""
    found = [key for key in dict.fromkeys([*base, *config]) if key != "method" and config.get(key) != base.get(key)]
    listed = [Change(key, _text(config, key), _text(base, key)) for key in found if _FOLLOWS.get(key) not in found]
    mine, other = (parse(one["method"]) for one in (config, base))
    names = [{call.name for call in calls} for calls in (mine, other)]
    alone = [
        "+".join(str(call) for call in calls if call.name not in names[1 - i]) or "–" for i, calls in enumerate((mine, other))
    ]
    if alone != ["–", "–"]:
        listed.append(Change("method", *alone))
    here, there = (named_arguments(one["method"]) for one in (config, base))
    shared = [key for key in here if key in there and here[key] != there[key]]
    return listed + [Change(key, _text(here, key), _text(there, key)) for key in shared]


def _distance(one: dict[str, Any], other: dict[str, Any]) -> int:
    return sum(one.get(key) != other.get(key) for key in one.keys() | other.keys())


def _text(values: dict[str, Any], key: str) -> str:
    value = values.get(key, "default")
    return value if isinstance(value, str) else _bare(value)


def _bare(value: Any) -> str:
    if isinstance(value, Iterable):
        return "×".join(map(_bare, value))
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else f"{value:g}"
