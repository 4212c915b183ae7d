"""A table in the paper's own grid, one row a number, and at a glance."""

import itertools
from collections.abc import Sequence

from fedrepro.config.plan import Column, Plan, Row
from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.write import blocks as b
from fedrepro.units import decimal

OURS = "additional rows (ours), not in the printed table"
BOLD = "Bold: best measured of the column, if {} has run and all means are over the same seeds"
WIDEST = 4  # methods or settings that stand beside each other with three numbers each


def printed_grid(table: Exhibit, columns: Sequence[Column] | None = None, rows: Sequence[Row] | None = None) -> b.Grid:
    """Makes the grid: a row for each method, a column for each setting. A cell has the measured and the printed number and, at
    full scale, difference and sign."""
    columns, rows = columns or table.plan.columns, rows or table.plan.printed_first
    starts = [i > 0 and columns[i - 1].group != column.group for i, column in enumerate(columns)]
    groups = [(name or "", len(list(same))) for name, same in itertools.groupby(columns, key=lambda column: column.group)]
    above = [b.Head("", span=1), *(b.Head(name, span=span, start=i > 0) for i, (name, span) in enumerate(groups))]
    names = [b.Head(c.label.replace(" = ", "\u00a0=\u00a0"), True, start=at) for c, at in zip(columns, starts, strict=True)]
    body: list[b.Row] = []
    for row in rows:
        if table.plan.prints and not row.printed and not any(isinstance(line, b.Subheading) for line in body):
            body.append(b.Subheading(OURS))
        body.append((row.label, *(_cell(table.cell(row.key, column.key), table.plan) for column in columns)))
    look = "tight table" if len(columns) > 7 else "table"
    return b.Grid(f"{table.plan.source}, measured and printed", (tuple(above), (b.Head("method"), *names)), tuple(body), look)


def caption(plan: Plan) -> str:
    """Says what the numbers of a cell mean."""
    measured = "Measured: mean ± sample standard deviation over seeds (number of seeds). "
    if not plan.prints:
        return f"{measured}{BOLD.format('every row')}."
    text = (
        f"{measured}"
        f"Below it the printed number{', of other data and for orientation only' if plan.stand_in else ''}. "
        f"{BOLD.format('every row with a printed number (in a column without any, every row)')}; underlined: best printed."
    )
    if plan.comparable:
        signs = "" if plan.varied else f", and {words.LEGEND}"
        text += f" Third line: measured minus printed{signs}. Below it the margin, where there is one."
    return text


def _cell(cell: Cell | None, plan: Plan) -> b.Box:
    if cell is None:
        return b.Box(())
    lines: list[b.Line] = [_measured(cell)]
    if cell.printed is not None:
        lines.append(b.Text(f"paper {decimal(cell.printed, cell.digits)}", "underlined" if cell.best_printed else "small"))
    if cell.difference is not None:
        lines.append(_difference(cell, sign=True))
        lines += [b.Text(f"margin {decimal(cell.margin, cell.digits)}", "small")] if cell.margin else []
    elif _lost(cell):
        lines.append(b.Text(*words.SIGNS[cell.status]))
    return b.Box(tuple(lines), cell.best_measured, words.remark(cell))


def _measured(cell: Cell) -> b.Line:
    """Writes `89.50 ± 0.50 (3)`, or why there is no mean."""
    if cell.mean is None:
        return (b.Text(words.measured(cell), "none"),)
    return (b.Text(words.measured(cell), "big"), " ", b.Text(words.spread(cell), "small"))


def _lost(cell: Cell) -> bool:
    """Tells whether the cell is judged without a mean: a seed diverged, or did not reach its target."""
    return cell.difference is None and cell.status == "not reproduced"


def _difference(cell: Cell, sign: bool) -> b.Text:
    mark, look = words.SIGNS[cell.status]
    text = decimal(cell.difference, cell.digits, "+")
    return b.Text(f"{text} {mark}" if sign and mark else text, look)


def listed(table: Exhibit) -> b.Grid:
    """Makes a list: one row for each cell with a value, by setting."""
    comparable, rows = table.plan.comparable, list[b.Row]()
    for column in table.plan.columns:
        ordered = [table.cell(row.key, column.key) for row in table.plan.printed_first]
        cells = [cell for cell in ordered if cell and cell.per_seed]
        rows += [b.Subheading(column.title)] if cells else []
        for cell in cells:
            measured = b.Box((_measured(cell),), cell.best_measured)
            difference = [_difference(cell, False) if cell.difference is not None else "–"] if comparable else []
            difference += [decimal(cell.margin, cell.digits)] if comparable else []
            status = words.verdict(cell.status, f": {cell.reason}" if cell.reason else "")
            rows.append((cell.row.label, decimal(cell.printed, cell.digits), measured, *difference, status))
    names = ["method", "printed", "measured", *(["difference", "margin"] if comparable else []), "status"]
    heads = b.heads(*names, numbers=range(1, len(names) - 1))
    return b.Grid(f"{table.plan.source}: printed and measured", heads, tuple(rows), "list")


def compact(table: Exhibit) -> b.Grid:
    """Makes a small table of what was measured: printed number, measured number and difference side by side. The shorter axis
    lies across. If some columns have a printed number, the others are left out."""
    plan = table.plan
    cells = {(cell.row.key, cell.column.key): cell for cell in table.cells if cell.per_seed}
    in_print = {cell.column.key for cell in cells.values() if cell.printed is not None}
    cells = {place: cell for place, cell in cells.items() if not in_print or place[1] in in_print}
    rows = [row for row in plan.printed_first if any(method == row.key for method, _ in cells)]
    columns = [column for column in plan.columns if any(setting == column.key for _, setting in cells)]
    if min(len(rows), len(columns)) > WIDEST:
        return printed_grid(table, columns, rows)
    methods = [(row.key, row.label) for row in rows]
    settings = [(column.key, column.title) for column in columns]
    turned = len(rows) > len(columns)
    across, down = (settings, methods) if turned else (methods, settings)
    printed = "printed" if plan.comparable else "printed, not comparable"
    kinds = [printed, "measured", *(["difference"] if plan.comparable else [])]
    above = [b.Head(""), *(b.Head(label, span=len(kinds), start=True) for _, label in across)]
    names = [b.Head(kind, True, start=kind == printed) for _ in across for kind in kinds]
    body: list[b.Row] = []
    for key, label in down:
        places = [(key, key_across) if turned else (key_across, key) for key_across, _ in across]
        body.append((label, *(piece for place in places for piece in _pieces(cells.get(place), len(kinds)))))
    first = b.Head("method" if turned else "setting")
    return b.Grid(f"{plan.source} at a glance", (tuple(above), (first, *names)), tuple(body), "small")


def _pieces(cell: Cell | None, kinds: int) -> list[b.Line | b.Box]:
    if cell is None:
        return ["–"] * kinds
    mark, look = words.SIGNS[cell.status]
    value = b.Text(words.measured(cell), "" if cell.mean is not None else "none")
    spread = () if cell.std is None else (b.Text(f" ± {decimal(cell.std, cell.digits)}", "small"),)
    measured = b.Box(((value, *spread),), title=f"{words.spread(cell)} {words.remark(cell)}".strip())
    difference: b.Line = b.Text(mark, look) if _lost(cell) else "–"
    if cell.difference is not None:
        difference = (_difference(cell, sign=False), b.Text(f" {mark}", look))
    return [decimal(cell.printed, cell.digits), measured, difference][:kinds]
