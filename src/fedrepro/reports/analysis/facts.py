"""What a report says first: which data, seeds and devices its numbers come from, and when and from which commit they ran."""

import math
from collections.abc import Iterable
from pathlib import Path

from fedrepro.config.reading import EDITED
from fedrepro.engine import fingerprints
from fedrepro.registry import parse
from fedrepro.reports.analysis.provenance import conflicts
from fedrepro.reports.analysis.settings import reported, show
from fedrepro.reports.model import About, Cell, Data, Environment, Evidence, Plan, Receipt
from fedrepro.store import is_published


def about(plan: Plan, evidence: Evidence, cells: list[Cell]) -> About:
    """The facts of the opening lines; dates and commits are those of the runs."""
    receipts = _all(evidence)
    cost = [receipt.cost for receipt in receipts]
    return About(
        data=_data(plan, evidence),
        reported=reported(plan),
        seeds=plan.seeds,
        devices=_distinct(_device(receipt.environment) for receipt in receipts),
        first_finished_at=min((one.finished_at for one in cost), default=None),
        last_finished_at=max((one.finished_at for one in cost), default=None),
        commits=_distinct(_commit(receipt.environment) for receipt in receipts),
        cells_measured=sum(cell.mean is not None for cell in cells),
        cells=len(cells),
        runs_done=len(receipts),
        published=sum(is_published(Path(receipt.path)) for receipt in receipts),
        runs_planned=plan.runs_asked,
        wall_s=round(math.fsum(one.wall_s - one.shared_s for one in cost), 1),
        peak_rss_mib=max((one.peak_rss_mib or 0.0 for one in cost), default=None),
        sharing=sum(one.shared_s > 0 for one in cost),
    )


def warnings(plan: Plan, evidence: Evidence, cells: list[Cell], where: str = "see the provenance below") -> tuple[str, ...]:
    """What a reader must know before trusting the numbers; one sentence each, empty when all is well. `where`: the commits."""
    receipts, said = _all(evidence), [plan.stand_in] if plan.stand_in else []
    planned = plan.runs_asked
    if len(receipts) < planned:
        said.append(f"Incomplete: {len(receipts)} of {planned} runs (run = one cell's setting at one seed) have evidence.")
    diverged = sum(receipt.diverged for receipt in receipts)
    if diverged:
        named = sorted({f"{c.method_label} ({c.setting_label})" for c in cells if None in c.per_seed.values()})
        of_whom = f"their cells have no mean: {', '.join(named)}" if named else "they are candidates that no cell shows"
        said.append(f"{diverged} of {len(receipts)} runs diverged; {of_whom}.")
    other = [names for one in receipts if (names := fingerprints.changed(one.code, one.config).names)]
    if other:
        what = fingerprints.listed(dict.fromkeys(name for names in other for name in names))
        said.append(f"{len(other)} of {len(receipts)} runs were made with other code of {what} than today's.")
    edited = _edited(plan)
    if edited:
        said.append(f"params.yaml overrides what the table would take: {', '.join(edited)}.")
    commits = {receipt.environment.commit for receipt in receipts}
    if len(commits) > 1:
        said.append(f"The runs come from {len(commits)} different commits; {where}.")
    if any(receipt.environment.dirty for receipt in receipts):
        said.append("Some runs were made from a working tree with uncommitted changes (marked dirty).")
    return (*said, *conflicts(plan, evidence))


def _data(plan: Plan, evidence: Evidence) -> tuple[Data, ...]:
    """Per column group of the printed table: the data set (and input shape) of its runs, if any has evidence of those."""
    used: dict[str, dict[str, None]] = {}
    for cell in [cell for cell in plan.planned if evidence.get(cell.run_id or "")] or plan.planned:
        config, column = plan.run(cell).config, plan.column(cell.column)
        shape = config.get("input_shape")
        name = config["dataset"] + (f" ({show(shape)})" if shape else "")
        used.setdefault(column.group or column.label, {})[name] = None
    return tuple(Data(group, tuple(names)) for group, names in used.items())


def _edited(plan: Plan) -> list[str]:
    """`rounds = 5` for every value that comes from params.yaml instead of from the table, its paper or the scale."""
    found: dict[str, None] = {}
    for run in plan.runs.values():
        for key, source in run.sources.items():
            if source == EDITED:
                found[f"{key} = {show(run.config[key])}"] = None
        for key, source in run.argument_sources.items():
            if source == EDITED:
                part, _, argument = key.partition(".")
                call = next(call for call in parse(run.method) if call.name == part)
                found[f"{key} = {show(call.arguments[argument])}"] = None
    for cell in plan.cells:
        if cell.average_last_source == EDITED:
            found[f"average_last = {cell.average_last}"] = None
    return sorted(found)


def _all(evidence: Evidence) -> list[Receipt]:
    return [receipt for seeds in evidence.values() for receipt in seeds.values()]


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _device(environment: Environment) -> str:
    parts = [environment.device, environment.processor]
    threads = environment.threads
    if threads is not None:
        parts.append(f"{threads} thread{'' if threads == 1 else 's'} a run")
    return ", ".join(part for part in parts if part)


def _commit(environment: Environment) -> str:
    return f"{environment.commit or 'unknown'}{' (dirty)' if environment.dirty else ''}"
