"""Candidates of tuned cells: the metric over the value tried. A panel for each column and key, a line for each row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedrepro.config.plan import Plan
from fedrepro.exhibits.choices import Choice, TriedCandidate
from fedrepro.exhibits.kinds import style
from fedrepro.grouping import grouped
from fedrepro.looks import Look

MOST_FLAT = 4  # values whose names have room beside each other below a panel


def draw(plan: Plan, choices: Sequence[Choice], path: Path) -> None:
    """Draws what each candidate reached. A ring marks the chosen candidate, a cross one that diverged. A second reading in the
    same unit is a lighter line with a smaller ring."""
    order = [column.key for column in plan.columns]
    ordered = sorted(choices, key=lambda choice: order.index(choice.place.column))
    panels = grouped(((choice.place.column, _key(choice)), choice) for choice in ordered)
    looks = style.looks(plan)
    labels = [row.label for row in plan.rows if any(choice.place.row == row.key for choice in choices)]
    title = style.title(plan, f"{plan.source}: candidates of tuned cells")
    with style.panelled(path, title, [plan.column(column).title for column, _ in panels], labels) as all_axes:
        for axes, ((_, key), panel_choices) in zip(all_axes, panels.items(), strict=True):
            positions = _axis(axes, key, [candidate.values[key] for choice in panel_choices for candidate in choice.tried])
            for choice in panel_choices:
                _lines(axes, choice, key, positions, looks[choice.place.row])
            axes.set_ylabel(style.quantities([choice.metric for choice in panel_choices]))
            axes.grid(alpha=0.25, linewidth=0.5)


def _key(choice: Choice) -> str:
    """Returns the first key of the grid that has several values."""
    keys = list(choice.tried[0].values)
    return next((key for key in keys if len({str(candidate.values[key]) for candidate in choice.tried}) > 1), keys[0])


def _axis(axes: Any, key: str, values: list[Any]) -> dict[str, float]:
    """Returns value, as text -> its place on the horizontal axis: logarithmic for positive numbers, one after another for
    words."""
    from matplotlib.ticker import NullLocator

    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    names = {str(value): value for value in (sorted(values) if numbers else values)}
    positions = {name: float(value) if numbers else place for place, (name, value) in enumerate(names.items())}
    if numbers and min(values) > 0:
        axes.set_xscale("log")
    axes.set_xticks(list(positions.values()), [f"{value:g}" if numbers else name for name, value in names.items()])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", labelsize=8, rotation=45 if len(positions) > MOST_FLAT else 0)
    axes.margins(x=0.08, y=0.08)
    axes.set_xlabel(key.rpartition(".")[2])
    return positions


def _lines(axes: Any, choice: Choice, key: str, positions: dict[str, float], look: Look) -> None:
    """Draws a line for each combination of the grid's other keys, and each reading."""
    by_other_values = grouped(
        (str({name: value for name, value in candidate.values.items() if name != key}), candidate) for candidate in choice.tried
    )
    line_style = {"color": look.colour, "linestyle": look.dash}
    ring = {"color": look.colour, "marker": "o", "fillstyle": "none", "linestyle": "none"}

    def x(candidate: TriedCandidate) -> float:
        return positions[str(candidate.values[key])]

    for number, line in enumerate(by_other_values.values()):
        line.sort(key=x)
        means = [(x(candidate), candidate.mean) for candidate in line if candidate.mean is not None]
        marker = style.MARKERS[number % len(style.MARKERS)]
        axes.plot(*style.columns(means), **line_style, linewidth=1.4, marker=marker, markersize=3.5, label=choice.row)
        if choice.second and choice.second.unit == choice.metric.unit:
            second = [(x(candidate), candidate.again) for candidate in line if candidate.again]
            again = [(place, trial.mean) for place, trial in second if trial.mean is not None]
            axes.plot(*style.columns(again), **line_style, linewidth=1.2, alpha=0.4)
            rings = [(place, trial.mean) for place, trial in second if trial.chosen]
            axes.plot(*style.columns(rings), **ring, markersize=6, markeredgewidth=1.0, alpha=0.6)
        chosen_points = [(x(candidate), candidate.mean) for candidate in line if candidate.chosen]
        axes.plot(*style.columns(chosen_points), **ring, markersize=9, markeredgewidth=1.4)
        lost = [x(candidate) for candidate in line if candidate.mean is None and candidate.per_seed]
        if lost:  # at the foot of the panel
            cross = {"marker": "x", "markersize": 6, "linestyle": "none", "color": look.colour, "clip_on": False}
            axes.plot(lost, [0.0] * len(lost), **cross, transform=axes.get_xaxis_transform())
