"""fedrepro track | ui. Separate from rendering, since importing both takes 50 ms more."""

from argparse import Namespace
from pathlib import Path

from fedrepro import console, tracking
from fedrepro.choices import UNSYNCED
from fedrepro.config.grid import plan
from fedrepro.config.places import paper_and_scale
from fedrepro.config.plan import PLANS, load_plan
from fedrepro.config.project import load_project
from fedrepro.engine.receipts import RUNS
from fedrepro.errors import UserError
from fedrepro.files import write_json
from fedrepro.store import published_folders
from fedrepro.tracking.address import find
from fedrepro.tracking.planned_runs import plan_files
from fedrepro.tracking.server import require_port
from fedrepro.workflow.jobs import forget_deleted, place_of, planning, write_plan


def track(options: Namespace) -> int:
    """Exit code 1 when a receipt is damaged. With --out never: no report waits for tracking, and `fedrepro ui` syncs again."""
    if not options.plans:
        plan_again(published=options.published)
    if options.every:
        tracking.follow(options.plans, Path(), options.every, beside=options.beside)
        return 0
    if options.out is None:
        report = _say(tracking.sync(options.plans, Path()))
        return int(bool(report.problems))
    try:
        outcome = str(tracking.sync(options.plans, Path()))
    except UserError as error:
        outcome = f"{UNSYNCED}: {error}"
    except Exception as error:
        outcome = f"{UNSYNCED} ({type(error).__name__}: {error}); the next command tries again"
    (console.fail if outcome.startswith(UNSYNCED) else console.say)(outcome)
    write_json(options.out, {"outcome": outcome})
    return 0


def ui(options: Namespace) -> None:
    """Opens on what was trained here. Published runs, the first time a minute's work, are written while the server runs, or
    before it starts if there is nothing else to show."""
    require_port(Path(), options.host, options.port)  # before the sync, which takes seconds
    plan_again(published=False)
    plans = [path for path in plan_files(Path()) if any((RUNS / run_id).exists() for run_id in load_plan(path).runs)]
    if plans and not find(Path.cwd()).served:  # nothing syncs beside a server that runs elsewhere
        console.say(
            "MLflow: runs of this folder first; published ones follow while the page is open, the first time for a minute"
        )
    else:
        console.say("bringing MLflow's store up to date; the first time this takes a minute")
        plan_again(published=True)
        plans = []
    _say(tracking.sync(plans, Path()))
    tracking.ui(Path(), options.host, options.port)


def _say(report: tracking.SyncReport) -> tracking.SyncReport:
    """Prints what a sync did, and which results it left out."""
    console.say(str(report))
    if count := len(report.unasked):
        what = "1 trained seed here belongs" if count == 1 else f"{count} trained seeds here belong"
        how = "`fedrepro runs` lists them; `snakemake -n reports/<table>.md`, which trains nothing, asks for a table"
        console.say(f"{what} to no table that was asked for: {how}")
    return report


def plan_again(published: bool) -> None:
    """Writes the plans again, with `published` also those of published reports. `fedrepro runs --prune` calls it too.

    While a workflow runs, existing plans are not changed: its jobs read them, and --config may give them other settings than
    params.yaml. UserError outside a project, before anything is written.
    """
    project = load_project()
    with planning() as free:
        if free:
            # A dry run writes plans too, and params.yaml may have been edited since; a table may exist no longer.
            forget_deleted(project)
            for path in plan_files(Path()):
                place = place_of(path)
                paper, scale = paper_and_scale(place)
                scale_project = project.as_published(scale) if scale else project
                write_plan(place, plan(scale_project, paper, path.stem, scale or project.params.scale))
        # As the workflow does: the plan of each published report describes the runs of the evidence.
        for folder in (evidence.parent for evidence in published_folders() if published):
            scale, paper = folder.parts[-2:]
            reports = {path.stem for path in folder.glob("*.json")}
            for table in (name for name in project.tables_of(paper) if name in reports):
                if free or not (PLANS / scale / paper / f"{table}.json").exists():
                    write_plan(f"{scale}/{paper}/", plan(project.as_published(scale), paper, table, scale))
