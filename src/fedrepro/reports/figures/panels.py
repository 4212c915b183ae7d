"""Lines with bands in panels, for kinds that draw curves: a panel for each column, a colour and a dash for each row."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fedrepro.reports.figures import style
from fedrepro.reports.model import Figure, Series

Rows = dict[str, tuple[int, str]]  # key of a row -> its place, which decides its colour, and its label


def rows(figure: Figure) -> Rows:
    """All of a figure, so that a row has one colour in each panel."""
    return {row.key: (place, row.label) for place, row in enumerate(figure.rows)}


@contextlib.contextmanager
def by_column(figure: Figure, path: Path) -> Iterator[list[tuple[Any, list[Series]]]]:
    """(axes, lines) of each column that has a line; the picture is written to `path` at the end."""
    columns = [one for one in figure.columns if any(line.column == one.key for line in figure.series)]
    labels = [row.label for row in figure.rows if any(line.row == row.key for line in figure.series)]
    title = style.scaled_title(figure.title, figure.scale)
    with style.panelled(path, title, [one.title for one in columns], labels) as found:
        of = [[line for line in figure.series if line.column == one.key] for one in columns]
        yield list(zip(found, of, strict=True))


def plot(axes: Any, lines: Sequence[Series], known: Rows, x: str, y: str) -> None:
    """Draws the lines and their bands; `x` and `y` are the labels of the axes."""
    for line in lines:
        place, name = known[line.row]
        if line.low:
            axes.fill_between(line.x, line.low, line.high, color=style.colour(place), alpha=0.13, linewidth=0)
        axes.plot(line.x, line.y, color=style.colour(place), linestyle=style.dash(place), linewidth=1.5, label=name)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.margins(x=0.01)
