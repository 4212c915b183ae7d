"""A table or a figure as measured: its plan, the evidence, and every view of them that pages, claims and sentences read."""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fedrepro.config.candidates import first_candidates, merged_seeds
from fedrepro.config.plan import Column, Plan
from fedrepro.exhibits import provenance, settings
from fedrepro.exhibits.cells import Cell, count_statuses, tabulate
from fedrepro.exhibits.choices import Choice, choose
from fedrepro.exhibits.comparisons import Comparison, Gap, comparisons, gaps
from fedrepro.exhibits.evidence import load_evidence
from fedrepro.exhibits.kinds.kind import Drawing, make_kind
from fedrepro.exhibits.receipt import Evidence, Receipt, receipts
from fedrepro.exhibits.statistics import first_reaching
from fedrepro.exhibits.verdict import Status
from fedrepro.store import Store, is_published

Curve = dict[int, float]  # round, counted from 1 -> value


@dataclass(frozen=True, eq=False)
class Exhibit:
    """`plan` has the chosen runs in its tuned cells; `evidence` has the receipts that the plan asks for. A view is computed
    at its first use and cached. It depends on the plan and the evidence alone."""

    plan: Plan
    evidence: Evidence
    choices: tuple[Choice, ...] = ()

    @classmethod
    def of(cls, plan: Plan, store: Store) -> "Exhibit":
        """Reads the evidence of a plan from the store. UserError for a damaged receipt."""
        return cls(*choose(plan, load_evidence(plan, store)))

    @cached_property
    def receipts(self) -> list[Receipt]:
        """The receipts of all runs and seeds."""
        return receipts(self.evidence)

    @cached_property
    def seeds_by_run(self) -> dict[str, tuple[int, ...]]:
        """run_id -> the seeds that the report needs."""
        return merged_seeds([*self.plan.seeds_by_run.items(), *((run_id, self.plan.seeds) for run_id in self.following)])

    @cached_property
    def following(self) -> list[str]:
        """The runs that tuned cells show: the chosen candidate's, and the first one's until all trials have run."""
        waiting = {(choice.place.row, choice.place.column) for choice in self.choices if not choice.complete}
        firsts = first_candidates(self.plan.candidates)
        firsts_of_waiting = [candidate for place, candidate in firsts.items() if place in waiting]
        chosen_cells = [cell for cell in self.plan.cells if cell.chosen]
        return list(dict.fromkeys(cell.run_id for cell in [*chosen_cells, *firsts_of_waiting] if cell.run_id))

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells, in the plan's order."""
        return tabulate(self.plan, self.evidence)

    @cached_property
    def _by_place(self) -> dict[tuple[str, str], Cell]:
        return {(cell.row.key, cell.column.key): cell for cell in self.cells}

    def cell(self, row: str, column: str) -> Cell | None:
        """Returns the cell at these keys; None if the table has no such cell."""
        return self._by_place.get((row, column))

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Key of a column -> the column."""
        return {column.key: column for column in self.plan.columns}

    @cached_property
    def counts(self) -> dict[Status, int]:
        """The number of cells of each status."""
        return count_statuses(self.cells)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """One method against another over all settings."""
        return comparisons(self.plan, self.cells)

    @cached_property
    def gaps(self) -> list[Gap]:
        """The differences between methods in each setting."""
        return gaps(self.plan, self.cells)

    @cached_property
    def cost(self) -> list[provenance.RunCost]:
        """The cost of every run with evidence."""
        return provenance.costs(self.evidence, self.cells, self.choices)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that a reader needs before the numbers."""
        drawn = {series.column for series in self.figure.series}
        empty = [column.title for column in self.plan.columns if column.key not in drawn]
        missing = (f"Nothing to draw of {'; '.join(empty)}.",) if drawn and empty else ()
        return (*provenance.warnings(self.plan, self.evidence, self.cells, sum(map(len, self.seeds_by_run.values()))), *missing)

    @cached_property
    def figure(self) -> Drawing:
        """The series that a figure draws; a table has none. UserError for a metric that no run records."""
        return make_kind(self.plan.kind).drawn(self.plan, self.evidence) if self.plan.kind else Drawing(self.plan, ())

    @property
    def data(self) -> dict[str, list[str]]:
        """Group of columns -> the data sets of its runs, with input shapes. If any run has evidence, only those with evidence
        count."""
        names_by_group: dict[str, dict[str, None]] = {}
        planned = self.plan.planned
        for place in [place for place in planned if self.evidence.get(place.run_id or "")] or planned:
            config, column = self.plan.run(place).config, self.columns[place.column]
            shape = config.get("input_shape")
            name = config["dataset"] + (f" ({settings.show(shape)})" if shape else "")
            names_by_group.setdefault(column.group or column.label, {})[name] = None
        return {group: list(names) for group, names in names_by_group.items()}

    @property
    def why_not_comparable(self) -> str:
        """The reason why a measured number is not comparable with a printed one."""
        if self.plan.stand_in:
            return "this is not the printed table: " + self.plan.stand_in
        scale = self.plan.scale
        return f"scale {scale} is not the paper's protocol" if scale != "full" else "the protocol is edited or on a budget"

    def missing(self, *places: tuple[str, str]) -> str:
        """Says which of the cells at (row, column) have not run; empty when all have."""
        reasons = []
        for row, column in places:
            cell, where = self.cell(row, column), f"{self.plan.source}: {self.name(row, column)}"
            if cell is None:
                reasons.append(f"{where}: not in the table at scale {self.plan.scale}")
                continue
            absent = [str(seed) for seed in self.plan.seeds if seed not in cell.per_seed]
            if cell.place.lost:
                continue
            if cell.run_id is None or len(absent) == len(self.plan.seeds):
                reasons.append(f"{where}: {cell.reason}")
            elif absent:
                reasons.append(f"{where}: no seed {', '.join(absent)} yet")
            elif cell.mixed:
                reasons.append(f"{where}: {cell.reason}")
        return "; ".join(dict.fromkeys(reasons))

    def curves(self, row: str, column: str, metric: str) -> dict[int, Curve | None]:
        """Returns seed -> {round, from 1: value}, up to the round that the column reads; None for a seed that diverged before
        it, {} for a run that does not record the metric."""
        cell = self.cell(row, column)
        if cell is None:
            return {}
        reading = cell.place.reading
        return {
            seed: None
            if receipt.diverges(reading)
            else {at: v for at, v in enumerate(receipt.curves.get(metric, [])[: reading.until], start=1) if v is not None}
            for seed, receipt in self.evidence.get(cell.run_id or "", {}).items()
        }

    def rounds_to_end(self, row: str, baseline: str, column: str) -> dict[int, float | None]:
        """Returns seed -> the round in which `row` first reaches what `baseline` ends with; None for a seed that diverged. A
        seed whose metric is not measured yet is left out."""
        end = self.cell(baseline, column)
        if end is None:
            return {}
        rounds: dict[int, float | None] = {}
        for seed, curve in self.curves(row, column, end.place.reading.curve).items():
            if seed in end.per_seed and curve != {}:
                target = end.per_seed[seed]
                rounds[seed] = None if curve is None or target is None else first_reaching(curve, target, end.metric.higher)
        return rounds

    def name(self, row: str, column: str = "") -> str:
        """Returns the label of a row, and the title of a column after it."""
        rows = {entry.key: entry.label for entry in self.plan.rows}
        title = self.columns[column].title if column in self.columns else column
        return rows.get(row, row) + (f", {title}" if column else "")


