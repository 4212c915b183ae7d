"""The style that all pictures share: colours, a figure with one pair of axes or several, titles, names of files."""

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedrepro.config.plan import Plan
from fedrepro.config.table import Metric
from fedrepro.exhibits.kinds.values import WITHOUT
from fedrepro.exhibits.names import metric_label
from fedrepro.looks import Look, looks_of
from fedrepro.pictures import LINE, WIDTH, save, styled, wrapped
from fedrepro.units import unit

# Okabe and Ito's colour-blind safe palette without yellow, which vanishes on white.
COLOURS = ("#7A7A7A", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
ACROSS = 2  # panels beside each other
OURS, PRINTED = COLOURS[1], COLOURS[2]


@contextmanager
def drawing(
    path: Path, height: float, count: int = 1, hidden: tuple[str, ...] = ("top", "right")
) -> Iterator[tuple[Any, list[Any]]]:
    """Yields (figure, `count` pairs of axes, `ACROSS` beside each other), `height` inches high, without the `hidden` sides of
    the frame; writes it to `path` at the end."""
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    with styled():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        across = min(count, ACROSS)
        panels = [figure.add_subplot(math.ceil(count / across), across, place + 1) for place in range(count)]
        yield figure, panels
        for axes in panels:
            axes.spines[list(hidden)].set_visible(False)
        save(figure, path)


@contextmanager
def panelled(
    path: Path, title: str, panels: Sequence[str], labels: Sequence[str], panel_height: float = 2.6
) -> Iterator[list[Any]]:
    """Yields a pair of axes for each title of `panels`, `panel_height` inches high. `title` stands above, a legend of those
    `labels` that were drawn below. Without any panel the picture says that nothing was run."""
    lines = max((wrapped(name, 30).count("\n") for name in panels), default=0)
    height = (panel_height + LINE * lines) * max(1, math.ceil(len(panels) / ACROSS)) + LINE * (2 + title.count("\n"))
    with drawing(path, height + below(labels), max(1, len(panels))) as (figure, axes):
        yield axes[: len(panels)]
        for panel_axes, name in zip(axes, panels, strict=False):
            panel_axes.set_title(wrapped(name, 30 if len(panels) > 1 else 60), fontsize=9, loc="left")
        if not panels:
            axes[0].text(0.5, 0.5, "no run yet", ha="center", transform=axes[0].transAxes)
        handles = {
            label: handle for panel_axes in axes for handle, label in zip(*panel_axes.get_legend_handles_labels(), strict=True)
        }
        drawn_labels = [label for label in labels if label in handles]
        if drawn_labels:
            drawn, across = [handles[label] for label in drawn_labels], legend_columns(drawn_labels)
            figure.legend(drawn, drawn_labels, loc="outside lower left", ncols=across, frameon=False)
        figure.suptitle(title, fontsize=10, x=0.01, ha="left")


def below(labels: Sequence[str]) -> float:
    """Returns how many inches a legend of the labels needs below a picture."""
    return 1.25 * LINE * math.ceil(len(labels) / legend_columns(labels)) if labels else 0.0


def legend_columns(labels: Sequence[str]) -> int:
    """Returns how many names stand beside each other below a picture."""
    longest = max(map(len, labels))
    return 3 if longest <= 15 else 2 if longest <= 27 else 1


def title(plan: Plan, text: str = "") -> str:
    """Returns the title of the exhibit, or `text`, with the scale, wrapped. A copied picture thus names its scale."""
    return wrapped(f"{text or plan.title}   [{plan.scale}\u00a0scale]", 56)


def quantities(metrics: Sequence[Metric], minus: str = "") -> str:
    """Names what an axis shows: `test accuracy (%)`; `test accuracy (points), less that of FedAvg` where `minus` is taken away.
    Metrics of one diagnostic that begin alike (`coherence`, `coherence_first`), and of one unit that end alike
    (`global_gradient_norm`, `shrink_gradient_norm`), are told apart by the legend; the axis has what they share.
    """
    words = [name.split("_") for name in dict.fromkeys(metric.name for metric in metrics)]
    shared = _common_start(words) if len({metric.diagnostic for metric in metrics} - {None}) == 1 else []
    if not shared and len({metric.unit for metric in metrics}) == 1:
        shared = _common_start([name[::-1] for name in words])[::-1]
    if len(words) > 1 and shared:
        metrics = [metrics[0].model_copy(update={"name": "_".join(shared)})]
    signs = {metric.unit: unit(metric.unit).difference if minus else unit(metric.unit).sign.strip() for metric in metrics}
    names = (metric_label(metric.name) + (f" ({signs[metric.unit]})" if signs[metric.unit] else "") for metric in metrics)
    label = ", ".join(dict.fromkeys(names))
    part = minus.removeprefix(WITHOUT).strip(" +")
    less = f"the same without {part}" if minus.startswith(WITHOUT) else f"that of {minus}"
    return wrapped(f"{label}, less {less}", 34) if minus else label


def _common_start(words: list[list[str]]) -> list[str]:
    """Returns the words that all names begin with."""
    return [group[0] for group in itertools.takewhile(lambda group: len({*group}) == 1, zip(*words, strict=False))]


def columns(points: Sequence[tuple[float, float | None]]) -> tuple[list[float], list[float | None]]:
    """Returns the x and the y of points, as `plot` takes them."""
    return [x for x, _ in points], [y for _, y in points]


def looks(plan: Plan) -> dict[str, Look]:
    """Returns key of a row -> colour and dash of its method."""
    by_label = looks_of([row.label for row in plan.rows])
    return {row.key: by_label[row.label] for row in plan.rows}


def file_name(*parts: str) -> str:
    """Joins parts to the file name of a picture, without what file systems or links dislike."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', '-'.join(parts))}.svg"
