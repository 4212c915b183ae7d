"""Pictures of `fedrepro.reports.gaps`: per setting the printed difference of two methods and ours with its interval."""

import re
from pathlib import Path
from typing import Any

from fedrepro.files import write_atomic
from fedrepro.pictures import LINE, WIDTH, save, styled, wrapped
from fedrepro.reports import page_words as words
from fedrepro.reports.figures import COLOURS

OURS, PRINTED = COLOURS[1], COLOURS[2]


def draw(gap: dict[str, Any], folder: Path) -> Path:
    """Writes `<folder>/gaps/<table>-<methods>.svg`; its bytes depend on `gap` alone."""
    name = "-".join([gap["table"], gap["method"], "against", gap["base"], *([] if gap["unit"] == "percent" else [gap["unit"]])])
    path = Path(folder) / "gaps" / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}.svg"
    return write_atomic(path, lambda temporary: _draw(gap, temporary))


def _draw(gap: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    settings = gap["settings"]
    labels = [wrapped(one["label"], 30) for one in settings]
    title = f"{wrapped(words.gap_title(gap), 64 - max(map(_longest, labels)))}\n({words.gap_unit(gap)})"
    lines = 1 + max(label.count("\n") for label in labels)
    height = 0.95 + LINE * (1 + title.count("\n")) + (0.12 + LINE * lines) * len(settings)
    with styled():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        axes.axvline(0, color=COLOURS[0], linewidth=1)
        if words.shows_printed(gap):
            at = [(one["printed"], place) for place, one in enumerate(settings) if one["printed"] is not None]
            label = "printed" if gap["comparable"] else "printed, for orientation only"
            axes.plot(
                *_columns(at),
                linestyle="none",
                marker="D",
                markersize=6,
                color=PRINTED,
                markeredgewidth=1.4,
                fillstyle="none",
                label=label,
            )
        for place, one in enumerate(settings):
            if one["low"] is not None:
                axes.plot([one["low"], one["high"]], [place, place], color=OURS, linewidth=1.6, marker="|", markersize=8)
        at = [(one["ours"], place) for place, one in enumerate(settings) if one["ours"] is not None]
        label = "ours" + (" with 95 % t-interval over seeds" if any(one["low"] is not None for one in settings) else "")
        axes.plot(*_columns(at), linestyle="none", marker="o", markersize=5, color=OURS, label=label)
        axes.set_yticks(range(len(settings)), labels)
        axes.set_ylim(len(settings) - 0.5, -0.5)  # first setting on top
        axes.set_xlabel(title)
        axes.grid(axis="x", alpha=0.25, linewidth=0.5)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
        save(figure, path)


def _longest(label: str) -> int:
    return max(map(len, label.split("\n")))


def _columns(points: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [x for x, _ in points], [y for _, y in points]
