"""Curves over rounds: a panel for each column, a line for each row, mean over seeds with a band."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fedrepro.config.plan import Place, Plan
from fedrepro.exhibits.kinds import panels, style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.values import band, require_band
from fedrepro.exhibits.receipt import Evidence, Receipt, why_mixed
from fedrepro.registry import require


@KINDS.register("curves")
@dataclass(frozen=True)
class Curves(Kind):
    """The metric of every round, mean over seeds. Where a seed diverged, the mean is over the others from that round on: a line
    for each set of seeds.

    `band`: from the lowest to the highest seed (range), one standard deviation to both sides (std), or none.
    `smooth`: rounds, an odd number, over which a Savitzky-Golay filter of order 2 smooths each seed; 1 leaves all as it is.
    `whole`: otherwise the first fifth of the rounds may start below the picture.
    `log`: the vertical axis is logarithmic.
    """

    band: str = "range"
    smooth: int = 1
    whole: bool = False
    log: bool = False

    reads: ClassVar[bool] = False
    shows_diverged: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_band(self.band)
        require(self.smooth == 1 or (self.smooth > 3 and self.smooth % 2 == 1), "smooth", self.smooth, "must be 1, 5, 7, ...")

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Makes a line for each cell."""
        return Drawing(plan, self.lines(plan.planned, evidence), "round")

    def lines(self, cells: Iterable[Place], evidence: Evidence) -> tuple[Series, ...]:
        """Makes the lines of the cells that have evidence."""
        return tuple(line for cell in cells for line in self._lines(cell, evidence.get(cell.run_id or "", {})))

    def _lines(self, cell: Place, receipts: dict[int, Receipt]) -> list[Series]:
        """Makes a line for each set of seeds that have not ended yet, the largest set first; none of seeds of different code or
        data, which have no mean."""
        if why_mixed(receipts.values()):
            return []
        curves = {seed: receipt.recorded(cell.reading.curve) for seed, receipt in receipts.items()}
        smoothed = {seed: self._smoothed(curve) for seed, curve in curves.items() if curve}
        ends = sorted({max(curve) for curve in smoothed.values()})
        parts = zip([-1, *ends], ends, strict=False)
        return [line for start, end in parts if (line := self._line(cell, smoothed, range(start + 1, end + 1)))]

    def _line(self, cell: Place, curves: dict[int, dict[int, float]], part: range) -> Series | None:
        """Averages the seeds that reach the end of this part of the rounds, where all of them were evaluated."""
        remaining = {seed: curve for seed, curve in curves.items() if max(curve) >= part[-1]}
        rounds = sorted(set.intersection(*(set(curve) for curve in remaining.values())) & set(part))
        values = [tuple(curve[number] for curve in remaining.values()) for number in rounds]
        means = [sum(seed_values) / len(seed_values) for seed_values in values]
        if not rounds:
            return None
        xs = tuple(number + 1 for number in rounds)  # evidence counts from 0, readers from 1
        low, high = band(self.band, values, means)
        return Series.of(cell, remaining, y=tuple(means), x=xs, low=low, high=high)

    def _smoothed(self, curve: dict[int, float]) -> dict[int, float]:
        if self.smooth == 1 or len(curve) < self.smooth:
            return curve
        from scipy.signal import savgol_filter

        smoothed = [float(value) for value in savgol_filter([*curve.values()], self.smooth, 2)]
        return dict(zip(curve, smoothed, strict=True))

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws a panel for each column that has a line."""
        from matplotlib.ticker import MaxNLocator

        with panels.by_column(figure, path) as columns:
            for axes, lines in columns:
                self.plot(axes, lines, figure.plan, style.quantities([figure.metrics[line.metric] for line in lines]))
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
    """Returns where the vertical axis starts: below all that follows the first fifth of the rounds, where methods differ. None
    if that fifth is less than one round."""
    last = max(line.x[-1] for line in lines) - 1
    if last < 5:
        return None
    late = [low for line in lines for x, low in zip(line.x, line.low or line.y, strict=True) if x - 1 >= last / 5]
    top = max(max(line.high or line.y) for line in lines)
    if top == min(late):  # single points: the axis would cut them in two
        return None
    return min(late) - 0.04 * (top - min(late)) - 1e-9
