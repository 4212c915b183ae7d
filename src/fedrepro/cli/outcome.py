"""The last lines of a run by hand: the table's number over seeds, the printed one where they compare, and the next command."""

import itertools
import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from fedrepro.cli.code_groups import by_code
from fedrepro.cli.stored_runs import read_receipts
from fedrepro.config.by_hand import PAPER
from fedrepro.config.catalogue import PlacedRun, cells_of, place_of, shown_readings
from fedrepro.config.grid import plan as resolve
from fedrepro.config.plan import Place, Plan
from fedrepro.config.project import Project
from fedrepro.config.reading import Last, Reading
from fedrepro.config.run_differences import ChangedSetting, changes, columns, method_names, shared
from fedrepro.console import aligned
from fedrepro.engine.receipts import RUNS, receipt_path
from fedrepro.errors import UserError
from fedrepro.exhibits.statistics import mean
from fedrepro.grouping import grouped
from fedrepro.registry import unknown
from fedrepro.units import unit

MOST = 8  # runs that are named for a comparison
MOST_BLOCKS = 4  # cells that have lines of their own; more make a table


class Conclusion:
    """Sums up the chosen `cells` of `plan` at `seeds`; `project` includes the command's --set. `keeps`: whether the command
    keeps models."""

    def __init__(self, project: Project, plan: Plan, cells: list[Place], seeds: list[int], keeps: bool = False) -> None:
        self.root, self.plan, self.chosen, self.seeds, self.keeps = project.root, plan, cells, seeds, keeps
        self.cells = {cell.place: cell for cell in cells_of(plan)}
        self.by_hand = plan.paper == PAPER
        tables = [project.unedited()]
        if project.own and not self.by_hand:
            tables.append(replace(project.unedited(), own={}))  # which lacks rows of the command, but no argument is changed
        plans = [resolve(base, plan.paper, plan.table, plan.scale) for base in tables]
        self.base = {cell.place: cell for base_plan in plans for cell in cells_of(base_plan)}
        self.full_scale = project.scale(plan.scale).comparable

    def read(self, evidence: dict[str, Any]) -> str:
        """`test accuracy 85.20 % (mean of the last 3 of 8 rounds)`: a finished seed, in the column that reads the latest
        rounds."""
        cells = (cell for cell in self.cells.values() if cell.run_id == evidence["run_id"])
        readings = shown_readings(cells, evidence["config"])
        reading = max(readings, key=lambda reading: reading.window(evidence["config"]["rounds"]).stop)
        if reading.curve not in evidence["curves"]:
            where = f"{self.plan.paper}/{self.plan.table}: metric"
            raise UserError(f"{where}: {unknown('recorded metric', reading.curve, sorted(evidence['curves']))}")
        value, sign = reading.of(evidence), unit(reading.unit).sign
        if value is None:
            return reading.number(None)
        name = reading.metric.replace("_", " ")
        return f"{name} {reading.number(value)}{sign} ({reading.over(evidence['config'])})"

    def lines(self) -> list[str]:
        """Returns some lines for each cell, or a table of many, then the next command."""
        cells = [self.cells[place_of(self.plan, table_cell)] for table_cell in self.chosen]
        names = method_names([cell.config["method"] for cell in cells])
        rows = [self.plan.row(table_cell.row) for table_cell in self.chosen]
        # A row that the paper does not print keeps its label.
        names = [row.label if self.by_hand or not row.printed else name for name, row in zip(names, rows, strict=True)]
        distinct: dict[Any, _Result] = {}  # cells that --set makes the same run are shown once
        for table_cell, cell, name in zip(self.chosen, cells, names, strict=True):
            shown = cell.run_id, cell.reading, table_cell.printed
            if shown not in distinct:
                distinct[shown] = self._result(table_cell, cell, name)
        results = [*distinct.values()]
        measured = [result for result in results if not result.cell.reading.diagnostic]
        table = _table(measured) if len(measured) > MOST_BLOCKS else []
        blocks = (_block(result) for result in results if not table or result.cell.reading.diagnostic)
        return [*table, *itertools.chain.from_iterable(blocks), f"next: {self._next()}"]

    def _result(self, table_cell: Place, cell: PlacedRun, name: str) -> "_Result":
        reading, changed = cell.reading, self._changes(cell)
        if reading.diagnostic:
            return _Result(name, cell, [], "", "")
        receipts = read_receipts(self.root / RUNS / cell.run_id, self.seeds)
        values = {seed: reading.of(receipt) for seed, receipt in receipts.items()}
        groups = by_code(self.root, receipts)
        means = [(summary(reading, {seed: values[seed] for seed in seeds}), note) for note, seeds in groups]
        printed = "" if self.by_hand else self._printed(table_cell, reading, values, changed, len(groups))
        return _Result(name, cell, means, ", ".join(map(str, changed)), printed)

    def _changes(self, cell: PlacedRun) -> list[ChangedSetting]:
        # A candidate whose tried values params.yaml changes has no base: then the nearest one of its cell counts.
        bases = [self.base[cell.place]] if cell.place in self.base else []
        bases = bases or [base for base in self.base.values() if base.place[:4] == cell.place[:4] and not base.trial]
        return min((_changes(cell, base) for base in bases), key=len, default=[])

    def _printed(
        self, table_cell: Place, reading: Reading, values: dict[int, float | None], changed: list[ChangedSetting], codes: int
    ) -> str:
        """Returns the printed number and the difference, or why there is none. `codes`: number of codes that made the seeds."""
        if table_cell.printed is None:
            return "the paper prints no such number"
        reasons = [] if self.full_scale else [f"scale {self.plan.scale}"]
        reasons += ["another table than the printed one"] if self.plan.stand_in else []
        reasons += ["the table runs on a budget"] if self.plan.on_budget else []
        reasons += [f"{' and '.join(change.key for change in changed)} changed"] if changed else []
        reasons += ["its seeds are of different code"] if codes > 1 else []
        printed = f"printed {reading.number(table_cell.printed)}"
        if reasons:
            return f"{printed}: not comparable ({', '.join(reasons)})"
        measured = [value for value in values.values() if value is not None]
        if len(measured) < len(values):
            return f"{printed}: {reading.none} at a seed"
        return f"{printed}, difference {reading.number(round(mean(measured) - table_cell.printed, 6), '+')}"

    def _next(self) -> str:
        """Returns a command that measures kept models, or compares two of the runs, or a changed run with the table's own, if
        both have results."""
        ids = list(dict.fromkeys(cell.run_id or "" for cell in self.chosen))
        if self.keeps:
            return f'fedrepro diagnose "client_distance()" {ids[0].rpartition("-")[2]}'
        base_cells = [self.base.get(place_of(self.plan, cell)) for cell in self.chosen]
        for base_id in (cell.run_id for cell in base_cells if cell):
            if base_id not in ids and any(receipt_path(self.root, base_id, seed).exists() for seed in self.seeds):
                ids = [base_id, *ids]
                break
        if len(ids) == 1:
            return "fedrepro runs" + ("" if self.by_hand else f" {self.plan.paper}/{self.plan.table}")
        return f"fedrepro compare {' '.join(run_id.rpartition('-')[2] for run_id in ids[:MOST])}"


