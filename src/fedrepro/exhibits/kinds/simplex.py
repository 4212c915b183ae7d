"""Contours over the weights of three clients that sum to 1, as a triangle: a panel for each row and column of the figure."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.config.plan import Place, Plan
from fedrepro.engine.measurements import Measurements
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import KINDS, Series
from fedrepro.exhibits.kinds.measured import rounds_reached
from fedrepro.exhibits.kinds.plane import LOOKS, PlaneKind

HEIGHT = 3**0.5 / 2
# Corner, name, and where in points the name stands beside it: as the diagnostic `simplex` places clients.
CORNERS = (
    ((0.0, 0.0), "first", "right", (0, -10)),
    ((1.0, 0.0), "second", "left", (0, -10)),
    ((0.5, HEIGHT), "third", "right", (-10, -4)),
)
PATH = "path"


@KINDS.register("simplex")
@dataclass(frozen=True)
class SimplexKind(PlaneKind):
    """As `plane`, of the diagnostic `simplex`: the corners are clients, and a point's lambda are its distances from the sides.

    `path`: the lowest points of all rounds that the figure reads are drawn as dots.
    """

    path: bool = False

    looks: ClassVar[dict[str, tuple[str, str, str]]] = {
        "model": ("^", "black", "client's model"),
        "average": ("X", "white", "average by data size"),
        "lowest": LOOKS["lowest"],
        PATH: (".", style.COLOURS[3], "lowest points of all rounds"),
    }

    def _behind_marks(self, plan: Plan, cell: Place, seed: int, values: Measurements) -> list[Series]:
        """Makes a series of the lowest points, in the order of their rounds."""
        if not self.path:
            return []
        marks = [values.marks(cell.metric.name, number) for number in sorted(rounds_reached(plan, cell))]
        if not (lowest := [mark["lowest"] for mark in marks if "lowest" in mark]):
            return []
        x, to, y = zip(*lowest, strict=True)
        return [Series.of(cell, [seed], PATH, y=y, x=x, to=to)]

    def _frame(self, axes: Any) -> None:
        axes.plot([0, 1, 0.5, 0], [0, 0, HEIGHT, 0], color="black", linewidth=0.6)
        for place, name, across, beside in CORNERS:
            axes.annotate(name, place, beside, textcoords="offset points", ha=across, va="center", fontsize=8)
        axes.margins(0.12)
        axes.set_axis_off()

    def _map(self, axes: Any, surface: Series) -> tuple[Any, Any, tuple[Any, ...]]:
        return axes.tricontourf, axes.tricontour, (surface.x, surface.to, surface.y)
