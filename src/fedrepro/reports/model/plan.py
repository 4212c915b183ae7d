"""What a report is made from: the plan of a table. `fedrepro.reports.load` reads it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fedrepro import units
from fedrepro.config.reading import Reading, make
from fedrepro.reports.model.rule import Spread

Scale = Literal["demo", "short", "full", "edited-short", "edited-full"]


@dataclass(frozen=True)
class Metric:
    """What a column shows."""

    name: str
    unit: Annotated[str, "one of `fedrepro.units`: `percent`, `fraction`, ..."]
    description: str
    better: Literal["higher", "lower"]
    ranked: Annotated[bool, "false: no value is better than another; nothing is marked best, no rows are compared"] = True

    @property
    def digits(self) -> int:
        """Decimals at which its values are shown."""
        return units.unit(self.unit).digits

    @property
    def higher(self) -> bool:
        """Whether more is better."""
        return self.better == "higher"


@dataclass(frozen=True)
class Row:
    """A method."""

    key: str
    label: str
    printed: Annotated[bool, "false: the row is ours, the paper does not print it"]
    variant: Annotated[str | None, "the reading of the paper that the row belongs to, in a table of several"]
    name: Annotated[str, "the row's name among the printed numbers"] = field(metadata={"key": "as"})
    metric: Annotated[Metric | None, "what the row shows in the place of its columns' metric"] = None


@dataclass(frozen=True)
class Column:
    """A setting."""

    key: str
    label: str
    metric: Metric
    group: Annotated[str | None, "neighbouring columns of one group stand below it"] = None

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
    run_id: str | None  # None: no run is planned, for `reason`
    reason: str | None
    metric: Metric
    read: str | None  # what is taken of the run, `last(rounds=10)`; see `fedrepro.config.reading`
    average_last: int | None
    average_last_source: str | None
    note: str = ""
    line: dict[str, str] = field(default_factory=dict)  # columns of the published file, and their values, that pick the number
    diagnostic: str | None = None  # what measures the metric on kept models; None: the run records it
    instead_of: dict[str, Any] = field(default_factory=dict)  # setting -> the protocol's value, where a scale changes it
    unstated: dict[str, str] = field(default_factory=dict)  # those of them that no paper states -> whose they are
    tuned: bool = False  # the run is one of the plan's candidates, and follows from their evidence

    @property
    def reading(self) -> Reading:
        """What is taken of the run."""
        return Reading(self.metric.name, make(self.read or "last()"), self.metric.better, self.diagnostic)


@dataclass(frozen=True)
class Trial:
    """The run that a candidate is compared by."""

    run_id: str
    read: str
    seeds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Candidate(Place):
    """One of the runs that a tuned cell may show."""

    values: dict[str, Any]  # setting or part.argument -> what it tries
    trial: Trial
    also: Metric | None = None  # of a second reading of the same trial

    @property
    def trial_reading(self) -> Reading:
        """What is compared."""
        return Reading(self.metric.name, make(self.trial.read), self.metric.better)

    @property
    def also_reading(self) -> Reading | None:
        """What the trial is read by a second time, in the same way."""
        return self.also and Reading(self.also.name, make(self.trial.read), self.also.better)


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


@dataclass(frozen=True)
class Varied:
    """How a table differs from the one that it varies."""

    source: str
    values: Annotated[dict[str, list[Any]], "values of settings and arguments that no run of that one has"]


@dataclass(frozen=True)
class Deviation:
    """Where we differ from the paper."""

    id: str
    text: str
    short: Annotated[
        str, "in a few words, where what was run departs from what the paper states; empty: it is silent there"
    ] = ""


@dataclass(frozen=True)
class Disagreement:
    """Where a paper's text and its authors' code say different things."""

    what: str
    paper: str
    authors_code: str
    followed: str
    other: Annotated[dict[str, Any] | None, "what to write into params.yaml to run the other one"] = None


@dataclass(frozen=True)
class PrintedSeeds:
    """How many seeds a printed number is the mean of."""

    value: Annotated[int | None, "null: the paper does not say; the margin then takes 1"]
    source: str

    @property
    def assumed(self) -> int:
        """What the margin takes."""
        return self.value or 1


@dataclass(frozen=True)
class Plan:
    """A table at one scale."""

    paper: str
    paper_name: str
    paper_title: str
    table: str
    title: str
    source: str
    scale: Scale
    scale_note: str
    comparable: bool
    stand_in: str | None
    on_budget: bool
    seeds: tuple[int, ...]
    printed_seeds: PrintedSeeds
    metric: Metric
    variant_of: str | None
    varied: Varied | None
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[Place, ...]
    runs: dict[str, Run]
    asked: dict[str, tuple[int, ...]]  # run_id -> seeds that the report needs; those of candidates are added once chosen
    candidates: tuple[Candidate, ...] = ()
    spreads: dict[str, Spread] = field(default_factory=dict)  # of each metric; where measured and printed are compared
    remarks: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    known_gaps: tuple[str, ...] = ()
    kind: str | None = None  # of a figure: how it is drawn
    caption: str | None = None  # of a figure

    @property
    def planned(self) -> list[Place]:
        """The cells that have a run."""
        return [cell for cell in self.cells if cell.run_id]

    @property
    def command(self) -> str:
        """What makes the report."""
        return f"snakemake --cores 8 reports/{self.scale}/{self.paper}/{self.table}.{'svg' if self.kind else 'md'}"

    def row(self, key: str) -> Row:
        """By its key."""
        return next(row for row in self.rows if row.key == key)

    def column(self, key: str) -> Column:
        """By its key."""
        return next(column for column in self.columns if column.key == key)

    def run(self, cell: Place) -> Run:
        """The run of a planned cell."""
        return self.runs[cell.run_id or ""]

    @property
    def runs_asked(self) -> int:
        """How many trainings the report needs, each of one run and seed."""
        return sum(map(len, self.asked.values()))

    def candidates_of(self, cell: Place) -> list[Candidate]:
        """Of a tuned cell, in the order of its grid."""
        return [one for one in self.candidates if (one.row, one.column) == (cell.row, cell.column)]

    def readings(self) -> Iterator[tuple[Place, Run, Reading]]:
        """Every planned cell with its run and what it takes of it."""
        for cell in self.planned:
            yield cell, self.run(cell), cell.reading
