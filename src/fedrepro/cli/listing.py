"""fedrepro runs: what has been trained, all of it read as the tables read it."""

import contextlib
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from fedrepro.errors import UserError
from fedrepro.files import read_json

if TYPE_CHECKING:
    from fedrepro.config.catalogue import Catalogue
    from fedrepro.config.project import Project

ROOT = Path()


def runs(options: Namespace) -> None:
    """A heading for each reading, below it a line a run: mean and deviation, seeds, and what differs from the table. Seeds that
    other code made have a line of their own."""
    from fedrepro.config.project import load_project

    project = load_project(ROOT)
    if options.prune or options.dry_run:
        from fedrepro.config.grid import every_run
        from fedrepro.tracking import prune

        for line in prune(ROOT, asked_runs=every_run(project), dry_run=options.dry_run):
            print(line)
        return
    from fedrepro.cli.coded import by_code
    from fedrepro.cli.outcome import read_receipts, reading_of, summary
    from fedrepro.engine.receipts import RUNS

    folders = sorted((ROOT / RUNS).glob("*/"))
    catalogue = _catalogue(project, {folder.name for folder in folders})
    found: dict[str, list[tuple[str, str, str]]] = {}
    for folder in folders:
        receipts = read_receipts(folder)
        if not receipts:
            continue
        config = next(iter(receipts.values()))["config"]
        readings, changed = catalogue.find(folder.name, config)
        for note, same in by_code(ROOT, receipts):
            for shown in readings:
                values = {seed: shown.reading.of(receipt) for seed, receipt in same.items()}
                line = folder.name, summary(shown, values), "; ".join(filter(None, [", ".join(map(str, changed)), note]))
                found.setdefault(reading_of(shown, config), []).append(line)
    if not found:
        print(f"{RUNS}: nothing has been trained; `fedrepro run fedlaw/table3 --rows fedavg` starts with a few runs")
    for number, (reading, lines) in enumerate(found.items()):
        print(*([""] if number else []), reading, sep="\n" if number else "")
        widths = [max(len(line[i]) for line in lines) for i in range(2)]
        for run_id, value, changed in lines:
            print(f"  {run_id:<{widths[0]}}  {value:<{widths[1]}}  {changed}".rstrip())


def _catalogue(project: "Project", run_ids: set[str]) -> "Catalogue":
    """Of the tables that have been planned here, where they ask for all of these runs: planning every table takes seconds."""
    from fedrepro.config.catalogue import Catalogue
    from fedrepro.tracking.wanted import plan_files

    planned = set()
    for path in plan_files(ROOT):
        with contextlib.suppress(UserError, KeyError, TypeError):  # a damaged plan is made again by the command that needs it
            plan = read_json(path)
            planned.add((f"{plan['paper']}/{plan['table']}", plan["scale"]))
    found = Catalogue(project, planned)
    return found if run_ids <= found.asked.keys() else Catalogue(project)
