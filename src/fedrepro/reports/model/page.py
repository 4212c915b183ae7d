"""The page of a paper at one scale, as JSON has it: all its tables, what they show together, and what is missing."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from fedrepro.config.schema import Deviation, Disagreement
from fedrepro.reports.model.table import RunCost, Shown, Status
from fedrepro.typed import doc

Verdict = Literal["reproduced", "direction only", "inconclusive", "contradicted", "not run", "not comparable"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class ClaimNumber:
    """A number that a claim rests on."""

    label: str
    column: Annotated[str, doc("key; of several, joined by commas")]
    printed: float | None
    ours: Annotated[float | None, doc("mean over seeds; null where one is missing or diverged")]
    low: Annotated[float | None, doc("with `high`: 95 % t-interval over paired seeds; null with one seed")]
    high: float | None
    per_seed: dict[int, float | None]
    runs: tuple[str, ...]
    verdict: Annotated[Verdict | None, doc("null where the number is only shown")]


@dataclass(frozen=True)
class ClaimVerdict:
    """What a paper claims, and whether it holds."""

    id: str
    text: Annotated[str, doc("what is judged, in our words")]
    says: Annotated[str | None, doc("the paper's own words; null: the claim is read off printed numbers")]
    where: Annotated[str, doc("where those words, or the numbers, stand")]
    kind: Annotated[str, doc("which kind of rule decides it")]
    rule: Annotated[str, doc("the whole rule in words")]
    verdict: Verdict
    why: Annotated[str, doc("what the verdict rests on, or what is missing")]
    numbers: tuple[ClaimNumber, ...]


@dataclass(frozen=True)
class GapSetting:
    """The difference of two methods in one setting."""

    setting: str
    label: str
    metric: str
    printed: float | None
    ours: Annotated[float | None, doc("the mean over the seeds that both have; a diverged seed leaves none")]
    low: Annotated[float | None, doc("with `high`: 95 % t-interval over paired seeds; null with one seed")]
    high: float | None
    per_seed: dict[int, float]
    runs: tuple[str, ...]
    reason: Annotated[str | None, doc("why nothing is measured")]


@dataclass(frozen=True)
class Gap:
    """How far two methods are apart: `x+y` and `x`, or a row and the first one."""

    table: str
    source: str
    scale: str
    comparable: bool
    method: str
    base: str
    method_label: str
    base_label: str
    unit: str
    settings: tuple[GapSetting, ...]
    path: Annotated[str, doc("of the picture")] = ""


@dataclass(frozen=True)
class Fit:
    """How near a reading of the paper comes to what it prints."""

    variant: Annotated[str | None, doc("null: the reading of the tables themselves")]
    tables: Annotated[dict[str, float | None], doc("the table varied: mean distance in its unit")]
    distance: Annotated[
        float | None, doc("over all of them; a number that several tables print counts once; null while one is missing")
    ]
    numbers: int
    missing: Annotated[int, doc("how many of the numbers are not measured yet")]


@dataclass(frozen=True)
class Partition:
    """The picture of a partition that the runs read."""

    id: str
    seed: int
    path: str
    tables: tuple[str, ...]
    dataset: str
    clients: int
    partition: str


@dataclass(frozen=True)
class PageFigure:
    """A figure with evidence."""

    figure: str
    source: str
    title: str
    caption: str
    path: Annotated[str, doc("of the picture; the data that it draws lie beside it as CSV and JSON")]
    warnings: Annotated[tuple[str, ...], doc("as those of a table")]
    command: Annotated[str, doc("what makes it")]


@dataclass(frozen=True)
class NotRun:
    """A table or a figure without evidence."""

    table: str
    source: str
    title: str
    command: Annotated[str, doc("what makes it")]


@dataclass(frozen=True)
class PageCost(RunCost):
    """A run's cost, and the tables that show it."""

    tables: tuple[str, ...]


@dataclass(frozen=True)
class Answers:
    """What a person reads first: sentences, filled from the evidence."""

    proposes: str
    fails: tuple[str, ...]
    open: Annotated[tuple[str, ...], doc("what the runs cannot tell")]
    holds: tuple[str, ...]
    missing: Annotated[str, doc("what could not be obtained")]
    waiting: Annotated[tuple[str, ...], doc("the cells that unwritten sentences wait for")] = ()


@dataclass(frozen=True)
class Changed:
    """A change of a rule or of claims after results had been read."""

    date: str
    what: str
    why: str
    claims: tuple[str, ...]
    moved: Annotated[dict[str, tuple[str, ...]], doc("`before → after`: the cells and claims of this paper")]
    counts: Annotated[str, doc("how many moved, where no more is known")]


@dataclass(frozen=True)
class PrintedShare:
    """How much of what a paper prints has been run at a scale."""

    measured: Annotated[int, doc("printed numbers of its tables that have a measured one beside them")]
    total: Annotated[int, doc("all that its tables print, without differences that follow from others")]


@dataclass(frozen=True)
class PageAbout:
    """The opening facts; a run that several tables share counts once."""

    data: tuple[str, ...]
    seeds: tuple[int, ...]
    devices: tuple[str, ...]
    first_finished_at: str | None
    last_finished_at: str | None
    commits: tuple[str, ...]
    tables_run: int
    tables: int
    cells_measured: int
    cells: int
    runs_done: int
    published: Annotated[int, doc("of those: their evidence is published; the others were trained here")]
    runs_planned: int
    wall_s: Annotated[float, doc("seconds; rounds that several runs share are counted once")]
    peak_rss_mib: float | None
    sharing: Annotated[int, doc("runs that went on from another's rounds")] = 0


@dataclass(frozen=True, kw_only=True)
class PageTable(Shown):
    """A table with evidence."""

    page: Annotated[str | None, doc("its own page, if that shows the same numbers")]


@dataclass(frozen=True, kw_only=True)
class Page:
    """All tables of a paper at one scale."""

    schema: Literal[2] = 2
    paper: str
    paper_name: str
    paper_title: str
    scale: str
    own: Annotated[bool, doc("with params.yaml's settings, under a short name; false: with the paper's, below its scale")]
    scale_note: Annotated[str, doc("empty where every table has its own")]
    about: PageAbout
    answers: Annotated[Answers | None, doc("null where nothing is said of the paper at this scale")] = None
    changes: Annotated[tuple[Changed, ...], doc("of rules and claims after results had been read, oldest first")] = ()
    printed: Annotated[PrintedShare, doc("of the numbers that the paper prints")]
    counts: Annotated[
        dict[Status, int],
        doc("number of cells per status, of tables that vary no other; what several tables print counts once"),
    ]
    verdicts: Annotated[dict[Verdict, int], doc("number of claims per verdict")]
    claims: tuple[ClaimVerdict, ...]
    tables: tuple[PageTable, ...]
    figures: tuple[PageFigure, ...] = ()
    not_run: tuple[NotRun, ...]
    fits: Annotated[tuple[Fit, ...], doc("nearest first")]
    gaps: tuple[Gap, ...]
    picture: Annotated[
        str | None, doc("of all measured numbers beside the printed ones; null where nothing may be compared")
    ] = None
    partitions: Annotated[tuple[Partition, ...], doc("those that were drawn here, or of which a copy is committed")]
    disagreements: tuple[Disagreement, ...]
    deviations: tuple[Deviation, ...]
    known_gaps: tuple[str, ...]
    cost: tuple[PageCost, ...]
    versions: dict[str, tuple[str, ...]]
    command: str
