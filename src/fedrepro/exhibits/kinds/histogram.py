"""Histograms of a metric over rounds and seeds: a panel for each column, an outline for each row."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fedrepro.config.plan import Place, Plan
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.receipt import Evidence, Receipt
from fedrepro.registry import require

HATCHES = (None, "////", "xxxx", "....")  # of stacked columns, where there are more than colours


@KINDS.register("histogram")
@dataclass(frozen=True)
class Histogram(Kind):
    """The metric's values of every round and every seed. Rounds without a value are left out.

    `bins` are equally wide and the same for all cells. `together`: all columns in one panel, their bins on top of each other.
    `runs`: instead of every round's value one for each seed, as the table reads it.
    """

    bins: int = 20
    together: bool = False
    runs: bool = False

    reads: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require(self.bins >= 1, "bins", self.bins, "must be at least 1")

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Counts the values of each cell in bins."""
        import numpy as np

        pairs = [(cell, receipts) for cell in plan.planned if (receipts := evidence.get(cell.run_id or "", {}))]
        values = [(cell, tuple(receipts), self._values(cell, receipts)) for cell, receipts in pairs]
        all_values = [value for *_, cell_values in values for value in cell_values]
        if not all_values:
            return Drawing(plan, (), "from", "count")
        edges = np.histogram_bin_edges(all_values, self.bins)
        series = []
        for cell, seeds, cell_values in values:
            counts = np.histogram(cell_values, edges)[0]
            ends = [float(edge) for edge in edges]
            series.append(Series.of(cell, seeds, y=tuple(map(int, counts)), x=tuple(ends[:-1]), to=tuple(ends[1:])))
        return Drawing(plan, tuple(series), "from", "count")

    def _values(self, cell: Place, receipts: dict[int, Receipt]) -> list[float]:
        if self.runs:
            return [value for receipt in receipts.values() if (value := receipt.value(cell.reading)) is not None]
        curves = [receipt.recorded(cell.reading.curve) for receipt in receipts.values()]
        return [value for curve in curves for value in curve.values() if math.isfinite(value)]

    @property
    def shows_diverged(self) -> bool:  # type: ignore[override]
        return not self.runs

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws outlines, so that all rows are seen; fields on top of each other with `together`."""
        columns, rows, looks = figure.columns, figure.rows, style.looks(figure.plan)
        panels = {"": columns} if self.together and columns else {column.title: [column] for column in columns}
        title = style.title(figure.plan)
        labels = [_name(column.title, row.label, self.together) for column in columns for row in rows]
        with style.panelled(path, title, list(panels), list(dict.fromkeys(labels))) as all_axes:
            for axes, panel_columns in zip(all_axes, panels.values(), strict=True):
                histograms = figure.of(panel_columns)
                below = [0.0] * len(histograms[0].y)
                for number, bins in enumerate(histograms):
                    # Of several columns each has its colour, or hatch.
                    column_colour = style.COLOURS[number % len(style.COLOURS)]
                    hatch = HATCHES[number // len(style.COLOURS) % len(HATCHES)] if self.together else None
                    edges, colour = (*bins.x, bins.to[-1]), column_colour if self.together else looks[bins.row].colour
                    label = _name(figure.plan.column(bins.column).title, figure.label(bins.row), self.together)
                    above = [low + y for low, y in zip(below, bins.y, strict=True)] if self.together else bins.y
                    base = list(below) if self.together else 0
                    alpha, named = (0.8, label) if self.together else (0.15, None)
                    field = {"alpha": alpha, "facecolor": colour, "edgecolor": "white", "linewidth": 0, "hatch": hatch}
                    axes.stairs(above, edges, baseline=base, fill=True, label=named, **field)
                    axes.stairs(above, edges, baseline=base, color=colour, linewidth=1.2, label=None if named else label)
                    below = list(above)
                axes.set_xlabel(style.quantities([figure.metrics[bins.metric] for bins in histograms]))
                axes.set_ylabel("runs" if self.runs else "values (rounds and seeds)")
                axes.grid(axis="y", alpha=0.25, linewidth=0.5)


def _name(column: str, row: str, together: bool) -> str:
    return f"{row}, {column}" if together else row
