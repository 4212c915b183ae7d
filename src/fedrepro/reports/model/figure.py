"""A figure, as JSON has it: the data that it draws, and what stands beside them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fedrepro.config.plan import Column, Row, Scale
from fedrepro.config.table import Metric
from fedrepro.reports.model.table import Ran, RunCost
from fedrepro.typed import doc


@dataclass(frozen=True)
class Series:
    """What one cell of rows x columns draws: a line, a bar, a field of a map, the bins of a histogram, or points."""

    row: str
    column: str
    metric: str
    run_id: str
    seeds: tuple[int, ...]
    y: tuple[float, ...]
    x: Annotated[tuple[float, ...], doc("of each `y`; of a bin its lower end; empty where columns stand along the axis")] = ()
    to: Annotated[
        tuple[float, ...],
        doc("upper ends of bins; of a matrix the column of each `y`, whose row is `x`; of a plane its height"),
    ] = ()
    low: Annotated[tuple[float, ...], doc("with `high`: the band around `y`; empty without one")] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure at one scale."""

    schema: Literal[2] = 2
    paper: str
    paper_name: str
    paper_title: str
    figure: str
    title: str
    source: str
    caption: str
    kind: Annotated[str, doc("how it is drawn, with every argument")]
    scale: Scale
    scale_note: str
    stand_in: Annotated[str | None, doc("why its data are not the paper's, or null")]
    on_budget: bool
    seeds: Annotated[tuple[int, ...], doc("the planned ones")]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    metrics: Annotated[tuple[Metric, ...], doc("of all cells")]
    x: Annotated[str, doc("what `x` of the series is: `round`, a setting, an argument, a metric; empty: columns")]
    y: Annotated[str, doc("what `y` is: `value`, `difference`, `count` or `share`")]
    series: Annotated[
        tuple[Series, ...], doc("by row and column; a cell without a run, or with a diverged seed, may have none")
    ]
    ran: tuple[Ran, ...]
    warnings: Annotated[tuple[str, ...], doc("as those of a table: missing or diverged runs, commits, inputs that differ")]
    cost: tuple[RunCost, ...]
    command: Annotated[str, doc("what to type to make it again")]

    def title_of(self, column: str) -> str:
        """Group and label of a column."""
        return next(one.title for one in self.columns if one.key == column)

    def metric(self, name: str) -> Metric:
        """By its name."""
        return next(metric for metric in self.metrics if metric.name == name)
