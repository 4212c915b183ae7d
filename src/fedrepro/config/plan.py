"""The plan of a table or a figure: its cells, and every run that they need.

`fedrepro.config.grid` makes it; the workflow, the command line, reports and MLflow read it. As JSON it is one file.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from fedrepro.config.places import report_folder
from fedrepro.config.reading import Reading, make
from fedrepro.config.schema import Deviation, Disagreement, PrintedSeeds
from fedrepro.config.spreads import Spread
from fedrepro.config.table import Metric
from fedrepro.engine.forks import Fork
from fedrepro.engine.identity import require_settings
from fedrepro.engine.receipts import IDENTITY
from fedrepro.errors import UserError
from fedrepro.files import again, read_json
from fedrepro.registry import Call, parse
from fedrepro.typed import typed

PLANS, CONFIGS = Path("results/plans"), Path("results/configs")  # of tables; of each run that the workflow trains for one
SCHEMA = 11  # raise it when a key changes its meaning or goes away
Scale = Literal["demo", "short", "full"]


@dataclass(frozen=True)
class Row:
    """A method."""

    key: str
    label: str
    printed: bool  # False: the row is ours, the paper does not print it
    variant: str | None  # the reading of the paper that the row belongs to, in a table of several readings
    name: str  # of the row among the printed numbers
    metric: Metric | None = None  # what the row shows instead of its columns' metric


@dataclass(frozen=True)
class Column:
    """A setting."""

    key: str
    label: str
    metric: Metric
    group: str | None = None  # the head over neighbouring columns

    @property
    def title(self) -> str:
        """`FashionMNIST · MLP, α = 100`."""
        return " · ".join(part for part in (self.group, self.label) if part)


@dataclass(frozen=True)
class Place:
    """A row in a column, and the run that it takes its number from."""

    row: str
    column: str
    printed: float | None
    metric: Metric
    run_id: str | None = None
    reason: str | None = None  # why no run is planned, or of a tuned cell why no candidate is chosen
    read: str | None = None  # how the run is read, `last(rounds=10)`; see `fedrepro.config.reading`
    average_last: int | None = None
    average_last_source: str | None = None
    note: str = ""
    line: dict[str, str] = field(default_factory=dict)  # columns of the published file, and their values, that pick the number
    instead_of: dict[str, Any] = field(default_factory=dict)  # setting -> the protocol's value, where a scale changes it
    unstated: dict[str, str] = field(default_factory=dict)  # those of them that no paper states -> whose they are
    tuned: bool = False  # the run is one of the plan's candidates, and follows from their evidence
    values: dict[str, Any] = field(default_factory=dict)  # of a candidate: setting or part.argument -> what it tries

    @property
    def chosen(self) -> bool:
        """Whether the cell is tuned and has the run that was chosen for it."""
        return self.tuned and self.run_id is not None and self.reason is None

    @property
    def lost(self) -> bool:
        """Whether the cell is tuned and no candidate has a value: it shows the first one's trial, and no run follows."""
        return self.tuned and self.run_id is not None and self.reason is not None

    @property
    def diagnostic(self) -> str | None:
        """What measures the metric on kept models; None: the run records it."""
        return self.metric.diagnostic

    @property
    def reading(self) -> Reading:
        """How the run is read."""
        return Reading(self.metric.name, make(self.read or "last()"), self.metric.better, self.diagnostic, self.metric.unit)


@dataclass(frozen=True)
class Trial:
    """The run that a candidate is compared by."""

    run_id: str
    read: str
    seeds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Candidate(Place):
    """One of the runs that a tuned cell may show."""

    trial: Trial
    also: Metric | None = None  # of a second reading of the same trial

    @property
    def cell(self) -> Place:
        """The cell, if this candidate is chosen."""
        return Place(**{attribute.name: getattr(self, attribute.name) for attribute in fields(Place)})

    @property
    def trial_reading(self) -> Reading:
        """How the trial is read, to compare the candidates."""
        return Reading(self.metric.name, make(self.trial.read), self.metric.better, unit=self.metric.unit)

    @property
    def also_reading(self) -> Reading | None:
        """The second reading of the trial, in the same way."""
        return self.also and Reading(self.also.name, make(self.trial.read), self.also.better, unit=self.also.unit)


