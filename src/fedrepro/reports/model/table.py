"""The report of a table, as JSON has it: its cells and all that stands beside them."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from fedrepro.config.plan import Column, Row, Scale, Varied
from fedrepro.config.schema import Deviation, Disagreement, PrintedSeeds
from fedrepro.config.spreads import Spread
from fedrepro.config.table import Metric
from fedrepro.reports.model.choice import Choice
from fedrepro.reports.model.rule import Alternative, Rule, Status
from fedrepro.typed import doc
from fedrepro.units import unit


@dataclass(frozen=True)
class Readings:
    """The same runs read in other ways, means over seeds."""

    last: Annotated[float, doc("at the last round")]
    best: Annotated[float, doc("at the best one, picked on the test set")]
    mean_of_last: Annotated[dict[str, float], doc("as the mean of the last k, for the table's own k and 10")]


@dataclass(frozen=True)
class Cell:
    """One number of the table, in the metric's unit."""

    method: Annotated[str, doc("key of the row")]
    setting: Annotated[str, doc("key of the column")]
    method_label: str
    setting_label: str
    metric: str
    unit: Annotated[str, doc("of the metric")]
    digits: Annotated[int, doc("decimals at which its values are shown")]
    printed: Annotated[float | None, doc("the paper's number, or null")]
    note: Annotated[str, doc("what the printed table, or its transcription, says about the number")]
    line: Annotated[dict[str, str], doc("columns of the published file, and their values, that pick the printed number")]
    run_id: Annotated[str | None, doc("null when no run is planned")]
    method_spec: Annotated[str | None, doc("the method with every argument")]
    read: Annotated[str | None, doc("what is taken of a seed's curve, `last(rounds=10)`; null when no run is planned")] = None
    until_round: Annotated[int | None, doc("the last round that is read, counted from 1; null: the run's")] = None
    per_seed: Annotated[
        dict[int, float | None], doc('`{"8": 91.2, ...}`; null: that seed diverged; absent: it was not run')
    ] = field(default_factory=dict)
    runs: Annotated[
        tuple[str, ...], doc("keys of the runs behind the number, `<run_id>/seed<k>`, as MLflow's tag `fedrepro.run_key`")
    ] = ()
    mean: Annotated[
        float | None, doc("over seeds; null when any seed diverged, since a mean over the other seeds would be optimistic")
    ] = None
    std: Annotated[float | None, doc("sample standard deviation over seeds")] = None
    arithmetic: Annotated[
        Literal["portable", "native", "mixed"] | None,
        doc("of its runs; `portable`: the same bits on every x86-64 processor with AVX2; null without runs"),
    ] = None
    readings: Readings | None = None
    difference: Annotated[float | None, doc("measured minus printed; null unless comparable")] = None
    margin: Annotated[
        float | None,
        doc(
            "half the width of the 95 % prediction interval of the difference; null unless comparable, and where nothing is "
            "known of how seeds differ"
        ),
    ] = None
    status: Status = "not run"
    mixed: Annotated[tuple[str, ...], doc("parts of which the seeds have different code: they make no mean then")] = ()
    reason: Annotated[str | None, doc("why there is no number, or not from all seeds")] = None
    best_measured: Annotated[bool, doc("best of its column at the decimals shown; ties are all marked")] = False
    best_printed: bool = False

    @property
    def point(self) -> float:
        """One point in its unit."""
        return unit(self.unit).one_point(self.printed)


@dataclass(frozen=True)
class Value:
    """A value and where it holds."""

    where: Annotated[tuple[str, ...], doc("labels; empty: everywhere")]
    value: str


@dataclass(frozen=True)
class Ran:
    """Data, rounds, and what else a scale, a budget or a stand-in changes."""

    key: str
    values: Annotated[tuple[Value, ...], doc("ours, beside the paper's")]


@dataclass(frozen=True)
class Setting:
    """A setting and its values."""

    key: str
    varies: Annotated[Literal["no", "setting", "method", "cell"], doc("what the value depends on")]
    values: tuple[Value, ...]
    source: Annotated[str, doc("where the values come from")]


@dataclass(frozen=True)
class Data:
    """The data set really used for a group of columns."""

    printed: Annotated[str, doc("the group")]
    used: tuple[str, ...]


@dataclass(frozen=True)
class About:
    """The opening facts, all of them about the runs."""

    data: tuple[Data, ...]
    reported: Annotated[tuple[Value, ...], doc("over which rounds the values are")]
    seeds: tuple[int, ...]
    devices: tuple[str, ...]
    first_finished_at: str | None
    last_finished_at: str | None
    commits: tuple[str, ...]
    cells_measured: int
    cells: int
    runs_done: int
    published: Annotated[int, doc("of those: their evidence is published; the others were trained here")]
    runs_planned: int
    wall_s: Annotated[float, doc("seconds; rounds that several runs share are counted once")]
    peak_rss_mib: float | None
    sharing: Annotated[int, doc("runs that went on from another's rounds")] = 0


