"""Differences of two methods: in each setting the printed one, and ours with its interval."""

from pathlib import Path

from fedrepro.files import write_atomic
from fedrepro.pictures import LINE, wrapped
from fedrepro.reports import names
from fedrepro.reports.figures.style import COLOURS, OURS, PRINTED, drawing, file_name
from fedrepro.reports.model import Gap


def draw(gap: Gap, folder: Path) -> Path:
    """Writes `<folder>/gaps/<table>-<methods>.svg`; its bytes depend on `gap` alone."""
    name = file_name(gap.table, gap.method, "against", gap.base, *([] if gap.unit == "percent" else [gap.unit]))
    return write_atomic(Path(folder) / "gaps" / name, lambda temporary: _draw(gap, temporary))


def _draw(gap: Gap, path: Path) -> None:
    settings = gap.settings
    labels = [wrapped(one.label, 30) for one in settings]
    title = f"{wrapped(names.gap_title(gap), 64 - max(map(_longest, labels)))}\n({names.gap_unit(gap)})"
    lines = 1 + max(label.count("\n") for label in labels)
    height = 0.95 + LINE * (1 + title.count("\n")) + (0.12 + LINE * lines) * len(settings)
    with drawing(path, height, hidden=("top", "right", "left")) as (figure, axes):
        axes.axvline(0, color=COLOURS[0], linewidth=1)
        if names.shows_printed(gap):
            at = [(one.printed, place) for place, one in enumerate(settings) if one.printed is not None]
            label = "printed" if gap.comparable else "printed, for orientation only"
            diamond = {"marker": "D", "markersize": 6, "markeredgewidth": 1.4, "fillstyle": "none"}
            axes.plot(*_columns(at), linestyle="none", color=PRINTED, label=label, **diamond)
        for place, one in enumerate(settings):
            if one.low is not None:
                axes.plot([one.low, one.high], [place, place], color=OURS, linewidth=1.6, marker="|", markersize=8)
        at = [(one.ours, place) for place, one in enumerate(settings) if one.ours is not None]
        label = "ours" + (" with 95 % t-interval over seeds" if any(one.low is not None for one in settings) else "")
        axes.plot(*_columns(at), linestyle="none", marker="o", markersize=5, color=OURS, label=label)
        axes.set_yticks(range(len(settings)), labels)
        axes.set_ylim(len(settings) - 0.5, -0.5)  # first setting on top
        axes.set_xlabel(title)
        axes.grid(axis="x", alpha=0.25, linewidth=0.5)
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper left", ncols=2, frameon=False)


def _longest(label: str) -> int:
    return max(map(len, label.split("\n")))


def _columns(points: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [x for x, _ in points], [y for _, y in points]
