"""The style that all pictures of reports share: colours, a figure with one pair of axes, names of files."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedrepro.pictures import WIDTH, save, styled

# Okabe and Ito's colour-blind safe palette without yellow, which vanishes on white; beyond seven lines dashes tell them apart.
COLOURS = ("#7A7A7A", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))
OURS, PRINTED = COLOURS[1], COLOURS[2]


@contextmanager
def drawing(path: Path, height: float, hidden: tuple[str, ...] = ("top", "right")) -> Iterator[tuple[Any, Any]]:
    """(figure, axes) of `height` inches, without the `hidden` sides of the frame; written to `path` at the end."""
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    with styled():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        yield figure, axes
        axes.spines[list(hidden)].set_visible(False)
        save(figure, path)


def file_name(*parts: str) -> str:
    """Of a picture: the parts joined, without what file systems or links dislike."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', '-'.join(parts))}.svg"
