"""What a run by hand ends with: the table's number over seeds, the printed one where they compare, and the next command."""

import statistics
from dataclasses import replace
from typing import Any

from fedrepro.cli.code_groups import by_code
from fedrepro.cli.stored_runs import read_receipts
from fedrepro.config.by_hand import PAPER
from fedrepro.config.catalogue import PlacedRun, ShownReading, cells_of, last_round, place_of
from fedrepro.config.grid import plan as resolve
from fedrepro.config.plan import Place, Plan
from fedrepro.config.project import Project
from fedrepro.config.reading import Last
from fedrepro.config.run_differences import ChangedSetting, changes, method_names
from fedrepro.engine.receipts import RUNS, receipt_path
from fedrepro.errors import UserError
from fedrepro.exhibits.statistics import mean
from fedrepro.registry import unknown
from fedrepro.units import unit

MOST = 8  # runs that are named for a comparison


class Conclusion:
    """Of the chosen `cells` of `plan`, at `seeds`; `project` as the command has it, with its --set."""

    def __init__(self, project: Project, plan: Plan, cells: list[Place], seeds: list[int]) -> None:
        self.root, self.plan, self.chosen, self.seeds = project.root, plan, cells, seeds
        self.cells = {cell.place: cell for cell in cells_of(plan)}
        self.by_hand = plan.paper == PAPER
        base = project.unedited() if self.by_hand else replace(project.unedited(), own={})
        self.base = {cell.place: cell for cell in cells_of(resolve(base, plan.paper, plan.table, plan.scale))}
        self.full_scale = project.scale(plan.scale).comparable

    def read(self, evidence: dict[str, Any]) -> str:
        """`test accuracy 85.20 % (mean of the last 3 of 8 rounds)`: a finished seed, as the column shows it that reads last."""
        own = [cell.shown_reading for cell in self.cells.values() if cell.run_id == evidence["run_id"]]
        own = [shown for shown in own if not shown.reading.diagnostic] or [last_round(evidence["config"]["model"])]
        shown = max(own, key=lambda one: one.reading.window(evidence["config"]["rounds"]).stop)
        if shown.reading.curve not in evidence["curves"]:
            where = f"{self.plan.paper}/{self.plan.table}: metric"
            raise UserError(f"{where}: {unknown('recorded metric', shown.reading.curve, sorted(evidence['curves']))}")
        value, sign = shown.reading.of(evidence), unit(shown.unit).sign
        if value is None:
            return shown.number(None)
        name = shown.reading.metric.replace("_", " ")
        return f"{name} {shown.number(value)}{sign} ({shown.reading.over(evidence['config'])})"

    def lines(self) -> list[str]:
        """Three lines a cell, then the next command."""
        cells = [self._cell(chosen) for chosen in self.chosen]
        names = method_names([cell.config["method"] for cell in cells])
        rows = [self.plan.row(chosen.row) for chosen in self.chosen]
        names = [
            row.label if self.by_hand or not row.printed else name for name, row in zip(names, rows, strict=True)
        ]  # ours as it was written
        blocks = (self._block(*one) for one in zip(self.chosen, cells, names, strict=True))
        once = dict.fromkeys(map(tuple, blocks))  # what --set makes the same is one run, and one block
        return [*(line for block in once for line in block), f"next: {self._next()}"]

    def _block(self, chosen: Place, cell: PlacedRun, name: str) -> list[str]:
        config, shown, changed = cell.config, cell.shown_reading, self._changes(cell)
        if shown.reading.diagnostic:
            call = f'fedrepro diagnose "{shown.reading.diagnostic}" {cell.run_id}'
            return [f"{name}: {shown.reading.metric} is measured on kept models", f"  {call}"]
        receipts = read_receipts(self.root / RUNS / cell.run_id, self.seeds)
        values = {seed: shown.reading.of(receipt) for seed, receipt in receipts.items()}
        what = f"{name}, {config['dataset']} {config['model']} {config['partition']}"
        groups = by_code(self.root, receipts)
        found = []
        for note, seeds in groups:
            own = {seed: values[seed] for seed in seeds}
            found.append(f"{what}: {summary(shown, own)}" + (f"; {note}" if note else ""))
        found.append(f"  {reading_of(shown, config)}" + (f"; changed: {', '.join(map(str, changed))}" if changed else ""))
        if not self.by_hand:
            found.append(f"  {self._printed(chosen, shown, values, changed, len(groups))}")
        return [*found, f"  {RUNS}/{cell.run_id}"]

    def _cell(self, chosen: Place) -> PlacedRun:
        return self.cells[place_of(self.plan, chosen)]

    def _changes(self, cell: PlacedRun) -> list[ChangedSetting]:
        base = self.base.get(cell.place)
        if base is None:  # a row, or a column, that the table does not show
            return []
        call, before = cell.shown_reading.reading.call, base.shown_reading.reading.call
        also = []
        if isinstance(call, Last) and isinstance(before, Last) and call != before:
            also = [ChangedSetting("average_last", str(call.rounds), str(before.rounds))]
        return changes(cell.config, base.config) + also

    def _printed(
        self, chosen: Place, shown: ShownReading, values: dict[int, float | None], changed: list[ChangedSetting], codes: int = 1
    ) -> str:
        """The printed number with the difference, or why there is none. `codes`: how many different ones made the seeds."""
        if chosen.printed is None:
            return "the paper prints no such number"
        reasons = [] if self.full_scale else [f"scale {self.plan.scale}"]
        reasons += ["another table than the printed one"] if self.plan.stand_in else []
        reasons += ["the table runs on a budget"] if self.plan.on_budget else []
        reasons += [f"{' and '.join(change.key for change in changed)} changed"] if changed else []
        reasons += ["its seeds are of different code"] if codes > 1 else []
        printed = f"printed {shown.number(chosen.printed)}"
        if reasons:
            return f"{printed}: not comparable ({', '.join(reasons)})"
        known = [value for value in values.values() if value is not None]
        if len(known) < len(values):
            return f"{printed}: {unit(shown.unit).none} at a seed"
        return f"{printed}, difference {shown.number(round(mean(known) - chosen.printed, 6), '+')}"

    def _next(self) -> str:
        """A comparison of two of the runs, or of a changed one with the table's own, where both are there."""
        ids = list(dict.fromkeys(cell.run_id or "" for cell in self.chosen))
        there = [self.base.get(self._cell(cell).place) for cell in self.chosen]
        for other in (cell.run_id for cell in there if cell):
            if other not in ids and any(receipt_path(self.root, other, seed).exists() for seed in self.seeds):
                ids = [other, *ids]
                break
        if len(ids) == 1:
            return "fedrepro runs" + ("" if self.by_hand else f" {self.plan.paper}/{self.plan.table}")
        return f"fedrepro compare {' '.join(one.rpartition('-')[2] for one in ids[:MOST])}"


