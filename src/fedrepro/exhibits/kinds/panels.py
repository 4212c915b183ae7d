"""Lines with bands in panels, for kinds that draw curves: a panel for each column; each row has a colour, a dash, a marker."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fedrepro.config.plan import Plan
from fedrepro.exhibits.kinds import style
from fedrepro.exhibits.kinds.kind import Drawing, Series

FEW = 12  # a line of at most 12 points marks them: otherwise every round would seem measured
MARKED = 8  # markers on a line of more points, which tell its row without the colour


@contextlib.contextmanager
def by_column(figure: Drawing, path: Path) -> Iterator[list[tuple[Any, list[Series]]]]:
    """Yields (axes, lines) of each column that has a line, and writes the picture to `path` at the end."""
    columns, labels = figure.columns, [row.label for row in figure.rows]
    with style.panelled(path, style.title(figure.plan), [column.title for column in columns], labels) as all_axes:
        yield [(axes, figure.of([column])) for axes, column in zip(all_axes, columns, strict=True)]


def plot(axes: Any, lines: Sequence[Series], plan: Plan, x: str, y: str) -> None:
    """Draws the lines and their bands. A row looks the same in every panel. Its lines after the first are of fewer seeds, and
    thin. `x` and `y`: labels of the axes."""
    looks, drawn_rows = style.looks(plan), set[str]()
    places = {row.key: place for place, row in enumerate(plan.rows)}
    for line in lines:
        (colour, dash), place = looks[line.row], places[line.row]
        width, label = (0.8, None) if line.row in drawn_rows else (1.5, plan.row(line.row).label)
        drawn_rows.add(line.row)
        if line.low:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.13, linewidth=0)
        apart = 1 if len(line.x) <= FEW else max(1, len(line.x) // MARKED)
        axes.plot(
            line.x,
            line.y,
            color=colour,
            linestyle=dash,
            linewidth=width,
            marker=style.MARKERS[place % len(style.MARKERS)] if len(places) > 1 or apart == 1 else None,
            markersize=3.5,
            markevery=(place * apart // len(places), apart),  # lines that meet have their markers at different rounds
            label=label,
        )
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.margins(x=0.01)


def titles(figure: Drawing) -> list[str]:
    """Makes a title for each pair of row and column that is drawn. It names the row where there are several."""
    several = len(figure.rows) > 1
    return [", ".join([figure.plan.column(c).title, *([figure.label(row)] if several else [])]) for row, c in figure.places]
