"""A table in the paper's own grid, and one row a number."""

import itertools
from collections.abc import Sequence

from fedrepro.reports.model import Cell, Column, Row, Shown
from fedrepro.reports.names import decimal, signed
from fedrepro.reports.pages import parts
from fedrepro.reports.pages import sections as s

OURS = "additional rows (ours), not in the printed table"


def printed_grid(table: Shown, columns: Sequence[Column] | None = None, rows: Sequence[Row] | None = None) -> s.Grid:
    """Methods downwards, settings across; a cell has measured, printed and, at full scale, difference and sign."""
    columns, rows = columns or table.columns, rows or table.ordered_rows
    cells = {(cell.method, cell.setting): cell for cell in table.cells}
    starts = [i > 0 and columns[i - 1].group != column.group for i, column in enumerate(columns)]
    groups = [(name or "", len(list(same))) for name, same in itertools.groupby(columns, key=lambda column: column.group)]
    above = [s.Head("", span=1), *(s.Head(name, span=span, start=i > 0) for i, (name, span) in enumerate(groups))]
    names = [s.Head(c.label.replace(" = ", "\u00a0=\u00a0"), True, start=at) for c, at in zip(columns, starts, strict=True)]
    body: list[s.Row] = []
    for row in rows:
        if not row.printed and not any(isinstance(one, s.Apart) for one in body):
            body.append(s.Apart(OURS))
        body.append((row.label, *(_cell(cells.get((row.key, c.key)), table) for c in columns)))
    look = "tight table" if len(columns) > 7 else "table"
    return s.Grid(f"{table.source}, measured and printed", (tuple(above), (s.Head("method"), *names)), tuple(body), look)


def caption(table: Shown) -> str:
    """What the numbers of a cell are."""
    measured = "Measured: mean ± sample standard deviation over seeds (number of seeds). "
    if not parts.in_print(table):
        return f"{measured}Bold: best measured of the column, ties included."
    text = (
        f"{measured}"
        f"Below it the printed number{', of other data and for orientation only' if table.stand_in else ''}. "
        "Bold: best measured of the column, ties included; underlined: best printed."
    )
    if table.comparable:
        text += " Third line: measured minus printed, and ✓ reproduced, ≈ consistent, ? inconclusive, ✗ not reproduced."
    return text


def _cell(cell: Cell | None, table: Shown) -> s.Cell:
    if cell is None:
        return s.Cell(())
    lines: list[s.Line] = [_measured(cell, "big")]
    if cell.printed is not None:
        lines.append(s.Text(f"paper {decimal(cell.printed, cell.digits)}", "underlined" if cell.best_printed else "small"))
    if cell.difference is not None:
        lines += [
            _difference(cell, sign=True),
            *([s.Text(f"margin {decimal(cell.margin, cell.digits)}", "small")] if cell.margin else []),
        ]
    elif table.comparable and cell.status == "not reproduced":  # a seed diverged
        lines.append(s.Text("✗", "bad"))
    return s.Cell(tuple(lines), cell.best_measured, parts.remark(cell))


def _measured(cell: Cell, look: s.Look, with_spread: bool = True) -> s.Line:
    """`89.50 ± 0.50 (3)`, or why there is none."""
    if cell.mean is None:
        return (s.Text(parts.measured(cell), "none"),)
    mean = s.Text(parts.measured(cell), look, measure=_measure("mean", cell))
    return (mean, " ", s.Text(parts.spread(cell), "small", measure=_measure("spread", cell))) if with_spread else (mean,)


def _difference(cell: Cell, sign: bool) -> s.Text:
    mark, look = parts.SIGNS[cell.status]
    text = signed(cell.difference, cell.digits)
    return s.Text(f"{text} {mark}" if sign else text, look, measure=None if sign else _measure("difference", cell))


def _measure(kind: str, cell: Cell) -> s.Measure:
    return s.Measure(kind, cell.metric, cell.runs)


def listed(table: Shown) -> s.Grid:
    """A row for each cell with a value, by setting."""
    rows: list[s.Row] = []
    place = {row.key: number for number, row in enumerate(table.ordered_rows)}
    for column in table.columns:
        cells = sorted((c for c in table.cells if c.setting == column.key and c.per_seed), key=lambda cell: place[cell.method])
        rows += [s.Apart(column.title)] if cells else []
        for cell in cells:
            measured = s.Cell((_measured(cell, "big"),), cell.best_measured)
            difference = [_difference(cell, False) if cell.difference is not None else "–"] if table.comparable else []
            difference += [decimal(cell.margin, cell.digits)] if table.comparable else []
            status = parts.verdict(cell.status, f": {cell.reason}" if cell.reason else "")
            rows.append((cell.method_label, decimal(cell.printed), measured, *difference, status))
    compared = ["difference", "margin"] if table.comparable else []
    names = s.heads("method", "printed", "measured", *compared, "status", numbers=range(1, 3 + len(compared)))
    return s.Grid(f"{table.source}: printed and measured", names, tuple(rows), "list")


def compact(table: Shown) -> s.Grid:
    """Only what was measured: printed, measured and difference side by side, along the shorter of the two axes."""
    cells = {(cell.method, cell.setting): cell for cell in table.cells if cell.per_seed}
    rows = [row for row in table.ordered_rows if any(method == row.key for method, _ in cells)]
    columns = [column for column in table.columns if any(setting == column.key for _, setting in cells)]
    if min(len(rows), len(columns)) > WIDEST:
        return printed_grid(table, columns, rows)
    methods = [(row.key, row.label) for row in rows]
    settings = [(column.key, column.title) for column in columns]
    turned = len(rows) > len(columns)
    across, down = (settings, methods) if turned else (methods, settings)
    printed = "printed" if table.comparable else "printed, not comparable"
    kinds = [printed, "measured", *(["difference"] if table.comparable else [])]
    above = [s.Head(""), *(s.Head(label, span=len(kinds), start=True) for _, label in across)]
    names = [s.Head(kind, True, start=kind == printed) for _ in across for kind in kinds]
    body = []
    for key, label in down:
        found = [cells.get((key, other) if turned else (other, key)) for other, _ in across]
        body.append((label, *(piece for cell in found for piece in _pieces(cell, len(kinds)))))
    first = s.Head("method" if turned else "setting")
    return s.Grid(f"{table.source} at a glance", (tuple(above), (first, *names)), tuple(body), "small")


WIDEST = 4  # methods or settings that stand beside each other with three numbers each


def _pieces(cell: Cell | None, kinds: int) -> list[s.Line | s.Cell]:
    if cell is None:
        return ["–"] * kinds
    mark, look = parts.SIGNS[cell.status]
    remark = f"{parts.spread(cell)} {parts.remark(cell)}".strip()
    measured = s.Cell((_measured(cell, "", with_spread=False),), title=remark)
    known = cell.difference is not None
    difference = (_difference(cell, sign=False), s.Text(f" {mark}", look)) if known else "–"
    return [decimal(cell.printed, cell.digits), measured, difference][:kinds]
