"""Committed evidence as numbers: means, differences from the printed ones, gains, curves; and how remarks write them."""

from functools import cache
from pathlib import Path
from typing import Any

from fedrepro.config.grid import plan
from fedrepro.config.project import load_project
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.store import Store

ROOT = Path(__file__).parents[2]
FEDAVG, GH = "fedavg", "fedavg+gh"


@cache
def project() -> Any:
    return load_project(ROOT)


class Table:
    """A table with its committed evidence: means, differences from the printed numbers, gains of one row over another."""

    def __init__(self, name: str, scale: str = "full") -> None:
        paper, _, table = name.partition("/")
        planned = plan(project().as_published(scale), paper, table, scale)
        exhibit = Exhibit.of(planned, Store((ROOT / "reports" / scale / paper / "evidence",)))
        self.plan, self.evidence, self.choices = exhibit.plan, exhibit.evidence, exhibit.choices
        self.cells = {(cell.row.key, cell.column.key): cell for cell in exhibit.cells}

    def mean(self, row: str, column: str) -> float:
        value = self.cells[row, column].mean
        assert value is not None, f"{self.plan.table}: {row}, {column} has no mean"
        return value

    def printed(self, row: str, column: str) -> float:
        value = self.cells[row, column].printed
        assert value is not None
        return value

    def off(self, row: str, column: str) -> float:
        return self.mean(row, column) - self.printed(row, column)

    def gain(self, column: str, row: str = GH, base: str = FEDAVG) -> float:
        return self.mean(row, column) - self.mean(base, column)

    def printed_gain(self, column: str, row: str = GH, base: str = FEDAVG) -> float:
        return self.printed(row, column) - self.printed(base, column)

    def curves(self, row: str, column: str, metric: str = "test_accuracy") -> list[list[float]]:
        """One curve for each seed."""
        return [receipt.curves[metric] for receipt in self.evidence[self.cells[row, column].run_id or ""].values()]


def two(value: float) -> str:
    return f"{value:.2f}"


def one(value: float) -> str:
    return f"{value:.1f}"


def signed(value: float) -> str:
    return f"{value:+.1f}"


@cache
def table(name: str, scale: str = "full") -> Table:
    return Table(name, scale)
