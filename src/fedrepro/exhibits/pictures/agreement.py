"""Measured numbers against the printed ones: a page's first picture. On the diagonal they are the same."""

from collections.abc import Sequence
from pathlib import Path

from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.kinds.style import COLOURS, drawing

# Status -> colour and mark, so that colour is never all there is.
MARKS = {
    "reproduced": (COLOURS[3], "o"),
    "consistent": (COLOURS[5], "s"),
    "inconclusive": (COLOURS[6], "^"),
    "not reproduced": (COLOURS[2], "x"),
}


def draw(cells: Sequence[Cell], path: Path) -> None:
    """Draws cells that have a difference and are percentages."""
    values = [value for cell in cells for value in (cell.printed, cell.mean) if value is not None]
    margin = 0.06 * (max(values) - min(values)) + 0.5
    ends = (min(values) - margin, max(values) + margin)
    with drawing(path, height=3.5) as (figure, (axes,)):
        axes.plot(ends, ends, color=COLOURS[0], linewidth=1)
        for status, (colour, mark) in MARKS.items():
            group = [cell for cell in cells if cell.status == status]
            if group:
                points = [cell.printed for cell in group], [cell.mean for cell in group]
                axes.plot(*points, linestyle="none", marker=mark, markersize=5, color=colour, label=f"{status} ({len(group)})")
        axes.set_xlim(*ends)
        axes.set_ylim(*ends)
        axes.set_xlabel("printed (%)")
        axes.set_ylabel("measured (%)")
        axes.grid(alpha=0.25, linewidth=0.5)
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
