"""Selects the runs of `fedrepro runs` and `fedrepro compare`, each with the table that it belongs to."""

import contextlib
from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fedrepro import console
from fedrepro.choices import require_known
from fedrepro.cli import request
from fedrepro.cli.stored_runs import StoredRun, find, run_filter, stored_runs
from fedrepro.cli.table_selection import with_choices
from fedrepro.config.catalogue import At, Catalogue, PlacedRun, shown_readings
from fedrepro.config.places import is_figure, report_folder
from fedrepro.config.project import load_project, unknown_table
from fedrepro.config.reading import Reading
from fedrepro.config.run_differences import ChangedSetting
from fedrepro.errors import UserError
from fedrepro.files import read_json
from fedrepro.models.names import MODELS
from fedrepro.store import Store

NO_TABLE: At = ("no table", "–")  # of a run that no table asks for, not even with a few other settings


@dataclass(frozen=True)
class SelectedRun:
    """A run with the cells that show it, or else those that it is a changed run of, if there are any. `choices`: tuned cell
    (row, column) -> the run that its trials chose."""

    run: StoredRun
    cells: list[PlacedRun]
    changed: list[ChangedSetting]
    choices: dict[tuple[str, str], str | None]
    named: bool  # whether the user named the run itself; then all tables of its paper count

    @property
    def at(self) -> At:
        """The table and its scale, or NO_TABLE."""
        return self.cells[0].at if self.cells else NO_TABLE

    @property
    def tries(self) -> list[str]:
        """The settings that its tuned cells try."""
        return list(dict.fromkeys(key for cell in self.cells for key in cell.tries))

    @property
    def trial(self) -> bool:
        """Whether it is only a trial: no cell shows it."""
        return self.in_a_table and not any(map(self._shows, self.cells))

    @property
    def in_a_table(self) -> bool:
        """Whether a table has this run, and not just a similar one."""
        return bool(self.cells) and self.cells[0].run_id == self.run.run_id

    @property
    def readings(self) -> list[Reading]:
        """The readings that tables show of it; for a trial, the reading that decides the choice."""
        return shown_readings([cell for cell in self.cells if self._shows(cell)] or self.cells, self.run.config)

    def _shows(self, cell: PlacedRun) -> bool:
        return not cell.tries or (not cell.trial and self.choices.get(cell.place[2:4]) == self.run.run_id)


