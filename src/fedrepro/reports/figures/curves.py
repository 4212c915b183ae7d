"""Learning curves as SVG: one picture per column, one line per method, mean over seeds with a band from minimum to maximum."""

import math
from dataclasses import dataclass
from pathlib import Path

from fedrepro.files import write_atomic
from fedrepro.pictures import LINE, wrapped
from fedrepro.reports.figures.style import COLOURS, DASHES, drawing, file_name
from fedrepro.reports.model import Column, Evidence, Figure, Plan, Receipt
from fedrepro.reports.names import metric_label


@dataclass(frozen=True)
class Curve:
    """Mean, minimum and maximum over seeds for each round, of the `row`-th method."""

    row: int
    label: str
    rounds: tuple[int, ...]  # counted from 0
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def draw_all(plan: Plan, evidence: Evidence, folder: Path) -> tuple[Figure, ...]:
    """Draws `<folder>/<table>/<column>.svg` for every column that has a curve, and removes stale ones.

    Columns that read one metric of the same runs after different rounds share the picture of the first.
    """
    folder = Path(folder) / plan.table
    drawn: dict[str, Path] = {}
    first: dict[tuple, Column] = {}
    for column in plan.columns:
        runs = tuple(cell.run_id for cell in plan.cells if cell.column == column.key)
        first.setdefault((runs, column.metric.name), column)
    for column in first.values():
        lines = curves(plan, evidence, column)
        if lines:
            write = lambda temporary, c=column, ls=lines: _draw(plan, c, ls, temporary)  # noqa: E731
            drawn[column.key] = write_atomic(folder / file_name(column.key), write)
    for stale in set(folder.glob("*.svg")) - set(drawn.values()):
        stale.unlink()
    return tuple(Figure(key, path.as_posix()) for key, path in drawn.items())


def curves(plan: Plan, evidence: Evidence, column: Column) -> list[Curve]:
    """One for each row that has any in this column; it ends where a seed diverges."""
    cells = {cell.row: cell for cell in plan.planned if cell.column == column.key}
    found = []
    for place, row in enumerate(plan.rows):
        cell = cells.get(row.key)
        receipts = evidence.get(cell.run_id or "", {}) if cell else {}
        name = cell.reading.curve if cell and cell.metric.name == column.metric.name else column.metric.name
        curve = _curve(place, row.label, list(receipts.values()), name)
        if curve:
            found.append(curve)
    return found


def _curve(place: int, label: str, receipts: list[Receipt], metric: str) -> Curve | None:
    """Over the rounds that were evaluated, until a seed has no finite value."""
    series = [dict(zip(one.curves["round"], one.curves.get(metric, []), strict=False)) for one in receipts]
    if not series:
        return None
    rounds: list[int] = []
    for number in sorted(set.intersection(*(set(one) for one in series))):
        missing = [one[number] is None for one in series]
        if all(missing):  # not evaluated, or every seed has diverged
            continue
        if any(missing):
            break
        rounds.append(number)
    if not rounds:
        return None
    values = [[one[number] or 0.0 for one in series] for number in rounds]
    means = tuple(sum(each) / len(each) for each in values)
    return Curve(place, label, tuple(rounds), means, tuple(map(min, values)), tuple(map(max, values)))


def _draw(plan: Plan, column: Column, lines: list[Curve], path: Path) -> None:
    from matplotlib.ticker import MaxNLocator

    title = " · ".join(part for part in (_data(plan, column) or column.group, column.label) if part)
    title = wrapped(f"{title}   [{plan.scale}\u00a0scale]", 56)
    across = _legend_columns(max(len(line.label) for line in lines))
    height = 2.9 + LINE * title.count("\n") + 1.25 * LINE * math.ceil(len(lines) / across)
    with drawing(path, height) as (figure, axes):
        for line in lines:
            colour = COLOURS[line.row % len(COLOURS)]
            dash = DASHES[line.row // len(COLOURS) % len(DASHES)]
            rounds = [number + 1 for number in line.rounds]  # evidence counts from 0, readers from 1
            axes.fill_between(rounds, line.low, line.high, color=colour, alpha=0.13, linewidth=0)
            axes.plot(rounds, line.mean, color=colour, linestyle=dash, linewidth=1.5, label=line.label)
        unit = {"percent": " (%)"}.get(column.metric.unit, "")
        axes.set_xlabel("communication round")
        axes.set_ylabel(metric_label(column.metric.name) + unit)
        axes.set_title(title, fontsize=10, loc="left")
        axes.grid(alpha=0.25, linewidth=0.5)
        axes.margins(x=0.01)
        axes.set_ylim(bottom=_bottom(lines))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(loc="outside lower left", ncols=across, frameon=False)


def _data(plan: Plan, column: Column) -> str | None:
    """`digits in the place of FashionMNIST` for a column that is called after data which were not used; None for others."""
    cells = [cell for cell in plan.planned if cell.column == column.key]
    used = dict.fromkeys(plan.run(cell).config["dataset"] for cell in cells)
    called_after = lambda names: all(column.key.startswith(f"{name}-") for name in names)  # noqa: E731
    if called_after(used) or not called_after(cell.instead_of.get("dataset") for cell in cells):
        return None
    return f"{', '.join(used)} in the place of {column.group}"


def _legend_columns(longest: int) -> int:
    """How many names of up to `longest` characters fit beside each other below a picture."""
    return 3 if longest <= 15 else 2 if longest <= 27 else 1


def _bottom(lines: list[Curve]) -> float | None:
    """Where the vertical axis starts: below all that follows the first fifth of the rounds, where methods differ."""
    last = max(line.rounds[-1] for line in lines)
    late = [v for line in lines for r, v in zip(line.rounds, line.low, strict=True) if r >= last / 5]
    if not late:
        return None
    top = max(max(line.high) for line in lines)
    return min(late) - 0.04 * (top - min(late)) - 1e-9
