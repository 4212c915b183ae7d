"""Counts by client and class: clients downwards, classes across, a panel for each row and column of the figure."""

import math
from dataclasses import dataclass
from pathlib import Path

from fedrepro.exhibits.kinds import panels, style
from fedrepro.exhibits.kinds.kind import KINDS, Drawing
from fedrepro.exhibits.kinds.matrix import Matrix
from fedrepro.units import decimal

NUMBERS = 24  # with more clients or classes there is no room for them


@KINDS.register("counts")
@dataclass(frozen=True)
class Counts(Matrix):
    """What a diagnostic counts at (client, class), `class_counts`; of several seeds the mean. Fields without any stay empty."""

    def draw(self, figure: Drawing, path: Path) -> None:
        """Draws the counts as colours of their panel, and writes them where there is room."""
        titles = panels.titles(figure)
        tall = 1.0 + 0.2 * max((max(series.x) + 1 for series in figure.series), default=1.0)
        with style.panelled(path, style.title(figure.plan), titles, [], tall) as all_axes:
            for axes, series in zip(all_axes, figure.series, strict=True):
                clients, classes, top = int(max(series.x)) + 1, int(max(series.to)) + 1, max(series.y)
                fields = [[math.nan] * classes for _ in range(clients)]
                for client, label, count in zip(series.x, series.to, series.y, strict=True):
                    fields[int(client)][int(label)] = count or math.nan
                    if count and max(clients, classes) <= NUMBERS:
                        colour = "white" if count > 0.6 * top else "black"
                        number = decimal(count, 0 if count == int(count) else 1)
                        axes.text(label + 0.5, client + 0.5, number, ha="center", va="center", color=colour, fontsize=6)
                axes.pcolormesh(fields, cmap="Blues", edgecolors="white", linewidth=0.5, vmin=0, vmax=top)
                axes.invert_yaxis()
                for axis, size in ((axes.xaxis, classes), (axes.yaxis, clients)):
                    ticks = range(0, size, max(1, math.ceil(size / 20)))
                    axis.set_ticks([tick + 0.5 for tick in ticks], [str(tick) for tick in ticks])
                axes.tick_params(length=0)
                axes.set_xlabel("class")
                axes.set_ylabel("client")