class RunSelector:
    """Finds the runs that `options` ask for."""

    def __init__(self, options: Namespace, root: Path) -> None:
        self._options, self._root = options, root
        self._project, self._runs_by_id = load_project(root), stored_runs(root)
        self._require_known_names()
        self._catalogue = Catalogue(self._project)
        self._names = sorted(self._project.table_names(), key=lambda name: (name.partition("/")[0], is_figure(name)))

    def _require_known_names(self) -> None:
        """Raises UserError for an unknown data set, model or scale."""
        project = self._project
        names_by_option = {
            "dataset": ("data set", project.registry),
            "model": ("model", MODELS),
            "scale": ("scale", project.scales),
        }
        for option, (noun, names) in names_by_option.items():
            name = getattr(self._options, option)
            if name:
                require_known(f"--{option} {name}", noun, name, sorted(names))

    def select(self) -> tuple[list[SelectedRun], int]:
        """Returns the runs, in the order of the command and of tables, and the number of trials that are left out.

        UserError for an unknown table, run, row, column or setting.
        """
        given = request.given_values(self._options)
        has_settings = run_filter(
            given, self._options.method, lambda key: f"--{key}" if key in request.SHORT else f"--set {key}"
        )
        selection: list[SelectedRun] = []
        runs = [run for run in self._runs_by_id.values() if has_settings is None or has_settings(run.config)]
        asked: set[At] = set()
        for text in self._options.what or [""]:
            tables = self._tables(text) if text else []
            asked |= {*tables}
            if text and not tables:
                selection += self._in_tables([self._run(text)], [], named=True)
            else:
                selection += self._in_tables(runs, tables)
        self._tell_mistakes(asked)
        selection = list({selected.run.run_id: selected for selected in reversed(selection)}.values())[::-1]
        listed = [selected for selected in selection if self._options.trials or selected.named or not selected.trial]
        return listed, len(selection) - len(listed)

    def _tell_mistakes(self, asked: set[At]) -> None:
        """Says which tables cannot be planned: each of those that were asked for, and how many others."""
        mistakes = self._catalogue.mistakes
        for line in dict.fromkeys(str(mistakes[at]) for at in mistakes if at in asked):
            console.say(f"left out: {line}")
        others = list(dict.fromkeys(str(mistakes[at]) for at in mistakes if at not in asked))
        if len(others) == 1:
            console.say(f"left out: {others[0]}")
        elif others:
            console.say(f"left out: {len(others)} mistakes in other tables, the first: {others[0]}")

    def _run(self, text: str) -> StoredRun:
        """Returns the run that a word means. UserError for another word, with the option that takes it, if there is one."""
        try:
            return find(text, self._runs_by_id)
        except UserError as error:
            if option := self._option(text):
                raise UserError(f"{error}; `fedrepro runs {option} {text}` lists the runs that have it") from error
            raise

    def _option(self, text: str) -> str:
        """Returns the option that takes `text`: a method or a part of one, a data set, a model, a row or a column."""
        from fedrepro.methods.parts import PARTS
        from fedrepro.methods.presets import PRESETS

        names_by_option = {"method": (*PARTS.names(), *PRESETS), "dataset": self._project.registry, "model": MODELS}
        for key, names in names_by_option.items():
            if text in names:
                return f"--{key}"
        for paper, _, table in (name.partition("/") for name in self._names if not is_figure(name)):
            with contextlib.suppress(UserError):  # a table with a mistake in it
                definition = self._project.table(paper, table)
                for key, headers in (("rows", [*definition.rows, *definition.companions]), ("columns", definition.columns)):
                    if any(header.key == text for header in headers):
                        return f"--{key}"
        return ""

    def _tables(self, text: str) -> list[At]:
        """Returns the tables that a word means (one table, or all of a paper) at scales that may have runs; [] for a run."""
        names = [name for name in self._names if text in (name, name.partition("/")[0])]
        if not names and "/" in text and not Path(text).is_dir():
            raise UserError(unknown_table(text, self._names))
        scale = self._options.scale
        scales = [scale] if scale and self._project.scale(scale) else [*self._project.scales]
        published = {place for run in self._runs_by_id.values() for place in run.places}
        has_local_runs = any(not run.places for run in self._runs_by_id.values())
        places = {(name.partition("/")[0], scale) for name in names for scale in scales}
        places = places if has_local_runs else places & published
        tables = [(name, scale) for name in names for scale in scales if (name.partition("/")[0], scale) in places]
        if len(names) == 1 or self._options.rows or self._options.columns:  # which any of the tables may have
            self._catalogue.add(tables)
        elif tables:
            tables = self._with_runs(tables, places)
        if tables and not any(at in self._catalogue.plans for at in tables):
            raise self._catalogue.mistakes[tables[0]]
        for key in ("rows", "columns"):
            keys = {
                header.key for at in tables if at in self._catalogue.plans for header in getattr(self._catalogue.plans[at], key)
            }
            for name in (getattr(self._options, key) or ()) if tables else ():
                require_known(text, key.removesuffix("s"), name, sorted(keys))
        return tables or [(name, scales[0]) for name in names]

    def _with_runs(self, tables: list[At], places: set[tuple[str, str]]) -> list[At]:
        """Plans the tables of a paper, those with a plan or a page here first, until all runs at `places`, its (paper, scale),
        and those that were trained here are found. Returns the tables that were planned."""
        local_runs = [run for run in self._runs_by_id.values() if not run.places]
        published_ids = [run.run_id for run in self._runs_by_id.values() if not places.isdisjoint(run.places)]
        planned = self._planned_tables() if local_runs else {}
        run_ids = [*published_ids, *(run.run_id for run in self._not_of_others(local_runs, tables))]
        self._catalogue.locate(run_ids, sorted(tables, key=lambda at: (at not in planned, self._has_no_page(at))))
        return [at for at in tables if at in self._catalogue.plans or at in self._catalogue.mistakes]

    def _not_of_others(self, runs: list[StoredRun], tables: list[At]) -> list[StoredRun]:
        """Returns those of the runs that no other table with a plan here asks for."""
        if not runs:
            return []
        of_others = {run_id for at, run_ids in self._planned_tables().items() if at not in tables for run_id in run_ids}
        return [run for run in runs if run.run_id not in of_others]

    def _in_tables(self, runs: Sequence[StoredRun], tables: list[At], named: bool = False) -> list[SelectedRun]:
        """Returns the runs that belong to `tables`; without tables, all that belong to any."""
        if not tables:
            for place in dict.fromkeys(place for run in runs for place in run.places):
                of_paper = [(name, place[1]) for name in self._names if name.startswith(f"{place[0]}/")]
                of_paper.sort(key=self._has_no_page)  # tables with a report first: runs are published for these
                run_ids = [run.run_id for run in runs if place in run.places]
                self._catalogue.add(of_paper) if named else self._catalogue.locate(run_ids, of_paper)
        unplaced = [run for run in runs if not run.places and not self._catalogue.cells(run.run_id)]
        if tables:
            unplaced = self._not_of_others(unplaced, tables)
        if unplaced:
            planned = self._planned_tables()
            self._catalogue.add(at for at in planned if any(run.run_id in planned[at] for run in unplaced))
            changed_runs = [run for run in unplaced if not self._catalogue.cells(run.run_id)]
            self._catalogue.add(planned if changed_runs else [])
            self._catalogue.approach({run.run_id: run.config for run in changed_runs})
        selection = []
        for run in runs:
            if tables and run.places and not self._catalogue.cells(run.run_id):  # published for another table
                continue
            cells, changed = self._catalogue.find(run.run_id, run.config)
            if not cells and not tables and not any(getattr(self._options, key) for key in ("scale", "rows", "columns")):
                selection.append(SelectedRun(run, [], [], {}, named))
            places = dict.fromkeys(cell.at for cell in cells)
            at = next((table for table in tables or places if table in places), None)
            if at is None or self._options.scale not in (None, at[1]):
                continue
            shown_cells = [cell for cell in cells if (named or cell.at == at) and self._in_part(cell)]
            if shown_cells:
                if shown_cells[0].run_id == run.run_id:
                    changed = self._catalogue.changes(shown_cells, run.config)
                asks = not named and shown_cells[0].run_id == run.run_id
                table_run = run.of_table(self._catalogue.plans[shown_cells[0].at].seeds) if asks else run
                selection.append(SelectedRun(table_run, shown_cells, changed, self._chosen_runs(shown_cells[0].at), named))
        return sorted(selection, key=self._order)

    @cache  # noqa: B019  (one for each command)
    def _planned_tables(self) -> dict[At, Collection[str]]:
        """Returns the run_ids of the tables that have a plan in this folder."""
        from fedrepro.tracking.planned_runs import plan_files

        run_ids_by_table: dict[At, Collection[str]] = {}
        for path in plan_files(self._root):
            # A damaged plan is made again by the command that needs it.
            with contextlib.suppress(UserError, KeyError, TypeError):
                plan = read_json(path)
                name = f"{plan['paper']}/{plan['table']}"
                if name in self._names:
                    run_ids_by_table[name, plan["scale"]] = plan["runs"].keys()
        return run_ids_by_table

    def _has_no_page(self, at: At) -> bool:
        paper, _, table = at[0].partition("/")
        return not (self._root / report_folder(paper, at[1]) / f"{table}.json").exists()

    def _order(self, selected: SelectedRun) -> tuple[int, int, int, int, bool, str]:
        """Sorts by table, scale, column and row. Trials come after the cell that they belong to, runs of no table after all
        others."""
        if not selected.cells:
            return len(self._names), 0, 0, 0, False, selected.run.run_id
        plan = self._catalogue.plans[selected.at]
        keys = [[header.key for header in headers] for headers in (plan.columns, plan.rows)]
        column, row = keys[0].index(selected.cells[0].place[3]), keys[1].index(selected.cells[0].place[2])
        table, scale = self._names.index(selected.at[0]), [*self._project.scales].index(selected.at[1])
        return table, scale, column, row, selected.trial, selected.cells[0].place[4]

    def _in_part(self, cell: PlacedRun) -> bool:
        filters = (self._options.rows, self._options.columns)
        return all(not keys or key in keys for keys, key in zip(filters, cell.place[2:4], strict=True))

    @cache  # noqa: B019  (one for each command)
    def _chosen_runs(self, at: At) -> dict[tuple[str, str], str | None]:
        plan = self._catalogue.plans[at]
        if not plan.candidates:
            return {}
        return {(cell.row, cell.column): cell.run_id for cell in with_choices(plan, Store.of(self._root)).cells if cell.chosen}
