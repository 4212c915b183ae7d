"""Differences of two methods: in each setting the printed one, and ours with its interval."""

from pathlib import Path

from fedrepro.exhibits.comparisons import Gap
from fedrepro.exhibits.kinds.style import COLOURS, OURS, PRINTED, columns, drawing, file_name
from fedrepro.pictures import LINE, wrapped


def name(gap: Gap) -> str:
    """Returns a file name, `table3-fedlaw-against-fedavg.svg`."""
    unit = [] if gap.unit == "percent" else [gap.unit]
    return file_name(gap.plan.table, gap.method.key, "against", gap.base.key, *unit)


def draw(gap: Gap, path: Path) -> None:
    """Draws the gap in each setting. The bytes depend on `gap` alone."""
    settings = gap.settings
    labels = [wrapped(setting.column.title, 30) for setting in settings]
    widest = max(len(line) for label in labels for line in label.split("\n"))
    title = f"{wrapped(gap.title, 64 - widest)}\n({gap.counted_in})"
    lines = 1 + max(label.count("\n") for label in labels)
    height = 0.95 + LINE * (1 + title.count("\n")) + (0.12 + LINE * lines) * len(settings)
    with drawing(path, height, hidden=("top", "right", "left")) as (figure, (axes,)):
        axes.axvline(0, color=COLOURS[0], linewidth=1)
        if gap.shows_printed:
            points = [(setting.printed, place) for place, setting in enumerate(settings) if setting.printed is not None]
            label = "printed" if gap.plan.comparable else "printed, for orientation only"
            diamond = {"marker": "D", "markersize": 6, "markeredgewidth": 1.4, "fillstyle": "none"}
            axes.plot(*columns(points), linestyle="none", color=PRINTED, label=label, **diamond)
        for place, setting in enumerate(settings):
            if setting.low is not None:
                axes.plot([setting.low, setting.high], [place, place], color=OURS, linewidth=1.6, marker="|", markersize=8)
        points = [(setting.ours, place) for place, setting in enumerate(settings) if setting.ours is not None]
        label = "ours" + (" with 95 % t-interval over seeds" if any(setting.low is not None for setting in settings) else "")
        axes.plot(*columns(points), linestyle="none", marker="o", markersize=5, color=OURS, label=label)
        axes.set_yticks(range(len(settings)), labels)
        axes.set_ylim(len(settings) - 0.5, -0.5)  # first setting on top
        axes.set_xlabel(title)
        axes.grid(axis="x", alpha=0.25, linewidth=0.5)
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
