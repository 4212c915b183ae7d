"""Contours over the weights of three clients that sum to 1, as a triangle: a panel for each row and column of the figure."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fedrepro.config.plan import Plan
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Series
from fedrepro.exhibits.kinds.places import measured
from fedrepro.exhibits.kinds.plane import LOOKS, UP_TO, PlaneKind
from fedrepro.exhibits.receipt import Evidence

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

    name: ClassVar[str]
    looks: ClassVar[dict[str, tuple[str, str, str]]] = {
        "model": ("^", "black", "client's model"),
        "average": ("X", "white", "average by data size"),
        "lowest": LOOKS["lowest"],
        PATH: (".", style.COLOURS[3], "lowest points of all rounds"),
    }

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """As `plane`; behind the marks a series of the lowest points, in the order of their rounds."""
        found = super().drawn(plan, evidence)
        if not self.path:
            return found
        paths = {}
        for cell, of in measured(plan, evidence, self.name):
            seed = min(of) if self.seed is None else self.seed
            if seed in of:
                rounds = sorted(plan.run(cell).measures[cell.diagnostic or ""])
                marks = [of[seed][0].marks(cell.metric.name, number) for number in rounds]
                x, to, y = zip(*(one["lowest"] for one in marks if "lowest" in one), strict=True)
                name = f"{cell.metric.name}/{PATH}"
                paths[cell.row, cell.column] = Series(cell.row, cell.column, name, cell.run_id or "", (seed,), y=y, x=x, to=to)
        series: list[Series] = []
        for one in found.series:
            series.append(one)
            if (path := paths.pop((one.row, one.column), None)) is not None:  # the surface comes first
                series.append(path)
        return replace(found, series=tuple(series))

    def _frame(self, axes: Any) -> None:
        axes.plot([0, 1, 0.5, 0], [0, 0, HEIGHT, 0], color="black", linewidth=0.6)
        for place, name, across, beside in CORNERS:
            axes.annotate(name, place, beside, textcoords="offset points", ha=across, va="center", fontsize=8)
        axes.margins(0.12)
        axes.set_axis_off()

    def _contours(self, axes: Any, surface: Series) -> Any:
        import numpy as np

        low, high = float(np.min(surface.y)), float(np.quantile(surface.y, UP_TO))
        if not high > low or len({*surface.x}) < 2 or len({*surface.to}) < 2:
            return None
        levels = np.linspace(low, high, self.levels)
        mesh = axes.tricontourf(surface.x, surface.to, surface.y, levels, cmap="Blues", extend="max")
        axes.tricontour(surface.x, surface.to, surface.y, levels, colors="#404040", linewidths=0.3)
        return mesh
