"""The runs that `fedrepro runs` and `fedrepro compare` are asked for, each with the table that it belongs to."""

import contextlib
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from fedrepro import console
from fedrepro.cli import request
from fedrepro.cli.stored_runs import StoredRun, find, run_filter, stored_runs
from fedrepro.cli.table_selection import with_choices
from fedrepro.config.catalogue import At, Catalogue, PlacedRun, ShownReading, shown_readings
from fedrepro.config.places import is_figure, report_folder
from fedrepro.config.project import load_project, unknown_table
from fedrepro.config.run_differences import ChangedSetting
from fedrepro.errors import UserError
from fedrepro.files import read_json
from fedrepro.models.names import MODELS
from fedrepro.registry import unknown
from fedrepro.store import Store


@dataclass(frozen=True)
class SelectedRun:
    """A run with the cells that show it, or that come closest. `choices`: tuned cell (row, column) -> the run that its trials
    chose."""

    run: StoredRun
    cells: list[PlacedRun]
    changed: list[ChangedSetting]
    choices: dict[tuple[str, str], str | None]
    named: bool  # whether the user named the run itself; then all tables of its paper count

    @property
    def at(self) -> At:
        """The table and its scale."""
        return self.cells[0].at

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
        """Whether a table asks for just this run."""
        return self.cells[0].run_id == self.run.run_id

    @property
    def readings(self) -> list[ShownReading]:
        """The readings that tables show of it; for a trial, the reading that decides the choice."""
        return shown_readings([cell for cell in self.cells if self._shows(cell)] or self.cells, self.run.config)

    def _shows(self, cell: PlacedRun) -> bool:
        return not cell.tries or (not cell.trial and self.choices.get(cell.place[2:4]) == self.run.run_id)


