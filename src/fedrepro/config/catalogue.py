"""Finds the table cell of a run, or the cell that a few changed settings make it of, and these settings."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fedrepro.config.grid import plan
from fedrepro.config.places import is_figure
from fedrepro.config.plan import Place, Plan
from fedrepro.config.project import Project
from fedrepro.config.reading import Reading, last_round
from fedrepro.config.run_differences import ChangedSetting, changes, flatten
from fedrepro.errors import UserError

Where = tuple[str, str, str, str, str]  # paper/table, scale, row, column; what a candidate of a tuned cell tries
At = tuple[str, str]  # paper/table, scale
FULL = "full"  # of two scales that are as near, a run with edited settings rather belongs to that of the paper
MOST_CHANGED = 4  # settings in which a run differs from the cell that it counts as a changed run of


@dataclass(frozen=True)
class PlacedRun:
    """One cell of a table at one scale, with its run. `tries`: of a tuned cell's candidate the settings whose values it tries.
    `trial`: it is the shorter run that the candidate is compared by."""

    place: Where
    run_id: str
    config: dict[str, Any]
    reading: Reading
    tries: tuple[str, ...] = ()
    trial: bool = False

    @property
    def at(self) -> At:
        """The table and its scale."""
        return self.place[:2]

    @cached_property
    def flat(self) -> dict[str, Any]:
        """Every setting, argument and part of the run by its name, as `flatten` has them."""
        return flatten(self.config)


class Catalogue:
    """Cells by their run, as published and as params.yaml has them. Planning all tables takes seconds, so each is planned when
    needed.

    `plans`: those that have been planned, as published.
    """

    def __init__(self, project: Project) -> None:
        self.project, self._base = project, project.unedited()
        self.plans: dict[At, Plan] = {}
        self.mistakes: dict[At, UserError] = {}  # of tables that cannot be planned
        self._cells: dict[str, list[PlacedRun]] = {}
        self._published: dict[Where, PlacedRun] = {}

    def add(self, tables: Iterable[At]) -> None:
        """Plans these tables. A table with an error is left out and listed in `mistakes`."""
        for at in tables:
            if at in self.plans or at in self.mistakes:
                continue
            paper, _, table = at[0].partition("/")
            try:
                self.plans[at] = plan(self._at(at[1]), paper, table, at[1])
                cells = list(cells_of(self.plans[at]))
                self._published |= {cell.place: cell for cell in cells}
                if _edits(self.project, paper):
                    cells += cells_of(plan(self.project, paper, table, at[1]))
            except UserError as error:
                self.mistakes[at] = error
                continue
            for cell in cells:
                cells_of_run = self._cells.setdefault(cell.run_id, [])
                if cell not in cells_of_run:
                    cells_of_run.append(cell)

    def _at(self, scale: str) -> Project:
        """The unedited project; at another scale than that of params.yaml with the seeds of its published reports."""
        seeds, params = self._base.scale(scale).published_seeds, self._base.params
        if not seeds or scale == params.scale:
            return self._base
        return replace(self._base, params=params.model_copy(update={"seeds": seeds}))

    def locate(self, run_ids: Collection[str], first: Iterable[At]) -> None:
        """Plans these tables, one after another, until each of the runs is found."""
        for at in first:
            if {*run_ids} <= self._cells.keys():
                return
            self.add([at])

    def approach(self, runs: Mapping[str, dict[str, Any]]) -> None:
        """Plans one table after another until each of the runs, given with its settings, is found, or a cell differs from it in
        a single setting. Then only the other scales of this table are planned, where it may be a cell. Tables of params.yaml
        and its scale come first. Tables that do not mention a run's data set and model are left out."""
        params = self.project.params
        scales = sorted(self.project.scales, key=lambda scale: scale != params.scale)

        def late(name: str) -> tuple[bool, bool]:
            return name not in params.tables, is_figure(name)

        names = sorted(self.project.table_names(), key=late)
        flat = {run_id: flatten(config) for run_id, config in runs.items()}
        close: dict[str, str] = {}  # run -> the table with a cell that differs in a single setting
        for at in [*self.plans, *((name, scale) for scale in scales for name in names)]:
            sought = {
                run_id: settings
                for run_id, settings in flat.items()
                if run_id not in self._cells and close.get(run_id, at[0]) == at[0]
            }
            if not sought or (at not in self.plans and not self._mentions(at, sought.values())):
                continue
            self.add([at])
            cells = list(cells_of(self.plans[at])) if at in self.plans else []
            for run_id, settings in sought.items():
                if any(_distance(settings, cell.flat) <= 1 for cell in _comparable(settings, cells)):
                    close[run_id] = at[0]

    def _mentions(self, at: At, runs: Iterable[dict[str, Any]]) -> bool:
        """Whether the files that decide a plan name the data set and the model of one of the runs; if not, no cell has both.
        Planning takes longer than reading."""
        paper, _, table = at[0].partition("/")
        project = self.project
        try:
            text = repr((project.paper(paper), project.table(paper, table), project.scale(at[1]), project.params))
        except UserError:  # which `add` lists
            return True
        return any(repr(run["dataset"]) in text and repr(run["model"]) in text for run in runs)

    def cells(self, run_id: str) -> list[PlacedRun]:
        """The cells of the planned tables that show this run."""
        return self._cells.get(run_id, [])

    def find(self, run_id: str, config: dict[str, Any]) -> tuple[list[PlacedRun], list[ChangedSetting]]:
        """The cells of a run, and its changes to the table's own run. A run of no planned table gets the cells of the run that
        differs from it in the fewest settings, at most MOST_CHANGED; without such a run there are neither cells nor changes."""
        cells = self.cells(run_id)
        if cells:
            return cells, self.changes(cells, config)
        flat, params = flatten(config), self.project.params

        def farness(cell: PlacedRun) -> tuple[Any, ...]:
            at, scale = cell.at
            return _distance(flat, cell.flat), scale != params.scale, scale != FULL, at not in params.tables

        nearest = min(_comparable(flat, self._published.values()), key=farness, default=None)
        changed = changes(config, nearest.config) if nearest else []
        if not nearest or len(changed) > MOST_CHANGED:
            return [], []
        return [cell for cell in self.cells(nearest.run_id) if cell.at == nearest.at], changed

    def changes(self, cells: Iterable[PlacedRun], config: dict[str, Any]) -> list[ChangedSetting]:
        """The changes of a run to the table's own run in the first of these cells that the table has."""
        base = next((self._published[cell.place] for cell in cells if cell.place in self._published), None)
        return changes(config, base.config) if base else []


