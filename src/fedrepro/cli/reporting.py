"""fedrepro report | choose | page | site | overview | spread | summary."""

from argparse import Namespace
from pathlib import Path

from fedrepro import console
from fedrepro.config.places import SWEEP
from fedrepro.config.plan import load_plan
from fedrepro.config.project import load_project
from fedrepro.config.words import check_claims, load_words
from fedrepro.data.registry import REGISTRY, load_registry
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.means import load_table, write_means, write_summary
from fedrepro.exhibits.render import render, render_overview, render_page, render_site
from fedrepro.exhibits.spreads import measured, spreads, write_spreads
from fedrepro.files import write_json
from fedrepro.store import Store


def report(options: Namespace) -> None:
    """Renders a table's pages and pictures, or a figure's picture and its data."""
    plan = load_plan(options.plan)
    print(*render(options.plan, Store.of(), options.out or Path(plan.folder, plan.table)), sep="\n")


def choose(options: Namespace) -> None:
    """Says which candidates of a tuned table are shown, and what the report needs with them."""
    exhibit = Exhibit.of(load_plan(options.plan), Store.of())
    records = []
    for choice in exhibit.choices:
        console.say(f"{choice.row}, {choice.column}: {choice.chosen.text if choice.chosen else choice.reason}")
        values = choice.chosen and choice.chosen.values
        records.append({"row": choice.place.row, "column": choice.place.column, "values": values, "reason": choice.reason})
    write_json(options.out, {"seeds_by_run": exhibit.plan.seeds_by_run, "choices": records})


def page(options: Namespace) -> None:
    plan = load_plan(options.plans[0])
    check_claims(load_project(params={}), plan.paper)  # whatever params.yaml says
    words = load_words(Path(), plan.paper)
    print(*render_page(options.plans, Store.of(), options.out or Path(plan.page).parent, words), sep="\n")


def site(options: Namespace) -> None:
    print(*render_site(options.pages, Path("reports")), sep="\n")


def overview(options: Namespace) -> None:
    print(*render_overview(options.pages, Path("reports")), sep="\n")


def summary(options: Namespace) -> None:
    tables = [load_table(path) for path in options.documents]
    write_summary(tables, load_registry(REGISTRY), options.out)
    write_means(tables, options.out.with_name("means.json"))


def spread(options: Namespace) -> None:
    """Estimates the spread of the seeds again from the evidence at scale full. UserError if there is none, and for a sweep,
    whose numbers have no margin."""
    if options.paper.startswith(SWEEP):
        raise UserError(f"{options.paper}: a sweep has no printed numbers that a spread would help to judge; name a paper")
    tables = measured(Path(), options.paper)
    if not any(seeds for table in tables for seeds in table.evidence.values()):
        raise UserError(
            f"{options.paper}: there is no published evidence of it at scale full, so nothing was written; give "
            f"`fedrepro publish {options.paper}/TABLE --scale full` first"
        )
    estimates = spreads(tables)
    path = write_spreads(estimates, Path(), options.paper)
    lack = ": has no estimate, since fewer than two measurements have seeds that differ; publish more"
    print(path if estimates else f"{path}{lack}")