class _Result(NamedTuple):
    """A cell with its number. `means`: the mean over seeds, with a note on their code; one for each code that made some, none
    of a cell that is measured on kept models."""

    name: str
    cell: PlacedRun
    means: list[tuple[str, str]]
    changed: str
    printed: str  # the printed number and the difference, or why there is none


def _block(result: _Result) -> Iterator[str]:
    """Yields the lines of one cell."""
    name, cell, means, changed, printed = result
    config, reading = cell.config, cell.reading
    if reading.diagnostic:
        yield f"{name}: {reading.metric} is measured on kept models"
        yield f'  fedrepro diagnose "{reading.diagnostic}" {cell.run_id}'
        return
    for text, note in means:
        yield f"{name}, {config['dataset']} {config['model']} {config['partition']}: {text}" + (f"; {note}" if note else "")
    yield f"  {reading_of(reading, config)}" + (f"; changed: {changed}" if changed else "")
    yield from [f"  {printed}"] * bool(printed)
    yield f"  {RUNS}/{cell.run_id}"


def _table(results: list[_Result]) -> Iterator[str]:
    """Yields what all runs share, then for each reading a line for each cell."""
    configs = [result.cell.config for result in results]
    yield f"all have {shared(configs)}"
    settings = columns(configs) | {"method": [result.name for result in results]}
    by_reading = grouped((reading_of(result.cell.reading, result.cell.config), place) for place, result in enumerate(results))
    for heading, places in by_reading.items():
        rows: list[tuple[str, ...]] = [("method", *(key for key in settings if key != "method"), "mean", "", "run", "")]
        for place in places:
            result = results[place]
            shown_settings = [result.name, *(texts[place] for key, texts in settings.items() if key != "method")]
            for text, note in result.means:
                notes = "; ".join(filter(None, [result.changed, note]))
                rows.append((*shown_settings, text, result.printed, result.cell.run_id[-8:], notes))
        yield from ("", heading, *(f"  {line}" for line in aligned(rows, left=range(len(rows[0])))))
    yield ""


def _changes(cell: PlacedRun, base: PlacedRun) -> list[ChangedSetting]:
    call, before = cell.reading.call, base.reading.call
    reading_change = []
    if isinstance(call, Last) and isinstance(before, Last) and call != before:
        reading_change = [ChangedSetting("average_last", str(call.rounds), str(before.rounds))]
    return changes(cell.config, base.config) + reading_change


def summary(reading: Reading, values: dict[int, float | None]) -> str:
    """`85.20 ± 0.31 over seeds 8, 9, 10`: see `mean_text`."""
    seeds = ", ".join(map(str, values))
    if None in values.values():
        return f"{mean_text(reading, values)} of {seeds}"
    return f"{mean_text(reading, values)} {'over seeds' if len(values) > 1 else 'at seed'} {seeds}"


def mean_text(reading: Reading, values: dict[int, float | None]) -> str:
    """`85.20 ± 0.31`: mean and sample standard deviation over seeds; no mean if a seed diverged or did not reach its target."""
    measured = [value for value in values.values() if value is not None]
    if len(measured) < len(values):
        return f"{reading.none} at seed {', '.join(str(seed) for seed, value in values.items() if value is None)}"
    deviation = f" ± {reading.number(statistics.stdev(measured))}" if len(measured) > 1 else ""
    return reading.number(mean(measured)) + deviation


def reading_of(reading: Reading, config: dict[str, Any]) -> str:
    """`test accuracy, mean of the last 3 of 8 rounds`."""
    sign = unit(reading.unit).sign.strip()
    return f"{reading.metric.replace('_', ' ')}{f' in {sign}' if sign else ''}, {reading.over(config)}"