def shown_readings(cells: Iterable[PlacedRun], config: dict[str, Any]) -> list[Reading]:
    """The distinct readings of these cells. Without such a reading, or if all of them read diagnostics,
    which a receipt does not hold: the last round."""
    readings = dict.fromkeys(cell.reading for cell in cells if not cell.reading.diagnostic)
    return list(readings) or [last_round(config["model"])]


def cells_of(table_plan: Plan) -> Iterator[PlacedRun]:
    """The cells of a plan that have a run; of a tuned cell every candidate and its trial."""
    for cell, run, reading in (*table_plan.readings(), *table_plan.tried()):
        trial = cell.values.get("rounds") == "trial"  # see `Plan.tried`
        tries = tuple(key for key in cell.values if not (trial and key == "rounds"))
        yield PlacedRun(place_of(table_plan, cell), run.run_id, run.config, reading, tries, trial)


def place_of(table_plan: Plan, cell: Place) -> Where:
    """The place of a cell of a plan; that of a candidate also names the values that it tries."""
    values = ", ".join(f"{key}={value}" for key, value in cell.values.items())
    return f"{table_plan.paper}/{table_plan.table}", table_plan.scale, cell.row, cell.column, values


def _edits(project: Project, paper: str) -> bool:
    """Whether params.yaml changes a run of the paper."""
    params = project.params
    edited_parts = (params.methods.get(paper) or {}).values()
    return bool(params.settings) or any(value is not None for arguments in edited_parts for value in (arguments or {}).values())


def _comparable(settings: dict[str, Any], cells: Iterable[PlacedRun]) -> list[PlacedRun]:
    """The cells with the data set and the model of a run; another cell is no nearest one."""
    return [cell for cell in cells if all(cell.config[key] == settings[key] for key in ("dataset", "model"))]


def _distance(settings: dict[str, Any], other: dict[str, Any]) -> int:
    return sum(settings.get(key) != other.get(key) for key in settings.keys() | other.keys())
