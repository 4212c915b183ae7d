"""Curves over rounds: a panel for each column, a line for each row, mean over seeds with a band."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fedrepro.config.plan import Place, Plan
from fedrepro.exhibits.kinds import panels, style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Series
from fedrepro.exhibits.kinds.values import band, require_band
from fedrepro.exhibits.receipt import Evidence, Receipt
from fedrepro.registry import require


@KINDS.register("curves")
@dataclass(frozen=True)
class Curves:
    """The metric of every round, mean over seeds. A line ends at the round at which a seed diverges.

    `band`: from the lowest to the highest seed (range), one standard deviation to both sides (std), or none.
    `smooth`: rounds, an odd number, over which a Savitzky-Golay filter of order 2 smooths each seed; 1 leaves all as it is.
    `whole`: otherwise the first fifth of the rounds may start below the picture.
    `log`: the vertical axis is logarithmic.
    """

    band: str = "range"
    smooth: int = 1
    whole: bool = False
    log: bool = False

    name: ClassVar[str]
    reads: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_band(self.band)
        require(self.smooth == 1 or (self.smooth > 3 and self.smooth % 2 == 1), "smooth", self.smooth, "must be 1, 5, 7, ...")

    def check(self, rows: Sequence[str]) -> None:
        """All rows are fine."""

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """A line for each cell."""
        return Drawing(plan, self.lines(plan.planned, evidence), "round")

    def lines(self, cells: Iterable[Place], evidence: Evidence) -> tuple[Series, ...]:
        """Of those cells that have evidence."""
        found = (self._line(cell, evidence.get(cell.run_id or "", {})) for cell in cells)
        return tuple(line for line in found if line)

    def _line(self, cell: Place, receipts: dict[int, Receipt]) -> Series | None:
        """Over the rounds that were evaluated, until a seed has no finite value."""
        metric = cell.metric.name
        series = [
            dict(zip(one.curves["round"], one.curves.get(cell.reading.curve, []), strict=False)) for one in receipts.values()
        ]
        rounds: list[int] = []
        for number in sorted(set.intersection(*(set(one) for one in series))) if series else ():
            missing = [one[number] is None for one in series]
            if all(missing):  # not evaluated, or every seed has diverged
                continue
            if any(missing):
                break
            rounds.append(int(number or 0))
        if not rounds:
            return None
        smoothed = [self._smoothed([one[number] or 0.0 for number in rounds]) for one in series]
        values = list(zip(*smoothed, strict=True))
        means = [sum(each) / len(each) for each in values]
        ends = [band(self.band, each, centre) for each, centre in zip(values, means, strict=True)]
        known = [end for end in ends if end]
        return Series(
            *(cell.row, cell.column, metric, cell.run_id or "", tuple(receipts)),
            y=tuple(means),
            x=tuple(number + 1 for number in rounds),  # evidence counts from 0, readers from 1
            low=tuple(low for low, _ in known),
            high=tuple(high for _, high in known),
        )

    def _smoothed(self, values: list[float]) -> list[float]:
        if self.smooth == 1 or len(values) < self.smooth:
            return values
        from scipy.signal import savgol_filter

        return [float(value) for value in savgol_filter(values, self.smooth, 2)]

    def draw(self, figure: Drawing, path: Path) -> None:
        """A panel for each column that has a line."""
        from matplotlib.ticker import MaxNLocator

        with panels.by_column(figure, path) as columns:
            for axes, own in columns:
                self.plot(axes, own, figure.plan, style.quantities([figure.metrics[line.metric] for line in own]))
                if len(columns) > 1:
                    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))

    def plot(self, axes: Any, lines: Sequence[Series], plan: Plan, label: str) -> None:
        """Draws the lines in the looks of their rows. `label`: of the vertical axis."""
        from matplotlib.ticker import MaxNLocator

        panels.plot(axes, lines, plan, "communication round", label)
        if self.log:
            axes.set_yscale("log")
        elif not self.whole:
            axes.set_ylim(bottom=_bottom(lines))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _bottom(lines: Sequence[Series]) -> float | None:
    """Where the vertical axis starts: below all that follows the first fifth of the rounds, where methods differ."""
    last = max(line.x[-1] for line in lines) - 1
    late = [low for line in lines for x, low in zip(line.x, line.low or line.y, strict=True) if x - 1 >= last / 5]
    if not late:
        return None
    top = max(max(line.high or line.y) for line in lines)
    return min(late) - 0.04 * (top - min(late)) - 1e-9
