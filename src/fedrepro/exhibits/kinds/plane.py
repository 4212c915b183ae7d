"""Contours of what a diagnostic measures on a plane of models, which are marked: a panel for each row and column of the
figure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fedrepro.config.plan import Place, Plan
from fedrepro.engine.measurements import Measurements
from fedrepro.exhibits.kinds import panels, style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.measured import measurements_of, require_surface
from fedrepro.exhibits.receipt import Evidence

LEVELS = 12  # contours of a panel
UP_TO = 0.8  # share of the points below the highest contour: far from the models a loss can be a thousand times theirs
# Mark -> (shape, colour, name); all have a dark edge, and differ in shape.
LOOKS = {
    "model": ("^", "black", "model"),
    "average": ("X", "white", "average of the three"),
    "global": ("o", style.COLOURS[6], "global model"),
    "lowest": ("*", style.COLOURS[2], "lowest point"),
}


@KINDS.register("plane")
@dataclass(frozen=True)
class PlaneKind(Kind):
    """In the round that a cell is read at, or the last kept one before it. A plane is of the first seed that there is: each has
    its own models."""

    looks: ClassVar[dict[str, tuple[str, str, str]]] = LOOKS

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Makes series: `x` and `to` are the places, `y` the values; each mark has its own. UserError for a metric without
        places."""
        series = []
        for cell, by_seed in measurements_of(plan, evidence, self.name):
            seed = min(by_seed)
            (values, number), metric = by_seed[seed], cell.metric.name
            require_surface(plan, cell, values, number, self.name)
            surface = values.surface(metric, number)
            if not surface:  # nothing is finite
                continue
            xs, ys = zip(*sorted(surface), strict=True)
            series.append(Series.of(cell, [seed], y=tuple(surface[at] for at in sorted(surface)), x=xs, to=ys))
            series += self._behind_marks(plan, cell, seed, values)
            for mark, (x, y, value) in values.marks(metric, number).items():
                series.append(Series.of(cell, [seed], mark, y=(value,), x=(x,), to=(y,)))
        return Drawing(plan, tuple(series), "x")

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws contours and marks. Every panel has its own colours."""
        names = [name for *_, name in self.looks.values()]
        with style.panelled(path, style.title(figure.plan), panels.titles(figure), names, 3.2) as all_axes:
            for axes in all_axes[:1]:  # 0.1 inches: a scale does not touch the title of the panel below
                axes.figure.get_layout_engine().set(h_pad=0.1)
            for axes, (surface, *marks) in zip(all_axes, figure.places.values(), strict=True):
                mesh = self._contours(axes, surface)
                for mark in marks:
                    shape, colour, name = self.looks[mark.metric.rpartition("/")[2].partition("_")[0]]
                    size = 9 if shape in "*X" else 6
                    edge = "white" if colour == "black" else "black"  # seen on dark fields, too
                    look: dict[str, Any] = {"marker": shape, "color": colour, "markeredgecolor": edge, "label": name}
                    axes.plot(mark.x, mark.to, linestyle="none", markersize=size, markeredgewidth=0.8, **look)
                axes.set_aspect("equal")
                self._frame(axes)
                if mesh is not None:
                    label = style.quantities([figure.metrics[surface.metric]])
                    ticks = mesh.levels[[0, len(mesh.levels) // 2, -1]]  # more labels would overlap
                    scale = {"location": "bottom", "shrink": 0.8, "aspect": 30, "ticks": ticks, "format": "%.3g"}
                    axes.figure.colorbar(mesh, ax=axes, label=label, **scale)

    def _behind_marks(self, plan: Plan, cell: Place, seed: int, values: Measurements) -> list[Series]:
        """Makes the series that are drawn behind the marks."""
        return []

    def _frame(self, axes: Any) -> None:
        """Draws what stands around a panel."""
        axes.set_xlabel("x (distance in weights)")
        axes.set_ylabel("y (distance in weights)")

    def _contours(self, axes: Any, surface: Series) -> Any:
        """Draws fields between contours, dark where the value is high; None where all values are the same."""
        import numpy as np

        low, high = float(np.min(surface.y)), float(np.quantile(surface.y, UP_TO))
        if not high > low or min(len({*surface.x}), len({*surface.to})) < 2:
            return None
        levels = np.linspace(low, high, LEVELS)
        fields, lines, values = self._map(axes, surface)
        mesh = fields(*values, levels, cmap="Blues", extend="max")
        lines(*values, levels, colors="#404040", linewidths=0.3)
        return mesh

    def _map(self, axes: Any, surface: Series) -> tuple[Any, Any, tuple[Any, ...]]:
        """Returns what draws fields, what draws lines, and where values lie; a place without a value stays empty."""
        import numpy as np

        xs, ys = sorted({*surface.x}), sorted({*surface.to})
        field = np.full((len(ys), len(xs)), np.nan)
        column, row = ({at: place for place, at in enumerate(axis)} for axis in (xs, ys))
        for x, y, value in zip(surface.x, surface.to, surface.y, strict=True):
            field[row[y], column[x]] = value
        return axes.contourf, axes.contour, (xs, ys, field)
