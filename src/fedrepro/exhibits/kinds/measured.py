"""What a diagnostic measures at places x or (x, y) in one round, for kinds that draw it."""

from collections.abc import Iterator

from fedrepro.config.plan import Place, Plan
from fedrepro.engine.measurements import Measurements
from fedrepro.errors import UserError
from fedrepro.exhibits.receipt import Evidence, why_mixed


def rounds_reached(plan: Plan, cell: Place) -> list[int]:
    """Lists the kept rounds that the cell's diagnostic is read in and its reading reaches."""
    run = plan.run(cell)
    reached = cell.reading.window(run.config["rounds"]).stop
    return [number for number in run.measures[cell.diagnostic or ""] if number <= reached]


def require_surface(plan: Plan, cell: Place, measured: Measurements, round: int, kind: str) -> None:
    """UserError unless the cell's metric was measured at places (x, y), finite or not."""
    if all(value.y is None for value in measured.at(cell.metric.name, round)):
        advice = f"{cell.metric.name!r} has none; take another metric or kind"
        raise UserError(f"{plan.paper}/{plan.table}: kind: {kind} draws a metric with values at (x, y), {advice}")


def measurements_of(plan: Plan, evidence: Evidence, kind: str) -> Iterator[tuple[Place, dict[int, tuple[Measurements, int]]]]:
    """Yields each cell with (its measurements, the round that it is read at) by seed; the round is the last kept one that its
    reading reaches. Seeds without any are left out, and cells with a diverged seed or with seeds of different code or data.
    UserError for a metric without places."""
    for cell in plan.planned:
        receipts = evidence.get(cell.run_id or "", {})
        if cell.diagnostic is None:
            advice = f"{cell.metric.name!r} is none of one"
            raise UserError(f"{plan.paper}/{plan.table}: kind: {kind} draws a metric of a diagnostic, {advice}")
        readable = {seed: receipt for seed, receipt in receipts.items() if receipt.has(cell.reading)}
        if any(receipt.diverges(cell.reading) for receipt in readable.values()) or why_mixed(readable.values()):
            continue
        rounds = rounds_reached(plan, cell)
        by_seed: dict[int, tuple[Measurements, int]] = {}
        for seed, receipt in readable.items():
            measured = receipt.measured[cell.reading.curve]
            if (number := measured.last(rounds, cell.metric.name)) is not None:
                by_seed[seed] = measured, number
        if by_seed:
            yield cell, by_seed
        elif any(
            value.metric == cell.metric.name
            for receipt in readable.values()
            for value in receipt.measured[cell.reading.curve].values
        ):
            advice = f"{cell.metric.name!r} has one value a round; take curves"
            raise UserError(f"{plan.paper}/{plan.table}: kind: {kind} draws values at places, {advice}")
