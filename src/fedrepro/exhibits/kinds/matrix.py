"""A matrix between clients, as a heat map: a panel for each row and column of the figure, mean over seeds."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fedrepro.config.plan import Plan
from fedrepro.exhibits.kinds import panels, style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing, Kind, Series
from fedrepro.exhibits.kinds.measured import measurements_of, require_surface
from fedrepro.exhibits.receipt import Evidence
from fedrepro.exhibits.statistics import mean


@KINDS.register("matrix")
@dataclass(frozen=True)
class Matrix(Kind):
    """What a diagnostic measures at places (x, y), in the last round that it has. Fields with x = y are not drawn: they are
    often so high that nothing else is seen."""

    reads: ClassVar[bool] = False

    def drawn(self, plan: Plan, evidence: Evidence) -> Drawing:
        """Makes series: `x` and `to` are the places, `y` the values. Places without a value at some seed are left out, and so
        are cells with a diverged seed. UserError for a metric without places."""
        series = []
        for cell, by_seed in measurements_of(plan, evidence, self.name):
            for measured, number in by_seed.values():
                require_surface(plan, cell, measured, number, self.name)
            surfaces = [measured.surface(cell.metric.name, number) for measured, number in by_seed.values()]
            places = sorted(set.intersection(*map(set, surfaces)))
            if places:
                xs, ys = zip(*places, strict=True)
                series.append(
                    Series.of(cell, by_seed, y=tuple(mean([surface[at] for surface in surfaces]) for at in places), x=xs, to=ys)
                )
        return Drawing(plan, tuple(series), "x")

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws the fields. One without a value stays empty. Panels of one metric share their colours."""
        titles, shades = panels.titles(figure), dict[str, list[float]]()
        for series in figure.series:
            values = [value for x, y, value in zip(series.x, series.to, series.y, strict=True) if x != y]
            shades.setdefault(series.metric, []).extend(values)
        with style.panelled(path, style.title(figure.plan), titles, [], 3.6) as all_axes:
            for axes, series in zip(all_axes, figure.series, strict=True):
                size = int(max(*series.x, *series.to)) + 1
                fields = [[math.nan] * size for _ in range(size)]
                for x, y, value in zip(series.x, series.to, series.y, strict=True):
                    if x != y:
                        fields[int(x)][int(y)] = value
                ends = {"vmin": min(shades[series.metric], default=0), "vmax": max(shades[series.metric], default=1)}
                mesh = axes.pcolormesh(fields, cmap="Blues", edgecolors="white", linewidth=0.5, **ends)
                axes.set_aspect("equal")
                axes.invert_yaxis()
                ticks = range(0, size, max(1, math.ceil(size / 10)))
                axes.set_xticks([tick + 0.5 for tick in ticks], [str(tick) for tick in ticks])
                axes.set_yticks([tick + 0.5 for tick in ticks], [str(tick) for tick in ticks])
                axes.tick_params(length=0)
                axes.set_xlabel("client y")
                axes.set_ylabel("client x")
                label = f"{style.quantities([figure.metrics[series.metric]])} of client x to client y"
                axes.figure.colorbar(mesh, ax=axes, location="bottom", shrink=0.7, aspect=30, label=label)