class RunSelector:
    """Finds the runs that `options` ask for."""

    def __init__(self, options: Namespace, root: Path) -> None:
        self._options, self._root = options, root
        self._project, self._known = load_project(root), stored_runs(root)
        self._require_known()
        self._catalogue = Catalogue(self._project)
        self._names = sorted(self._project.table_names(), key=lambda name: is_figure(name.partition("/")[2]))

    def _require_known(self) -> None:
        """UserError for an unknown data set, model or scale."""
        project = self._project
        known = {"dataset": ("data set", project.registry), "model": ("model", MODELS), "scale": ("scale", project.scales)}
        for option, (noun, names) in known.items():
            name = getattr(self._options, option)
            if name and name not in names:
                raise UserError(f"--{option} {name}: {unknown(noun, name, sorted(names))}")

    def select(self) -> tuple[list[SelectedRun], int]:
        """Returns the runs, in the order of the command and of tables, and the number of trials that are left out.

        UserError for an unknown table, run, row, column or setting.
        """
        fits, found = _wanted(self._options), list[SelectedRun]()
        runs = [run for run in self._known.values() if fits is None or fits(run.config)]
        for text in self._options.what or [""]:
            tables = self._tables(text) if text else []
            if text and not tables:
                found += self._placed([self._run(text)], [], named=True)
            else:
                found += self._placed(runs, tables)
        for line in dict.fromkeys(map(str, self._catalogue.mistakes.values())):
            console.say(f"left out: {line}")
        found = list({one.run.run_id: one for one in reversed(found)}.values())[::-1]
        kept = [one for one in found if self._options.trials or one.named or not one.trial]
        return kept, len(found) - len(kept)

    def _run(self, text: str) -> StoredRun:
        """Returns the run that a word means. UserError for another word, with the option that takes it, if there is one."""
        try:
            return find(text, self._known)
        except UserError as error:
            if option := self._option(text):
                raise UserError(f"{error}; `fedrepro runs {option} {text}` lists the runs that have it") from error
            raise

    def _option(self, text: str) -> str:
        """Returns the option that takes `text`: a method or a part of one, a data set, a model, a row or a column."""
        from fedrepro.methods.parts import PARTS
        from fedrepro.methods.presets import PRESETS

        known = {"method": (*PARTS.names(), *PRESETS), "dataset": self._project.registry, "model": MODELS}
        for key, names in known.items():
            if text in names:
                return f"--{key}"
        for paper, _, table in (name.partition("/") for name in self._names if not is_figure(name.partition("/")[2])):
            with contextlib.suppress(UserError):  # a table with a mistake in it
                made = self._project.table(paper, table)
                for key, headers in (("rows", [*made.rows, *made.companions]), ("columns", made.columns)):
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
        published = {place for run in self._known.values() for place in run.places}
        here = any(not run.places for run in self._known.values())
        found = [(name, one) for name in names for one in scales if here or (name.partition("/")[0], one) in published]
        self._catalogue.add(found)
        if found and not any(at in self._catalogue.plans for at in found):
            raise self._catalogue.mistakes[found[0]]
        for key in ("rows", "columns"):
            known = {one.key for at in found if at in self._catalogue.plans for one in getattr(self._catalogue.plans[at], key)}
            for name in getattr(self._options, key) or ():
                if found and name not in known:
                    raise UserError(f"{text}: {unknown(key.removesuffix('s'), name, sorted(known))}")
        return found or [(name, scales[0]) for name in names]

    def _placed(self, runs: Sequence[StoredRun], tables: list[At], named: bool = False) -> list[SelectedRun]:
        """Returns those runs that belong to `tables`; without tables all that belong to any."""
        if not tables:
            for place in dict.fromkeys(place for run in runs for place in run.places):
                of_paper = [(name, place[1]) for name in self._names if name.startswith(f"{place[0]}/")]
                of_paper.sort(key=self._has_no_page)  # those that have one are what runs are published for
                own = [run.run_id for run in runs if place in run.places]
                self._catalogue.add(of_paper) if named else self._catalogue.locate(own, of_paper)
        lost = [run for run in runs if not run.places and not self._catalogue.cells(run.run_id)]
        if lost:
            self._catalogue.add(_planned(self._root))
            self._catalogue.approach({run.run_id: run.config for run in lost})
        found = []
        for run in runs:
            if tables and run.places and not self._catalogue.cells(run.run_id):  # published for another table
                continue
            cells, changed = self._catalogue.find(run.run_id, run.config)
            places = dict.fromkeys(cell.at for cell in cells)
            at = next((one for one in tables or places if one in places), None)
            if at is None or self._options.scale not in (None, at[1]):
                continue
            own = [cell for cell in cells if (named or cell.at == at) and self._in_part(cell)]
            if own:
                asks = not named and own[0].run_id == run.run_id
                of_table = replace(run, seeds=self._catalogue.plans[own[0].at].seeds) if asks else run
                found.append(SelectedRun(of_table, own, changed, self._settled(own[0].at), named))
        return sorted(found, key=self._order)

    def _has_no_page(self, at: At) -> bool:
        paper, _, table = at[0].partition("/")
        return not (self._root / report_folder(paper, at[1]) / f"{table}.json").exists()

    def _order(self, one: SelectedRun) -> tuple[int, int, int, bool, str]:
        """Sorts by table, column and row. Trials come after the cell that they belong to."""
        plan = self._catalogue.plans[one.at]
        keys = [[header.key for header in headers] for headers in (plan.columns, plan.rows)]
        column, row = keys[0].index(one.cells[0].place[3]), keys[1].index(one.cells[0].place[2])
        return list(self._catalogue.plans).index(one.at), column, row, one.trial, one.cells[0].place[4]

    def _in_part(self, cell: PlacedRun) -> bool:
        wanted = (self._options.rows, self._options.columns)
        return all(not keys or key in keys for keys, key in zip(wanted, cell.place[2:4], strict=True))

    @cache  # noqa: B019  (one for each command)
    def _settled(self, at: At) -> dict[tuple[str, str], str | None]:
        plan = self._catalogue.plans[at]
        if not plan.candidates:
            return {}
        return {(cell.row, cell.column): cell.run_id for cell in with_choices(plan, Store.of(self._root)).cells if cell.chosen}


def _wanted(options: Namespace) -> Callable[[dict[str, Any]], bool] | None:
    """Returns a test whether a run has the settings and the parts that the options name, if they name any."""

    def where(key: str) -> str:
        return f"--{key}" if key in request.SHORT else f"--set {key}"

    return run_filter(request.given_values(options), options.method, where)


def _planned(root: Path) -> Iterator[At]:
    """Lists the tables that have a plan in this folder."""
    from fedrepro.tracking.planned_runs import plan_files

    for path in plan_files(root):
        with contextlib.suppress(UserError, KeyError, TypeError):  # a damaged plan is made again by the command that needs it
            plan = read_json(path)
            yield f"{plan['paper']}/{plan['table']}", plan["scale"]
