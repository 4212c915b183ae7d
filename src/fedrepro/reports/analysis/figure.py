"""A figure: the data that it draws, made from its plan and its evidence. No clock, no host."""

from fedrepro.errors import UserError
from fedrepro.reports.analysis import facts, provenance, settings
from fedrepro.reports.analysis.cells import tabulate
from fedrepro.reports.figures import make_kind
from fedrepro.reports.model import Choice, Evidence, Figure, Plan


def figure(plan: Plan, evidence: Evidence, choices: tuple[Choice, ...] = ()) -> Figure:
    """It depends on its arguments alone.

    UserError for a plan that is none of a figure, and for a metric that no run records.
    """
    if plan.kind is None:
        raise UserError(f"{plan.paper}/{plan.table}: a table, and no figure")
    cells = tabulate(plan, evidence)
    drawn = make_kind(plan.kind).drawn(plan, evidence)
    shown = {one.column for one in drawn.series}
    empty = [column.title for column in plan.columns if column.key not in shown]
    missing = (f"Nothing to draw of {'; '.join(empty)}.",) if shown and empty else ()
    return Figure(
        paper=plan.paper,
        paper_name=plan.paper_name,
        paper_title=plan.paper_title,
        figure=plan.table,
        title=plan.title,
        source=plan.source,
        caption=plan.caption or "",
        kind=plan.kind,
        scale=plan.scale,
        scale_note=plan.scale_note,
        stand_in=plan.stand_in,
        on_budget=plan.on_budget,
        seeds=plan.seeds,
        rows=plan.rows,
        columns=plan.columns,
        metrics=tuple({cell.metric.name: cell.metric for cell in plan.planned}.values()),
        x=drawn.x,
        y=drawn.y,
        series=drawn.series,
        ran=settings.ran(plan),
        warnings=(*facts.warnings(plan, evidence, cells, "the JSON lists them"), *missing),
        cost=provenance.costs(evidence, cells, choices),
        command=plan.command,
    )
