"""fedrepro report | choose | page | site | overview | spread | summary | versioned | track | ui."""

from argparse import Namespace
from pathlib import Path

from fedrepro import console
from fedrepro.choices import UNSYNCED
from fedrepro.errors import UserError
from fedrepro.files import write_json

ROOT = Path()


def report(options: Namespace) -> None:
    """Of a table: pages and pictures; of a figure: the picture and its data."""
    from fedrepro.config.plan import load_plan
    from fedrepro.exhibits.render import render
    from fedrepro.store import Store

    plan, store = load_plan(options.plan), Store.of(ROOT)
    out = options.out or ROOT / plan.folder / plan.table
    print(*render(options.plan, store, out), sep="\n")


def choose(options: Namespace) -> None:
    """Says which candidates of a tuned table are shown, and what the report needs with them."""
    from fedrepro.config.plan import load_plan
    from fedrepro.exhibits.exhibit import Exhibit
    from fedrepro.store import Store

    made = Exhibit.of(load_plan(options.plan), Store.of(ROOT))
    chosen = []
    for choice in made.choices:
        console.say(f"{choice.row}, {choice.column}: {choice.chosen.text if choice.chosen else choice.reason}")
        values = choice.chosen and choice.chosen.values
        chosen.append({"row": choice.place.row, "column": choice.place.column, "values": values, "reason": choice.reason})
    write_json(options.out, {"asked": made.plan.asked, "choices": chosen})


def page(options: Namespace) -> None:
    from fedrepro.config.plan import load_plan
    from fedrepro.config.project import load_project
    from fedrepro.config.words import check_claims, load_words
    from fedrepro.exhibits.render import render_page
    from fedrepro.store import Store

    plan = load_plan(options.plans[0])
    check_claims(load_project(ROOT, {}), plan.paper)  # whatever params.yaml says
    words = load_words(ROOT, plan.paper)
    print(*render_page(options.plans, Store.of(ROOT), options.out or (ROOT / plan.page).parent, words), sep="\n")


def site(options: Namespace) -> None:
    from fedrepro.exhibits.render import render_site

    for path in render_site(options.pages, ROOT / "reports"):
        print(path)


def overview(options: Namespace) -> None:
    from fedrepro.config.printed import printed_total
    from fedrepro.exhibits.render import render_overview

    folders = sorted(path.parent for path in (ROOT / "papers").glob("*/published"))
    others = {folder.name: printed_total(folder / "published") for folder in folders if not (folder / "paper.yaml").exists()}
    for path in render_overview(options.pages, ROOT / "reports", others):
        print(path)


def summary(options: Namespace) -> None:
    from fedrepro.data.registry import REGISTRY, load_registry
    from fedrepro.exhibits.means import load_table, write_means, write_summary

    tables = [load_table(path) for path in options.documents]
    write_summary(tables, load_registry(ROOT / REGISTRY), options.out)
    write_means(tables, options.out.with_name("means.json"))


def versioned(options: Namespace) -> None:
    """The last step of the DVC stage that trains."""
    from fedrepro import versioned

    print(versioned.store(ROOT))


def track(options: Namespace) -> int:
    """Exit code 1 when a receipt is damaged. With --out never: no report waits for tracking, and `fedrepro ui` syncs again."""
    from fedrepro.tracking import follow, sync
    from fedrepro.tracking.wanted import plan_files

    plans = options.plans or plan_files(ROOT)
    if options.every:
        follow(options.plans, ROOT, options.every, beside=options.beside)
        return 0
    if options.out is None:
        report = sync(plans, ROOT)
        console.say(str(report))
        return int(bool(report.problems))
    try:
        outcome = str(sync(plans, ROOT))
    except UserError as error:
        outcome = f"{UNSYNCED}: {error}"
    except Exception as error:
        outcome = f"{UNSYNCED} ({type(error).__name__}: {error}); the next command tries again"
    (console.fail if outcome.startswith(UNSYNCED) else console.say)(outcome)
    write_json(options.out, {"outcome": outcome})
    return 0


def ui(options: Namespace) -> None:
    from fedrepro.tracking import sync, ui
    from fedrepro.tracking.server import require_port
    from fedrepro.tracking.wanted import plan_files

    require_port(ROOT, options.host, options.port)  # before the seconds that a sync takes
    _plan_published()
    console.say(str(sync(plan_files(ROOT), ROOT)))
    ui(ROOT, options.host, options.port)


def _plan_published() -> None:
    """Writes the plan of each published report, as the workflow does: it says what its evidence is of."""
    from fedrepro.config.grid import plan
    from fedrepro.config.project import load_project
    from fedrepro.store import published_folders
    from fedrepro.workflow.jobs import write_plan

    project = load_project(ROOT)
    for folder in (evidence.parent for evidence in published_folders(ROOT)):
        scale, paper = folder.parts[-2:]
        reports = {path.stem for path in folder.glob("*.json")}
        for table in (name for name in project.tables_of(paper) if name in reports):
            write_plan(f"{scale}/{paper}/", plan(project.as_published(scale), paper, table, scale))


def spread(options: Namespace) -> None:
    """Estimates anew how far seeds lie apart, from the evidence that is there at scale full."""
    from fedrepro.exhibits.spreads import measured, spreads, write_spreads

    made = spreads(measured(ROOT, options.paper))
    print(write_spreads(made, ROOT, options.paper))