def summary(shown: ShownReading, values: dict[int, float | None]) -> str:
    """`85.20 ± 0.31 over seeds 8, 9, 10`: see `mean_text`."""
    seeds = ", ".join(map(str, values))
    if None in values.values():
        return f"{mean_text(shown, values)} of {seeds}"
    return f"{mean_text(shown, values)} {'over seeds' if len(values) > 1 else 'at seed'} {seeds}"


def mean_text(shown: ShownReading, values: dict[int, float | None]) -> str:
    """`85.20 ± 0.31`: mean and sample standard deviation over seeds; one that diverged or reached no target leaves no mean."""
    known = [value for value in values.values() if value is not None]
    if len(known) < len(values):
        return f"{unit(shown.unit).none} at seed {', '.join(str(seed) for seed, value in values.items() if value is None)}"
    deviation = f" ± {shown.number(statistics.stdev(known))}" if len(known) > 1 else ""
    return shown.number(mean(known)) + deviation


def reading_of(shown: ShownReading, config: dict[str, Any]) -> str:
    """`test accuracy, mean of the last 3 of 8 rounds`."""
    sign = unit(shown.unit).sign.strip()
    return f"{shown.reading.metric.replace('_', ' ')}{f' in {sign}' if sign else ''}, {shown.reading.over(config)}"
