"""Settings of all pictures: size, text colours, and files whose bytes depend only on the drawing."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDTH = 5.2  # inches: text of 9 points stays readable where a phone shows the whole picture
LINE = 0.15  # inches: height of a line of such text
INK = "#404040"  # text and axes; pages replace it by their own text colour
STYLE: dict[str, Any] = {
    "svg.hashsalt": "fedrepro",  # identifiers inside the file depend on its content alone
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draws with STYLE and ignores the user's matplotlib settings."""
    import matplotlib.style

    with matplotlib.style.context(["default", STYLE], after_reset=True):
        yield


def save(figure: Any, path: Path) -> None:
    """Writes a figure that was drawn inside `styled`: equal drawings, equal bytes."""
    figure.savefig(path, format="svg", transparent=True, metadata={"Date": None, "Creator": None})


def wrapped(text: str, width: int) -> str:
    """`text` in lines of at most `width` characters, so that a picture does not cut it; what follows a dot stays with it."""
    return "\n".join(textwrap.wrap(text.replace(" · ", " ·\u00a0"), width, break_long_words=False))
