"""The page of one paper at one scale: all its tables, what they show together, and what is missing."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from fedrepro.config.words import Words
from fedrepro.reports.analysis.cells import count_statuses
from fedrepro.reports.analysis.fit import fits
from fedrepro.reports.model import (
    VERDICTS,
    Answers,
    Cell,
    Changed,
    ClaimVerdict,
    ColumnCurves,
    Evidence,
    Figure,
    Gap,
    NotRun,
    Page,
    PageAbout,
    PageCost,
    PageFigure,
    PageTable,
    Partition,
    Plan,
    PrintedShare,
    Shown,
    Table,
)
from fedrepro.store import is_published

Made = tuple[Plan, Evidence, Table]
Drawn = tuple[Plan, Figure, str | None]  # with the path of its picture, where there is anything to draw
T = TypeVar("T")


@dataclass(frozen=True)
class Pictured:
    """A table's pictures, and its own page if that shows the same numbers."""

    figures: tuple[ColumnCurves, ...]
    tuning: str | None
    page: str | None = None


def page(
    tables: Sequence[Made],
    figures: Sequence[Drawn],
    claims: Sequence[ClaimVerdict],
    gaps: Sequence[Gap],
    shown: dict[str, Pictured],
    picture: str | None,
    partitions: tuple[Partition, ...],
    words: Words,
    answers: Answers | None,
) -> Page:
    """Everything that the page says. `tables` and `figures` are of one paper and scale, and not both empty; those without
    evidence are only named.

    `shown`: of each table with evidence its pictures, and its own page if that shows the same numbers.
    """
    plan = (tables or figures)[0][0]
    run = [table for _, evidence, table in tables if evidence]
    cost, judged = _cost([*run, *(figure for _, figure, _ in figures)]), _once(run)
    missing = [p for p, evidence, _ in tables if not evidence] + [p for p, _, path in figures if path is None]
    return Page(
        paper=plan.paper,
        paper_name=plan.paper_name,
        paper_title=plan.paper_title,
        scale=plan.scale,
        own=plan.own,
        scale_note=next((table.scale_note for table in run if not table.on_budget), ""),
        about=_about(tables, cost, [p for p, *_ in (*tables, *figures)]),
        answers=answers,
        changes=_changes(words, plan.paper) if any(table.comparable for table in run) else (),
        printed=PrintedShare(_measured_in_print(run), words.printed),
        counts=count_statuses(judged),
        verdicts=_sum(([claim.verdict] for claim in claims), VERDICTS),
        claims=tuple(claims),
        tables=tuple(_shown(table, shown[table.table]) for table in run),
        figures=tuple(_pictured(figure, path) for _, figure, path in figures if path),
        not_run=tuple(NotRun(p.table, p.source, p.title, p.command) for p in missing),
        fits=tuple(fits(run)),
        gaps=tuple(gaps),
        picture=picture,
        partitions=partitions,
        disagreements=plan.disagreements,
        deviations=plan.deviations,
        known_gaps=plan.known_gaps,
        cost=cost,
        versions=_versions(run),
        command=f"snakemake --cores 8 {plan.page}",
    )


def _shown(table: Table, pictured: Pictured) -> PageTable:
    """What the page keeps of a table's report. The rest is about the paper, or stands once for all tables."""
    kept: dict[str, Any] = {field.name: getattr(table, field.name) for field in fields(Shown)}
    kept |= vars(pictured)
    return PageTable(**kept)


def _pictured(figure: Figure, path: str) -> PageFigure:
    about = figure.figure, figure.source, figure.title, figure.caption
    return PageFigure(*about, path, figure.warnings, figure.command)


def _changes(words: Words, paper: str) -> tuple[Changed, ...]:
    own = {claim.id for claim in words.claims}
    return tuple(
        Changed(
            one.date,
            one.what,
            one.why,
            tuple(id for id in one.claims if id in own),
            {move: tuple(places) for move, places in one.moved.get(paper, {}).items()},
            one.counts.get(paper, ""),
        )
        for one in words.changes
    )


def _measured_in_print(tables: Sequence[Table]) -> int:
    """How many printed numbers have a measured one beside them, in tables that are printed as they stand."""
    printed = (cell for table in tables if not (table.variant_of or table.stand_in) for cell in table.cells)
    return sum(cell.printed is not None and cell.mean is not None for cell in printed)


def _once(tables: Sequence[Table]) -> list[Cell]:
    """The cells of the tables that vary no other. A number that several print counts once."""
    found: dict[tuple, Cell] = {}
    for table in tables:
        names = {row.key: row.name for row in table.rows}
        for cell in () if table.variant_of else table.cells:
            own = () if cell.run_id and cell.printed is not None else (table.table, cell.setting)
            key = (names[cell.method], cell.metric, cell.read, cell.printed, cell.run_id, *own)
            found.setdefault(key, cell)
    return list(found.values())


def _about(tables: Sequence[Made], cost: Sequence[PageCost], plans: Sequence[Plan]) -> PageAbout:
    """The facts of the opening lines; a run that several tables or figures share counts once."""
    about = [table.about for _, evidence, table in tables if evidence]
    seeds = [one for run in cost for one in run.seeds]
    planned = {(run_id, seed) for plan in plans for run_id, seeds in plan.asked.items() for seed in seeds}
    return PageAbout(
        data=tuple(dict.fromkeys(used for a in about for entry in a.data for used in entry.used)),
        seeds=tuple(sorted({seed for a in about for seed in a.seeds})),
        devices=tuple(sorted({device for a in about for device in a.devices})),
        first_finished_at=min((a.first_finished_at for a in about if a.first_finished_at), default=None),
        last_finished_at=max((a.last_finished_at for a in about if a.last_finished_at), default=None),
        commits=tuple(sorted({commit for a in about for commit in a.commits})),
        tables_run=len(about),
        tables=len(tables),
        cells_measured=sum(a.cells_measured for a in about),
        cells=sum(table.about.cells for _, _, table in tables),
        runs_done=len(seeds),
        published=sum(is_published(Path(one.evidence)) for one in seeds),
        runs_planned=len(planned),
        wall_s=round(sum(one.wall_s - one.shared_s for one in seeds), 1),
        peak_rss_mib=max((one.peak_rss_mib or 0.0 for one in seeds), default=None),
        sharing=sum(one.shared_s > 0 for one in seeds),
    )


def _cost(tables: Sequence[Table | Figure]) -> tuple[PageCost, ...]:
    """Per run with evidence what each seed cost; a run that several tables share is listed once, with all of them."""
    found: dict[str, PageCost] = {}
    for table in tables:
        for run in table.cost:
            if run.seeds:
                known = found.setdefault(run.run_id, PageCost(**vars(run), tables=()))
                found[run.run_id] = replace(known, tables=(*known.tables, table.source))
    return tuple(found.values())


def _sum(counted: Iterable[Mapping[T, int] | list[T]], names: Iterable[T]) -> dict[T, int]:
    total: Counter[T] = Counter()
    for one in counted:
        total.update(one)
    return {name: total[name] for name in names}


def _versions(tables: Sequence[Table]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for table in tables:
        for name, values in table.provenance.versions.items():
            found.setdefault(name, set()).update(values)
    return {name: tuple(sorted(values)) for name, values in found.items()}
