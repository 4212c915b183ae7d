"""The report of one table: everything that it says, made from its plan and its evidence. No clock, no host."""

from pathlib import Path

from fedrepro.reports.analysis import answers, facts, provenance, settings
from fedrepro.reports.analysis.across import comparisons
from fedrepro.reports.analysis.cells import alternatives, count_statuses, tabulate
from fedrepro.reports.analysis.verdict import RULE
from fedrepro.reports.model import Choice, ColumnCurves, Evidence, Plan, Table


def table(
    plan: Plan,
    evidence: Evidence,
    figures: tuple[ColumnCurves, ...] = (),
    choices: tuple[Choice, ...] = (),
    tuning: Path | None = None,
) -> Table:
    """The report, which depends on its arguments alone. Paths are kept as given, which is relative to the project root."""
    cells = tabulate(plan, evidence)
    remarks, waiting = answers.remarks(plan, evidence)
    shown = {cell.metric for cell in cells} if plan.comparable else set()
    return Table(
        paper=plan.paper,
        paper_name=plan.paper_name,
        paper_title=plan.paper_title,
        table=plan.table,
        title=plan.title,
        source=plan.source,
        scale=plan.scale,
        own=plan.own,
        scale_note=plan.scale_note,
        stand_in=plan.stand_in,
        on_budget=plan.on_budget,
        comparable=plan.comparable,
        variant_of=plan.variant_of,
        varied=plan.varied,
        metric=plan.metric,
        rows=plan.rows,
        columns=plan.columns,
        seeds=plan.seeds,
        ran=settings.ran(plan),
        about=facts.about(plan, evidence, cells),
        warnings=facts.warnings(plan, evidence, cells),
        cells=tuple(cells),
        counts=count_statuses(cells),
        rule=RULE,
        rule_alternatives=alternatives(cells, plan),
        printed_seeds=plan.printed_seeds,
        spreads={metric: one for metric, one in plan.spreads.items() if metric in shown},
        choices=choices,
        tuning=tuning and tuning.as_posix(),
        comparisons=comparisons(plan, cells),
        methods=provenance.methods(plan),
        settings=settings.settings(plan),
        cost=provenance.costs(evidence, cells, choices),
        disagreements=plan.disagreements,
        deviations=plan.deviations,
        known_gaps=plan.known_gaps,
        remarks=remarks,
        waiting=waiting,
        figures=figures,
        command=plan.command,
        provenance=provenance.provenance(plan, evidence),
    )
