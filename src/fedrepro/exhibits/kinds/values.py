"""One number a seed of every cell, for kinds that draw no curves: as a table reads it, or less that of another row."""

import statistics
from collections.abc import Sequence

from fedrepro.choices import require_known
from fedrepro.config.plan import Place, Plan
from fedrepro.errors import UserError
from fedrepro.exhibits.receipt import Evidence, why_mixed
from fedrepro.exhibits.statistics import paired_differences
from fedrepro.registry import unknown

BANDS = ("std", "range", "none")
WITHOUT = "without "


def values(plan: Plan, evidence: Evidence, minus: str = "") -> list[tuple[Place, dict[int, float]]]:
    """Lists each cell with evidence and its number at each seed, without cells in which a seed has no number: a mean over the
    others would be optimistic. Seeds of different code or data make no mean, as in a table.

    `minus`: from each number that of the row `minus`, in the same column and at the same seed, is taken away (see `bases`).
    """
    base = bases([row.key for row in plan.rows], minus) if minus else {}
    cells = {(cell.row, cell.column): cell for cell in plan.planned}
    numbers = []
    for cell in plan.planned:
        per_seed = _per_seed(cell, evidence)
        if minus:
            base_cell = cells.get((base.get(cell.row, ""), cell.column))
            per_seed = paired_differences(per_seed, _per_seed(base_cell, evidence)) if base_cell else {}
        present = {seed: value for seed, value in per_seed.items() if value is not None}
        if present and len(present) == len(per_seed):
            numbers.append((cell, present))
    return numbers


def _per_seed(cell: Place, evidence: Evidence) -> dict[int, float | None]:
    receipts = {seed: r for seed, r in evidence.get(cell.run_id or "", {}).items() if r.has(cell.reading)}
    return {} if why_mixed(receipts.values()) else {seed: receipt.value(cell.reading) for seed, receipt in receipts.items()}


def bases(rows: Sequence[str], minus: str) -> dict[str, str]:
    """Returns row -> the row whose number is taken away from it: `minus`, or where rows are made by `axes:` the one that begins
    with it and ends as the row does. Rows that are taken away have none. "without +ima": from each row with this ending the row
    without it. UserError when there is no such row."""
    if minus.startswith(WITHOUT):
        ending = minus.removeprefix(WITHOUT)
        pairs = {row: row.removesuffix(ending) for row in rows if row.endswith(ending) and row.removesuffix(ending) in rows}
        if not pairs:
            raise UserError(f"minus = {minus!r}: no row has this ending and is there without it too, of {', '.join(rows)}")
        return pairs
    base_rows = [minus] if minus in rows else [row for row in rows if row.startswith(f"{minus}-")]
    if not base_rows:
        raise UserError(f"minus = {minus!r}: {unknown('row', minus, list(rows))}")
    return {row: base for row in rows if row not in base_rows for base in base_rows if row.endswith(base.removeprefix(minus))}


def band(
    kind: str, numbers: Sequence[Sequence[float]], centres: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns the lower ends and the upper ends around each of the `centres` of some seeds' numbers: from the lowest to the
    highest, or one standard deviation to both sides, which takes two seeds. Both are empty without a band."""
    if kind == "range":
        return tuple(map(min, numbers)), tuple(map(max, numbers))
    reaches = [
        (centre, statistics.stdev(of_seeds))
        for of_seeds, centre in zip(numbers, centres, strict=True)
        if kind == "std" and len(of_seeds) > 1
    ]
    return tuple(centre - reach for centre, reach in reaches), tuple(centre + reach for centre, reach in reaches)


def require_band(kind: str) -> None:
    """UserError unless `band` knows it."""
    require_known(f"band = {kind!r}", "band", kind, BANDS)