@dataclass(frozen=True)
class Score:
    """One method against another over settings."""

    settings: Annotated[int, doc("how many have a difference")]
    wins: int
    ties: Annotated[int, doc("equal as printed")]
    losses: int
    mean_difference: Annotated[float | None, doc("method minus baseline; measured: over the seeds that both have")]
    p_value: Annotated[float | None, doc("two-sided, of the exact Wilcoxon signed-rank test over settings")]


@dataclass(frozen=True)
class Comparison:
    """A pair of rows in one metric: every row against the first printed one, and `x+y` against `x`."""

    metric: str
    method: str
    baseline: str
    method_label: str
    baseline_label: str
    settings: Annotated[tuple[str, ...], doc("columns counted, each run once: of several columns that read one run, the last")]
    printed: Score
    measured: Score


@dataclass(frozen=True)
class MethodRun:
    """A row as it was run."""

    method: str
    label: str
    specs: Annotated[tuple[str, ...], doc("the methods with every argument; several when an argument depends on the setting")]


@dataclass(frozen=True)
class SeedCost:
    """What one seed cost, and where its evidence lies."""

    seed: int
    status: Literal["finished", "diverged"]
    wall_s: Annotated[float, doc("seconds; a seed's share, where several trained at once")]
    peak_rss_mib: Annotated[
        float | None, doc("peak memory, without what the workflow's loaded process shares and never touched")
    ]
    samples: int
    samples_per_second: float | None
    client_rounds: Annotated[int | None, doc("with the bytes: what a real deployment would send; null in older evidence")]
    bytes_up: int | None
    bytes_down: int | None
    finished_at: str
    commit: str | None
    evidence: Annotated[str, doc("path from the project root")]
    shared_s: Annotated[float, doc("of wall_s, what the rounds took that another run trained")] = 0.0


@dataclass(frozen=True)
class RunCost:
    """A run's cost; a run that several cells share is listed once."""

    run_id: str
    method: str
    setting: str
    seeds: tuple[SeedCost, ...]


@dataclass(frozen=True)
class ColumnCurves:
    """Learning curves of one column."""

    setting: Annotated[str, doc("key of the column")]
    path: Annotated[str, doc("from the project root")]


@dataclass(frozen=True)
class InputFile:
    """What runs read."""

    kind: str
    id: str
    seeds: tuple[int, ...]
    sha256: str


@dataclass(frozen=True)
class Provenance:
    """What computed the numbers, and from what."""

    versions: dict[str, tuple[str, ...]]
    inputs: tuple[InputFile, ...]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a table's own page and the page of its paper have in common."""

    table: str
    title: str
    source: str
    scale: Scale
    own: Annotated[bool, doc("with params.yaml's settings, under a short name; false: with the paper's, below its scale")]
    scale_note: Annotated[str, doc("with a budget, its note")]
    stand_in: Annotated[str | None, doc("why this is not the printed table (other data), or null")]
    on_budget: Annotated[bool, doc("whether the table declares at this scale what it spends")]
    comparable: Annotated[
        bool,
        doc(
            "true only at scale `full`, of a table that is no stand-in, has no budget there and is not edited in params.yaml: "
            "a measured number may be compared with a printed one"
        ),
    ]
    variant_of: Annotated[str | None, doc("the table that this one varies")]
    varied: Varied | None
    seeds: Annotated[tuple[int, ...], doc("the planned ones")]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[Cell, ...]
    ran: tuple[Ran, ...]
    warnings: Annotated[
        tuple[str, ...],
        doc("what to know before trusting the numbers: missing or diverged runs, commits, inputs that differ between methods"),
    ]
    counts: Annotated[dict[Status, int], doc("number of cells per status")]
    rule: Rule
    printed_seeds: PrintedSeeds
    spreads: Annotated[
        dict[str, Spread], doc("of each metric, what the paper's measurements of it say; empty unless comparable")
    ]
    remarks: Annotated[tuple[str, ...], doc("what the numbers show, filled from the evidence")]
    waiting: Annotated[tuple[str, ...], doc("the cells that further remarks wait for")] = ()
    figures: tuple[ColumnCurves, ...]
    choices: Annotated[tuple[Choice, ...], doc("of the tuned cells")] = ()
    tuning: Annotated[str | None, doc("the picture of their candidates; null without a tuned cell")] = None
    command: Annotated[str, doc("what to type to make the report again")]

    @property
    def ordered_rows(self) -> list[Row]:
        """Printed rows in the paper's order, then ours."""
        return sorted(self.rows, key=lambda row: not row.printed)

    def column(self, key: str) -> Column:
        """By its key."""
        return next(column for column in self.columns if column.key == key)


@dataclass(frozen=True, kw_only=True)
class Table(Shown):
    """The report of one table at one scale."""

    schema: Literal[2] = 2
    paper: str
    paper_name: str
    paper_title: str
    metric: Metric
    about: About
    rule_alternatives: Annotated[tuple[Alternative, ...], doc("empty unless comparable")]
    comparisons: tuple[Comparison, ...]
    methods: tuple[MethodRun, ...]
    settings: tuple[Setting, ...]
    cost: tuple[RunCost, ...]
    disagreements: tuple[Disagreement, ...]
    deviations: tuple[Deviation, ...]
    known_gaps: tuple[str, ...]
    provenance: Provenance
