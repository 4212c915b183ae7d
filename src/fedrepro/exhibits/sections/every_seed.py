"""Every seed of every cell, and the same runs read in other ways."""

from fedrepro.console import some
from fedrepro.exhibits.cells import Cell
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.sections import words
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b
from fedrepro.units import decimal

READINGS = (
    "Papers differ in what they print of a run. These are means over seeds of the same runs, read in other ways. A column that "
    "is read before the last round counts only the rounds up to it. The best round is picked on the test set, which is "
    "optimistic."
)


@section("table", at=50)
def every_seed(table: Exhibit) -> list[b.Block]:
    """One row for each cell, one column for each seed."""
    run_cells, missing = [cell for cell in table.cells if cell.per_seed], words.not_run(table.cells)
    seeds = table.plan.seeds
    blocks: list[b.Block] = [b.Paragraph(missing)] if missing else []
    if run_cells:
        rows = tuple(
            (
                *(cell.row.label, cell.column.title),
                *(_value(cell, seed) for seed in seeds),
                *(cell.arithmetic or "–", words.remark(cell)),
            )
            for cell in run_cells
        )
        names = ["method", "setting", *(f"seed {seed}" for seed in seeds), "arithmetic", "remark"]
        blocks.append(b.Grid("Every seed", b.heads(*names, numbers=range(2, 2 + len(seeds))), rows))
    note = f"{some(len(run_cells), 'cell')}, {some(len(seeds), 'seed')}"
    return [b.Section("Every seed", tuple(blocks), folded=bool(run_cells), note=note)]


def _value(cell: Cell, seed: int) -> str:
    return cell.place.reading.number(cell.per_seed[seed]) if seed in cell.per_seed else "–"


@section("table", at=70)
def readings(table: Exhibit) -> list[b.Block]:
    """The last round, the best round, and means of the last rounds."""
    pairs = [(cell, cell.readings) for cell in table.cells if cell.readings]
    if not pairs:
        return []
    ks = sorted({k for _, read in pairs for k in read["mean_of_last"]} - {1})
    rows = tuple(
        (
            *(cell.row.label, cell.column.title, words.measured(cell)),
            *(decimal(value, cell.digits) for value in (read["last"], read["best"], *map(read["mean_of_last"].get, ks))),
        )
        for cell, read in pairs
    )
    names = ["method", "setting", "as reported", "last round", "best round", *(f"mean of last {k}" for k in ks)]
    grid = b.Grid("Other ways to read a run", b.heads(*names, numbers=range(2, len(names))), rows)
    note = "last round, best round, mean of the last rounds"
    return [b.Section("Other ways to read a run", (b.Paragraph(READINGS), grid), folded=True, note=note)]
