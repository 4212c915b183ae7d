"""A picture of a partition: classes across, clients downwards, colour and number for the samples."""

from pathlib import Path

import numpy as np

from fedrepro.files import write_atomic
from fedrepro.pictures import WIDTH, save, styled, wrapped

_CLASSES_WITH_NUMBERS, _CLIENTS_WITH_NUMBERS = 12, 40  # above these there is no room for legible numbers


def save_picture(path: Path, class_counts: np.ndarray, title: str) -> Path:
    """Writes an SVG of `class_counts` [n, classes]; a count of 0 stays empty. Equal counts and title give equal bytes."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    clients, classes = class_counts.shape
    numbers = classes <= _CLASSES_WITH_NUMBERS and clients <= _CLIENTS_WITH_NUMBERS
    with styled():
        figure = Figure(figsize=(WIDTH, min(12.0, 1.0 + 0.2 * clients)), layout="constrained")
        axes = figure.add_subplot()
        counts = np.ma.masked_equal(class_counts, 0)
        image = axes.imshow(counts, cmap="Blues", aspect="auto", interpolation="nearest", vmin=0, vmax=class_counts.max())
        axes.set(xlabel="class", ylabel="client")
        axes.set_title(wrapped(title, 56), fontsize=10, loc="left")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=classes if numbers else "auto", integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=20, integer=True))
        if numbers:
            dark = 0.6 * class_counts.max()  # white is legible from here on
            for (client, label), count in np.ndenumerate(class_counts):
                if count:
                    colour = "white" if count > dark else "black"
                    axes.text(label, client, str(count), ha="center", va="center", color=colour)
        else:
            figure.colorbar(image, label="samples")
        return write_atomic(path, lambda temporary: save(figure, temporary))
