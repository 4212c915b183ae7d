"""Learning curves as SVG: one picture per column, one line per method, mean over seeds with a band from minimum to maximum."""

import math
import re
from pathlib import Path
from typing import Any

from fedrepro.files import write_atomic
from fedrepro.pictures import LINE, WIDTH, save, styled, wrapped
from fedrepro.reports import words
from fedrepro.reports.evidence import Evidence, Plan, Receipt

# Okabe and Ito's colour-blind safe palette without yellow, which vanishes on white; beyond seven lines dashes tell them apart.
COLOURS = ("#7A7A7A", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))


def draw_all(plan: Plan, evidence: Evidence, folder: Path) -> dict[str, Path]:
    """Draws `<folder>/<table>/<column>.svg` for every column that has a curve, and removes stale ones.

    Columns that read one metric of the same runs after different rounds share the picture of the first.
    """
    folder = Path(folder) / plan["table"]
    drawn: dict[str, Path] = {}
    first = {}
    for column in plan["columns"]:
        runs = tuple(cell["run_id"] for cell in plan["cells"] if cell["column"] == column["key"])
        first.setdefault((runs, column["metric"]["name"]), column)
    for column in first.values():
        lines = curves(plan, evidence, column)
        path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', column['key'])}.svg"
        if lines:
            drawn[column["key"]] = write_atomic(path, lambda temporary, c=column, ls=lines: _draw(plan, c, ls, temporary))
    for stale in set(folder.glob("*.svg")) - set(drawn.values()):
        stale.unlink()
    return drawn


def curves(plan: Plan, evidence: Evidence, column: dict[str, Any]) -> list[dict[str, Any]]:
    """Per row with a curve in this column: `{row, label, round, mean, low, high}`; a line ends where a seed diverges."""
    cells = {cell["row"]: cell for cell in plan["cells"] if cell["column"] == column["key"] and cell["run_id"]}
    lines = []
    for place, row in enumerate(plan["rows"]):
        receipts = evidence.get(cells[row["key"]]["run_id"], {}) if row["key"] in cells else {}
        line = _line(list(receipts.values()), column["metric"]["name"])
        if line:
            lines.append({"row": place, "label": row["label"], **line})
    return lines


def _line(receipts: list[Receipt], metric: str) -> dict[str, list[float]] | None:
    """Mean, minimum and maximum over seeds per round, for the rounds at which every seed has a finite value."""
    series = [dict(zip(receipt["curves"]["round"], receipt["curves"].get(metric, []), strict=False)) for receipt in receipts]
    if not series:
        return None
    rounds = []
    for number in sorted(set.intersection(*(set(one) for one in series))):
        if any(one[number] is None for one in series):
            break
        rounds.append(number)
    values = [[one[number] for one in series] for number in rounds]
    if not rounds:
        return None
    return {
        "round": rounds,
        "mean": [sum(v) / len(v) for v in values],
        "low": [min(v) for v in values],
        "high": [max(v) for v in values],
    }


def _draw(plan: Plan, column: dict, lines: list[dict], path: Path) -> None:
    from matplotlib.figure import Figure  # without pyplot: no display, no global state
    from matplotlib.ticker import MaxNLocator

    title = " · ".join(part for part in (_data(plan, column) or column.get("group"), column["label"]) if part)
    title = wrapped(f"{title}   [{plan['scale']}\u00a0scale]", 56)
    across = _legend_columns(max(len(line["label"]) for line in lines))
    height = 2.9 + LINE * title.count("\n") + 1.25 * LINE * math.ceil(len(lines) / across)
    with styled():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        for line in lines:
            colour = COLOURS[line["row"] % len(COLOURS)]
            dash = DASHES[line["row"] // len(COLOURS) % len(DASHES)]
            rounds = [number + 1 for number in line["round"]]  # evidence counts from 0, readers from 1
            axes.fill_between(rounds, line["low"], line["high"], color=colour, alpha=0.13, linewidth=0)
            axes.plot(rounds, line["mean"], color=colour, linestyle=dash, linewidth=1.5, label=line["label"])
        metric = column["metric"]
        unit = {"percent": " (%)"}.get(metric["unit"], "")
        axes.set_xlabel("communication round")
        axes.set_ylabel(words.metric_label(metric["name"]) + unit)
        axes.set_title(title, fontsize=10, loc="left")
        axes.grid(alpha=0.25, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.01)
        axes.set_ylim(bottom=_bottom(lines))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.legend(loc="outside lower left", ncols=across, frameon=False)
        save(figure, path)


def _data(plan: Plan, column: dict) -> str | None:
    """`digits in the place of FashionMNIST` for a column that is called after data which were not used; None for others."""
    cells = [cell for cell in plan["cells"] if cell["column"] == column["key"] and cell["run_id"]]
    used = dict.fromkeys(plan["runs"][cell["run_id"]]["config"]["dataset"] for cell in cells)
    called_after = lambda names: all(column["key"].startswith(f"{name}-") for name in names)  # noqa: E731
    if called_after(used) or not called_after(cell["instead_of"].get("dataset") for cell in cells):
        return None
    return f"{', '.join(used)} in the place of {column['group']}"


def _legend_columns(longest: int) -> int:
    """How many names of up to `longest` characters fit beside each other below a picture."""
    return 3 if longest <= 15 else 2 if longest <= 27 else 1


def _bottom(lines: list[dict]) -> float | None:
    """Where the vertical axis starts: below all that follows the first fifth of the rounds, where methods differ."""
    last = max(line["round"][-1] for line in lines)
    late = [v for line in lines for r, v in zip(line["round"], line["low"], strict=True) if r >= last / 5]
    if not late:
        return None
    top = max(max(line["high"]) for line in lines)
    return min(late) - 0.04 * (top - min(late)) - 1e-9
