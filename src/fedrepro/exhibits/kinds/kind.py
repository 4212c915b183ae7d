"""What a kind of figure is: a registered frozen dataclass that makes series of a plan's evidence, and a picture of series."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fedrepro.config.plan import Column, Place, Plan, Row
from fedrepro.config.table import Metric
from fedrepro.exhibits.kinds.values import bases
from fedrepro.exhibits.receipt import Evidence
from fedrepro.grouping import grouped
from fedrepro.registry import Registry, parse, require

KINDS = Registry("kind of figure")


@dataclass(frozen=True)
class Series:
    """What one cell of rows x columns draws: a line, a bar, a field of a map, the bins of a histogram, or points. A curve whose
    seeds end at different rounds has several.

    `x` of each `y`: of a bin its lower end; empty where columns stand along the axis. `to`: upper ends of bins; of a matrix the
    column of each `y`, whose row is `x`; of a plane its height. `low`, `high`: the band around `y`; empty without one.
    """

    row: str
    column: str
    metric: str
    run_id: str
    seeds: tuple[int, ...]
    y: tuple[float, ...]
    x: tuple[float, ...] = ()
    to: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    @classmethod
    def of(cls, cell: Place, seeds: Iterable[int], part: str = "", **numbers: tuple[float, ...]) -> "Series":
        """Makes the series that a cell draws of its run at these seeds. `part`: which of the cell's series it is, where a kind
        draws several."""
        metric = f"{cell.metric.name}/{part}" if part else cell.metric.name
        return cls(cell.row, cell.column, metric, cell.run_id or "", tuple(seeds), **numbers)


@dataclass(frozen=True)
class Drawing:
    """The data of a picture, by row and column. `x`: what the series' `x` is, `round`, a setting, an argument, a metric; empty
    where columns stand there. `y`: `value`, `difference`, `count` or `share`."""

    plan: Plan
    series: tuple[Series, ...]
    x: str = ""
    y: str = "value"

    @property
    def rows(self) -> list[Row]:
        """The rows that are drawn."""
        drawn = {series.row for series in self.series}
        return [row for row in self.plan.rows if row.key in drawn]

    @property
    def columns(self) -> list[Column]:
        """The columns that are drawn."""
        drawn = {series.column for series in self.series}
        return [column for column in self.plan.columns if column.key in drawn]

    @property
    def places(self) -> dict[tuple[str, str], list[Series]]:
        """(row, column) -> the drawn series of that cell."""
        return grouped(((series.row, series.column), series) for series in self.series)

    @property
    def groups(self) -> dict[str, list[Column]]:
        """Group of columns -> the columns of it that are drawn."""
        return grouped((column.group or "", column) for column in self.columns)

    @property
    def metrics(self) -> dict[str, Metric]:
        """Name -> metric, of all planned cells."""
        return {place.metric.name: place.metric for place in self.plan.planned}

    def of(self, columns: Sequence[Column]) -> list[Series]:
        """Lists the series of these columns."""
        keys = {column.key for column in columns}
        return [series for series in self.series if series.column in keys]

    def label(self, row: str) -> str:
        """Returns the label of a row; the key itself where it is the beginning of several keys."""
        return next((entry.label for entry in self.plan.rows if entry.key == row), row)


class Kind:
    """What a kind inherits. The arguments are the dataclass's fields, checked in `__post_init__`."""

    name: ClassVar[str]
    minus: str = ""  # a row whose number is taken away, of kinds that have it as a field
    reads: ClassVar[bool] = True  # whether it takes one number of a seed's curve, by `read`
    shows_diverged: ClassVar[bool] = False  # whether it shows a diverged run up to the round of divergence

    def check(self, rows: Sequence[str]) -> None:
        """UserError where `minus` is none of a figure's rows, of a kind that has it; called when the figure's file is read."""
        if self.minus:
            bases(rows, self.minus)

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Makes the series of the cells that have evidence. UserError for a metric that no run records."""
        raise NotImplementedError

    def draw(self, figure: Drawing, path: Path) -> None:
        """Writes the picture. Its bytes depend on `figure` alone."""
        raise NotImplementedError


def make_kind(text: str) -> Kind:
    """Makes the kind that `text` names, `curves(band=std)`. UserError for an unknown one."""
    (call, *more) = parse(text)
    require(not more, "kind", text, "must be one kind of figure; leave out what follows +")
    return KINDS.make(call)
