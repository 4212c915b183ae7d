"""Where the numbers of a page come from: data, rounds, seeds, device, dates, commits, and how much has run."""

from collections.abc import Collection, Iterable, Mapping

from fedrepro.choices import PUBLISHED
from fedrepro.config.table import Metric
from fedrepro.exhibits import provenance, settings
from fedrepro.exhibits.exhibit import Exhibit, Totals, totals
from fedrepro.exhibits.names import period
from fedrepro.exhibits.paper import PaperPage
from fedrepro.exhibits.receipt import Receipt, receipts
from fedrepro.exhibits.sections.cost import total_cost
from fedrepro.exhibits.sections.section import section
from fedrepro.exhibits.write import blocks as b


@section("table", at=40)
def about_the_runs(table: Exhibit) -> list[b.Block]:
    """The facts of one table."""
    total = totals(table)
    measured = sum(cell.mean is not None for cell in table.cells)
    facts = {
        "data": _data(table) or "no run is planned",
        "metric": "; ".join(_metrics(table)),
        "reported": ", ".join(map(str, settings.reported(table.plan))) or "no run is planned",
        "seeds": _seeds(receipts(table.evidence), table.plan.seeds),
        "device": "; ".join(provenance.devices(table.evidence)),
        "arithmetic": _arithmetic(table, total),
        "runs finished": period(total.finished),
        "commit of the runs": ", ".join(provenance.commits(table.evidence)),
        "evidence": _origin(total),
        "complete": f"{measured} of {len(table.cells)} cells, {total.runs_done} of {total.runs_planned} runs",
    }
    return [b.Section("About the runs", (_facts(facts),))]


@section("paper", at=90)
def what_was_run(paper: PaperPage) -> list[b.Block]:
    """The facts of all tables of a paper. A run that several tables share counts once."""
    total, tables = paper.totals, paper.tables
    measured = sum(cell.mean is not None for table in tables for cell in table.cells)
    cells = sum(len(table.cells) for table in paper.all_tables)
    facts = {
        "data": ", ".join(dict.fromkeys(name for table in tables for names in table.data.values() for name in names)),
        "seeds": _seeds(receipts(paper.evidence), {seed for table in tables for seed in table.plan.seeds}),
        "device": "; ".join(provenance.devices(paper.evidence)),
        "runs finished": period(total.finished),
        "commit of the runs": ", ".join(provenance.commits(paper.evidence)),
        "evidence": _origin(total),
        "have results": f"{len(tables)} of {len(paper.all_tables)} tables, {measured} of {cells} cells, "
        f"{total.runs_done} of {total.runs_planned} runs (one setting and method at one seed)",
    }
    facts |= {name: ", ".join(values) for name, values in provenance.page_versions(paper.evidence).items()}
    return [b.Section("What was run", (_facts(facts),), folded=True, note=total_cost(total))]


def _facts(facts: Mapping[str, str]) -> b.Pairs:
    return b.Pairs(tuple((name, (value or "no run yet",)) for name, value in facts.items()))


def _seeds(runs: Iterable[Receipt], planned: Collection[int]) -> str:
    """Lists the seeds that have run, then those that are planned and have not."""
    run_seeds = {receipt.seed for receipt in runs}
    groups = {"": run_seeds & {*planned}, "not run yet: ": {*planned} - run_seeds}
    return "; ".join(prefix + ", ".join(map(str, sorted(seeds))) for prefix, seeds in groups.items() if seeds)


def _metrics(table: Exhibit) -> list[str]:
    """Lists the metrics of the columns, then those of rows that show another metric, with the names of these rows."""
    rows = table.plan.rows
    rows_by_metric: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.metric:
            alike = row.variant and all(other.metric == row.metric for other in rows if other.variant == row.variant)
            rows_by_metric.setdefault(_describe(row.metric), {})[row.variant if row.variant and alike else row.label] = None
    general = dict.fromkeys(_describe(column.metric) for column in table.plan.columns)
    shared = [] if all(row.metric for row in rows) else list(general)
    return [*shared, *(f"{', '.join(labels)}: {metric}" for metric, labels in rows_by_metric.items())]


def _describe(metric: Metric) -> str:
    better = f", {metric.better} is better" if metric.ranked else ""
    return f"{metric.description} ({metric.unit}{better})"


def _data(table: Exhibit) -> str:
    """Names the data, `mnist (1×28×28)`; where columns differ, `FashionMNIST columns ran on digits (1×28×28)` for each group of
    them."""
    groups_by_data = {" and ".join(names): group for group, names in table.data.items()}
    if len(groups_by_data) == 1:
        return next(iter(groups_by_data))
    return "; ".join(f"{group} columns ran on {' and '.join(names)}" for group, names in table.data.items())


def _arithmetic(table: Exhibit, total: Totals) -> str:
    """Says how many cells are portable, and the command that trains them again: `verify` compares with what is published."""
    kinds, plan = [cell.arithmetic for cell in table.cells if cell.arithmetic], table.plan
    if not kinds:
        return "no run yet"
    portable = kinds.count("portable")
    if not portable:
        return "not portable: another type of processor gives other last digits"
    share = "every cell" if portable == len(kinds) else f"{portable} of {len(kinds)} cells with runs"
    text = f"portable in {share}: the same bits on every x86-64 processor with AVX2"
    if plan.scale not in PUBLISHED:
        return text
    command, more = ("verify", "") if total.published else ("run", " --again")
    return f"{text}; to see for yourself: fedrepro {command} {plan.paper}/{plan.table} --scale {plan.scale}{more}"


def _origin(total: Totals) -> str:
    """Says how many trainings are published and how many were made here."""
    trained_here = total.runs_done - total.published
    parts = [f"{total.published} published"] * bool(total.published) + [f"{trained_here} trained here"] * bool(trained_here)
    return ", ".join(parts) or "none yet"
