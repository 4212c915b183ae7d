"""A table for authors: LaTeX with booktabs in the grid of the printed one, the printed number below the measured one."""

import itertools
import re

from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.sections.words import headline
from fedrepro.units import decimal

SPECIAL = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "\\": r"\textbackslash{}"}
SPECIAL |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "·": r"$\cdot$", "×": r"$\times$"}
SPECIAL |= {"α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "λ": r"$\lambda$", "μ": r"$\mu$", "η": r"$\eta$"}
SPECIAL |= {"ρ": r"$\rho$", "τ": r"$\tau$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\rightarrow$", "∞": r"$\infty$"}
SPECIAL |= {"σ": r"$\sigma$", "δ": r"$\delta$", "ε": r"$\epsilon$", "θ": r"$\theta$", "Δ": r"$\Delta$", "≈": r"$\approx$"}
SPECIAL |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
SPECIAL |= {"[": "{[}"}  # \\ would read a bracket that begins the next line as its argument


def write(table: Exhibit) -> str:
    r"""Returns a `tabular` for `\input`. It needs the package booktabs. A column's best measured number is bold."""
    plan = table.plan
    groups = [(name or "", len(list(same))) for name, same in itertools.groupby(plan.columns, key=lambda column: column.group)]
    above = " & ".join(rf"\multicolumn{{{span}}}{{c}}{{{escape(name)}}}" for name, span in groups)
    ends = list(itertools.accumulate((span for _, span in groups), initial=2))
    rules = " ".join(rf"\cmidrule(lr){{{start}-{end - 1}}}" for start, end in itertools.pairwise(ends))
    lines = [
        f"% {plan.paper_name}, {plan.source}, scale {plan.scale}: measured mean and deviation, below it the printed one.",
        f"% {headline(plan)} Made by: {plan.command}",
        rf"\begin{{tabular}}{{l{'r' * len(plan.columns)}}}",
        r"\toprule",
        *([rf"& {above} \\", rules] if any(name for name, _ in groups) else []),
        rf"method & {' & '.join(escape(column.label) for column in plan.columns)} \\",
        r"\midrule",
    ]
    for row in plan.printed_first:
        cells = [table.cell(row.key, column.key) for column in plan.columns]
        lines.append(rf"{escape(row.label)} & {' & '.join(map(_measured, cells))} \\")
        if any(cell and cell.printed is not None for cell in cells):
            lines.append(rf" & {' & '.join(map(_printed, cells))} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escape(text: str) -> str:
    """Escapes what LaTeX reads as a command, and names Greek letters and signs."""
    return re.sub("|".join(map(re.escape, SPECIAL)), lambda match: SPECIAL[match[0]], text)


def _measured(cell: Cell | None) -> str:
    if cell is None or cell.mean is None:
        return "--"
    value = _number(cell.mean, cell.digits) + ("" if cell.std is None else rf" \pm {_number(cell.std, cell.digits)}")
    return rf"$\mathbf{{{value}}}$" if cell.best_measured else f"${value}$"


def _printed(cell: Cell | None) -> str:
    if cell is None or cell.printed is None:
        return ""
    return rf"\footnotesize ({escape(decimal(cell.printed, cell.digits))})"


def _number(value: float, digits: int) -> str:
    """Writes a number as pages do, with the minus that LaTeX sets."""
    return decimal(value, digits).replace("−", "-")