@dataclass(frozen=True)
class Totals:
    """How many runs some exhibits have and what these cost. A run that several exhibits share counts once."""

    runs_done: int
    published: int  # of those: their evidence is published; the others were trained here
    runs_planned: int
    wall_s: float  # seconds; rounds that several runs share are counted once
    gpu_s: float  # of these seconds, those of a GPU
    peak_rss_mib: float
    sharing: int  # runs that continued from another run's rounds
    finished: tuple[str, str] | None  # times of the first and the last finished run


def totals(*exhibits: Exhibit) -> Totals:
    """Adds up the evidence of the exhibits."""
    runs = list({(run.run_id, run.seed): run for exhibit in exhibits for run in exhibit.receipts}.values())
    planned = {(run_id, seed) for exhibit in exhibits for run_id, seeds in exhibit.seeds_by_run.items() for seed in seeds}
    dates = sorted(run.cost.finished_at for run in runs)
    return Totals(
        runs_done=len(runs),
        published=sum(is_published(Path(run.path)) for run in runs),
        runs_planned=len(planned),
        wall_s=round(math.fsum(run.cost.wall_s - run.cost.shared_s for run in runs), 1),
        gpu_s=round(math.fsum(run.cost.wall_s - run.cost.shared_s for run in runs if run.environment.device == "cuda"), 1),
        peak_rss_mib=max((run.cost.peak_rss_mib or 0.0 for run in runs), default=0.0),
        sharing=sum(run.cost.shared_s > 0 for run in runs),
        finished=(dates[0], dates[-1]) if dates else None,
    )
