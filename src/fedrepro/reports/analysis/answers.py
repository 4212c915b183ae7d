"""What a person reads first of a paper at one scale, and what the remarks on a table say, filled from the evidence."""

from collections.abc import Mapping, Sequence

from fedrepro.config.summary import Summary
from fedrepro.reports.analysis.forms import Facts
from fedrepro.reports.analysis.numbers import Source
from fedrepro.reports.analysis.paired import mean
from fedrepro.reports.analysis.prose import filled
from fedrepro.reports.model import Answers, ClaimVerdict, Evidence, Fit, Plan

OWN = "the tables' own"  # the reading without a name, as sentences call it


def remarks(plan: Plan, evidence: Evidence) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(what is said of a table's numbers, the cells that other remarks wait for).

    They are of the published evidence: with params.yaml's values there are none. UserError where one says what does not hold.
    """
    if not plan.remarks or plan.own:
        return (), ()
    source = Source.of(plan, evidence)
    facts = Facts({plan.table: source}, own=plan.table, distances=_distances(source))
    made, waiting = filled(plan.remarks, facts, f"papers/{plan.paper}/tables/{plan.table}.yaml: remarks at scale {plan.scale}")
    return tuple(made), tuple(dict.fromkeys(waiting))


def _distances(source: Source) -> dict[str, float | None]:
    """Of each reading in a table of several."""
    found: dict[str, list[float | None]] = {}
    for row in source.plan.rows:
        for cell in (cell for (key, _), cell in source.cells.items() if key == row.key and cell.printed is not None):
            away = None if cell.mean is None or cell.printed is None else abs(cell.mean - cell.printed)
            found.setdefault(row.variant or OWN, []).append(away)
    known = {name: [one for one in away if one is not None] for name, away in found.items()}
    return {name: mean(values) if len(values) == len(found[name]) else None for name, values in known.items()}


def facts(
    plans: Mapping[str, Plan], evidence: Mapping[str, Evidence], claims: Sequence[ClaimVerdict], fits: Sequence[Fit]
) -> Facts:
    """What the sentences on a paper are filled from: all its tables, its claims, its readings over all tables and by table."""
    distances: dict[str, float | None] = {}
    for one in fits:
        name = one.variant or OWN
        distances |= {name: one.distance} | {f"{name} in {table}": away for table, away in one.tables.items()}
    tables = {name: Source.of(plan, evidence.get(name, {})) for name, plan in plans.items()}
    return Facts(tables, claims={one.id: one.verdict for one in claims}, distances=distances)


def answers(summary: Summary | None, facts: Facts, plan: Plan) -> Answers | None:
    """None where nothing is said of the paper at the scale of `plan`, one of its plans, or it has params.yaml's values."""
    if summary is None or plan.own or plan.scale not in summary.answers:
        return None
    own, where = summary.answers[plan.scale], f"papers/{plan.paper}/summary.yaml: {plan.scale}"
    told = {key: filled(getattr(own, key), facts, f"{where}: {key}") for key in ("fails", "open", "holds")}
    proposes, missing = (filled([text], facts, where)[0][0] for text in (summary.proposes, summary.missing))
    waiting = dict.fromkeys(one for _, waits in told.values() for one in waits)
    said = {key: tuple(lines) for key, (lines, _) in told.items()}
    return Answers(proposes=proposes, missing=missing, waiting=tuple(waiting), **said)
