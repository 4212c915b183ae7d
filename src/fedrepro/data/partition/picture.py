"""A picture of a partition: clients across, classes upwards, colour for the number of samples."""

from pathlib import Path

import numpy as np

from fedrepro.files import write_atomic

_CELLS_WITH_NUMBERS = 240  # above this the numbers would not be legible


def save_picture(path: Path, class_counts: np.ndarray, title: str) -> Path:
    """Writes an SVG of `class_counts` [n, classes]. Equal counts and title give equal bytes in one environment."""
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    clients, classes = class_counts.shape
    # A user's own matplotlib settings, random ids and the date of drawing would all change the file.
    fixed = {"svg.hashsalt": "fedrepro", "svg.fonttype": "none", "font.size": 9}
    with matplotlib.style.context(["default", fixed], after_reset=True):
        figure = Figure(figsize=(min(12.0, 2.5 + 0.42 * clients), min(12.0, 1.3 + 0.3 * classes)), layout="constrained")
        FigureCanvasAgg(figure)  # Agg: no display is needed
        axes = figure.add_subplot()
        image = axes.imshow(class_counts.T, cmap="Blues", aspect="auto", origin="lower", interpolation="nearest", vmin=0)
        axes.set(title=title, xlabel="client", ylabel="class")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        figure.colorbar(image, label="samples")
        if clients * classes <= _CELLS_WITH_NUMBERS:
            dark = class_counts.max() / 2
            for (client, label), count in np.ndenumerate(class_counts):
                colour = "white" if count > dark else "black"
                axes.text(client, label, str(count), ha="center", va="center", fontsize=7, color=colour)
        metadata = {"Date": None, "Creator": "fedrepro"}
        return write_atomic(path, lambda temporary: figure.savefig(temporary, format="svg", metadata=metadata))