@dataclass(frozen=True)
class Run:
    """One setting and method."""

    run_id: str
    method: str  # with every argument
    method_label: str
    config: dict[str, Any]
    inputs: dict[str, Any]  # kind -> identity
    sources: dict[str, Any] = field(default_factory=dict)  # setting -> where its value is from
    argument_sources: dict[str, Any] = field(default_factory=dict)
    keep: list[int] = field(default_factory=list)  # rounds, counted from 1, whose models are kept
    measures: dict[str, list[int]] = field(default_factory=dict)  # diagnostic -> those of them that something is read of
    forks: list[Fork] = field(default_factory=list)  # where the run parts from others of the plan, whose rounds it shares

    @property
    def calls(self) -> list[Call]:
        """The parts of the method, each with every argument."""
        return parse(self.method)

    @property
    def ahead(self) -> str:
        """The run that trains the shared rounds of this one first; "" if it is this run, or if no rounds are shared."""
        first = self.forks[-1].runs[0] if self.forks else ""
        return first if first != self.run_id else ""

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that its run_id decides alone, as training takes them. The wording of sources may change."""
        return {key: getattr(self, key) for key in IDENTITY}


@dataclass(frozen=True)
class Varied:
    """How a table differs from the one that it varies."""

    source: str
    values: dict[str, list[Any]]  # of settings and arguments, those that no run of that table has


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A table at one scale."""

    schema: Literal[11] = SCHEMA

    paper: str
    paper_name: str
    paper_title: str
    table: str
    title: str
    source: str
    scale: Scale
    own: bool  # True: params.yaml's settings, under a short name; False: the paper's, below its scale
    scale_note: str
    comparable: bool
    stand_in: str | None
    on_budget: bool
    seeds: tuple[int, ...]
    printed_seeds: PrintedSeeds
    variant_of: str | None
    varied: Varied | None
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[Place, ...]
    runs: dict[str, Run]
    seeds_by_run: dict[str, tuple[int, ...]]  # run_id -> seeds that the report needs; those of candidates are added once chosen
    candidates: tuple[Candidate, ...] = ()
    spreads: dict[str, Spread] = field(default_factory=dict)  # of each metric; where measured and printed are compared
    paper_url: str = ""
    remarks: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    known_gaps: tuple[str, ...] = ()
    kind: str | None = None  # of a figure: how it is drawn
    caption: str | None = None  # of a figure

    @property
    def folder(self) -> str:
        """Where its report lies."""
        return report_folder(self.paper, None if self.own else self.scale)

    @property
    def page(self) -> str:
        """The page of all its paper's tables."""
        return f"reports/{self.paper if self.own else f'{self.scale}/{self.paper}'}/index.html"

    @property
    def planned(self) -> list[Place]:
        """The cells that have a run."""
        return [cell for cell in self.cells if cell.run_id]

    @property
    def printed_first(self) -> list[Row]:
        """Printed rows in the paper's order, then ours."""
        return sorted(self.rows, key=lambda row: not row.printed)

    @property
    def prints(self) -> bool:
        """Whether the paper prints any number of it."""
        return any(cell.printed is not None for cell in self.cells)

    @property
    def command(self) -> str:
        """What makes the report."""
        return f"snakemake --cores 8 {self.folder}/{self.table}.{'svg' if self.kind else 'md'}"

    def row(self, key: str) -> Row:
        """The row with this key."""
        return next(row for row in self.rows if row.key == key)

    def column(self, key: str) -> Column:
        """The column with this key."""
        return next(column for column in self.columns if column.key == key)

    def run(self, cell: Place) -> Run:
        """The run of a planned cell."""
        return self.runs[cell.run_id or ""]

    def candidates_of(self, cell: Place) -> list[Candidate]:
        """The candidates of a tuned cell, in the order of its grid."""
        return [candidate for candidate in self.candidates if (candidate.row, candidate.column) == (cell.row, cell.column)]

    def readings(self) -> Iterator[tuple[Place, Run, Reading]]:
        """Yields every planned cell with its run and its reading."""
        for cell in self.planned:
            yield cell, self.run(cell), cell.reading

    def tried(self) -> Iterator[tuple[Candidate, Run, Reading]]:
        """Every candidate with the run that it would show; where its trial is another run, with that too."""
        for candidate in self.candidates:
            yield candidate, self.run(candidate), candidate.reading
            if candidate.trial.run_id != candidate.run_id:
                trial = replace(
                    candidate,
                    run_id=candidate.trial.run_id,
                    read=candidate.trial.read,
                    values=candidate.values | {"rounds": "trial"},
                )
                yield trial, self.run(trial), trial.reading


def rounds_of_both(measures: dict[str, list[int]], other_measures: dict[str, list[int]]) -> dict[str, list[int]]:
    """Diagnostic -> the rounds that either of two tables reads."""
    return {
        call: sorted({*measures.get(call, []), *other_measures.get(call, [])})
        for call in [*measures, *(other_measures.keys() - measures.keys())]
    }


def load_plan(path: Path) -> Plan:
    """The plan in a file. UserError where that is missing, is no plan of this version, or names a run by another's id."""
    content = read_json(path)
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        raise UserError(f"{path}: not a plan of schema {SCHEMA}; {again(path)}")
    plan = typed(Plan, content, path)
    for run in plan.runs.values():
        require_settings(run.identity, path, again(path))
    return plan
