"""fedrepro run | config | plan | plans | evidence."""

import contextlib
import json
import shutil
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro import arithmetic, console
from fedrepro.cli import selection
from fedrepro.errors import UserError
from fedrepro.files import read_json, write_atomic, write_json, write_text

if TYPE_CHECKING:
    from fedrepro.config.project import Project

ROOT, RUNS = Path(), Path("results/runs")
Job = tuple[dict[str, Any], list[int]]  # a run of a plan, and its seeds


def run(options: Namespace) -> None:
    console.log_to(options.log)
    by_file = options.target.endswith(".json")
    project = None if by_file else _project(options)
    plan = _read(Path(options.target), options.seeds) if project is None else _resolve(project, options)
    cells = _select(plan, options)
    seeds, device = options.seeds or plan["seeds"], options.device or (project.params.device if project else "auto")
    if options.engine != "vectorised":
        arithmetic.widen()
    if options.dry_run:
        evidence = ROOT / "reports" / str(plan.get("scale")) / str(plan.get("paper")) / "evidence"
        follow, candidates = selection.foreseen(plan, cells, (ROOT / RUNS, evidence))
        _forecast(selection.jobs(plan, [*cells, *follow], seeds), device, options.cores)
        if candidates:
            print(candidates)
        return
    if project is None:
        from fedrepro.engine.artifacts import require_run

        for entry in selection.runs(plan, cells):
            require_run(entry, options.target, "delete it and run the same command again")
    if any("trial" in cell for cell in cells):
        _train(selection.jobs(plan, cells, seeds), options, project, device)
        plan = selection.settle(plan, ROOT / RUNS)
        cells = _select(plan, options)
    outcome = None
    if project:  # by hand; a job of the workflow does without what this imports
        from fedrepro.cli.outcome import Outcome

        outcome = Outcome(project, plan, cells, seeds)
    _train(selection.jobs(plan, cells, seeds), options, project, device, outcome and outcome.read)
    for line in outcome.lines() if outcome else ():
        console.show(line)


def _train(jobs: list[Job], options: Namespace, project: "Project | None", device: str, read: Any = None) -> None:
    from fedrepro.engine.run import Options, run_seeds

    later = {} if project is None else _announce(jobs, device)  # the workflow has said it for all of its jobs
    for entry, seeds in jobs:
        how = Options(
            root=ROOT,
            device=device,
            engine=options.engine,
            workers=options.workers,
            checkpoint_s=options.checkpoint_seconds,
            again=options.again,
            keep=_kept_rounds(entry, options.keep),
            later=later.get(entry["run_id"], 0.0),
            read=read,
        )
        done = run_seeds(entry, seeds, how)
        line = f"{entry['run_id']}: " + ", ".join(f"seed {seed} {what}" for seed, what in done.items())
        if project is None and {*done.values()} == {"trained"}:  # each seed has had its line
            console.note(line)
        else:
            console.say(line)


def _kept_rounds(entry: dict[str, Any], asked: list[int]) -> tuple[int, ...]:
    """The rounds that --keep or the tables keep the models of. UserError for one that the run does not have."""
    rounds = entry["config"]["rounds"]
    for number in asked:
        if number > rounds:
            raise UserError(f"--keep {number}: {entry['run_id']} has {rounds} rounds")
    return tuple(sorted({*asked, *entry.get("keep", ())}))


def _forecast(jobs: list[Job], device: str, cores: int | None) -> None:
    from fedrepro.cli.forecast import Forecast
    from fedrepro.cli.forecast import Job as Forecasted
    from fedrepro.data.registry import REGISTRY, load_registry

    asked = [Forecasted.of(ROOT, *job) for job in jobs]
    print(*Forecast(ROOT, load_registry(ROOT / REGISTRY), asked, device, limit_s=30).lines(cores), sep="\n")


def _announce(jobs: list[Job], device: str) -> dict[str, float]:
    """Says what is about to be trained; run_id -> how much follows that run, in seeds of it."""
    from fedrepro.cli.forecast import Job as Forecasted
    from fedrepro.cli.forecast import forecast
    from fedrepro.data.registry import REGISTRY, load_registry

    asked = [Forecasted.of(ROOT, *job) for job in jobs]
    line, made = forecast(ROOT, load_registry(ROOT / REGISTRY), asked, device, cores=1)
    if line:
        console.say(line)
    return made.later() if made else {}


def _read(path: Path, seeds: list[int] | None) -> dict[str, Any]:
    """A plan file, or the configuration of one run as a plan of nothing else."""
    content = read_json(path)
    if "runs" in content:
        return content
    if not {"run_id", "method", "method_label", "config", "inputs"} <= content.keys():
        raise UserError(f"{path}: neither a plan nor the configuration of a run; `fedrepro plan` writes one")
    if not seeds:
        raise UserError(f"{path}: the configuration of one run names no seeds; add --seeds 8 9 10")
    cell = {"row": "", "column": "", "run_id": content["run_id"], "reason": None}
    return {"rows": [{"key": ""}], "columns": [{"key": ""}], "cells": [cell], "runs": {content["run_id"]: content}}


def config(options: Namespace) -> None:
    write_json(options.out, json.loads(options.content))


def plan(options: Namespace) -> None:
    options.set, options.seeds = [], None
    text = json.dumps(_resolve(_project(options), options), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if options.out:
        write_text(options.out, text)
    else:
        print(text, end="")


def plans(options: Namespace) -> None:
    """Of every table, for the workflow."""
    from fedrepro.workflow.plans import save

    save(json.loads(options.params), options.out)


def evidence(options: Namespace) -> None:
    """Copies a receipt, or what a diagnostic has measured, that is sound: nothing else takes the place of evidence."""
    from fedrepro.engine import diagnosed
    from fedrepro.engine.records import read_receipt

    if not options.receipt.is_file():
        raise UserError(f"{options.receipt}: no such receipt; `fedrepro run` writes it when the seed is finished")
    (diagnosed.read if options.receipt.suffix == ".parquet" else read_receipt)(options.receipt)
    write_atomic(options.out, lambda temporary: shutil.copyfile(options.receipt, temporary))


def _project(options: Namespace) -> "Project":
    """The project under params.yaml and --set."""
    from fedrepro.config.project import load_project
    from fedrepro.files import read_yaml

    content = json.loads(options.params) if getattr(options, "params", None) else read_yaml(ROOT / "params.yaml")
    asked = dict(map(_setting, options.set))
    if asked:
        content["settings"] = (content.get("settings") or {}) | asked
    with _blaming_the_command_line(options):
        return load_project(ROOT, content)


def _resolve(project: "Project", options: Namespace) -> dict[str, Any]:
    """The plan of paper/table at --scale; draws what a run by hand still lacks."""
    from fedrepro.config.grid import plan as resolve

    paper, _, table = options.target.partition("/")
    with _blaming_the_command_line(options):
        resolved = resolve(project, paper, table, options.scale or project.params.scale)
    if options.command == "run" and not options.dry_run:
        from fedrepro.cli.inputs import draw_missing
        from fedrepro.engine.receipts import beside

        cells = _select(resolved, options)
        needed = [*cells, *selection.as_chosen(cells)]
        for entry, seeds in selection.jobs(resolved, needed, options.seeds or resolved["seeds"]):
            with_others = options.again or options.keep  # a finished seed trains again among those that it trained with
            draw_missing(project, entry, beside(ROOT, entry["run_id"], seeds) if with_others else seeds)
    return resolved


@contextlib.contextmanager
def _blaming_the_command_line(options: Namespace) -> Iterator[None]:
    """What --set, --scale or the target ask for stands in no file: a mistake in it names the option."""
    try:
        yield
    except UserError as error:
        text = str(error)
        for key in (item.partition("=")[0] for item in options.set):
            text = text.replace(f"params.yaml: settings.{key}", f"--set {key}")
        if options.scale:
            text = text.replace("params.yaml: scale: ", f"--scale {options.scale}: ")
        raise UserError(text.replace("params.yaml or the command: ", "")) from error


def _setting(item: str) -> tuple[str, Any]:
    """Key and value of `--set key=value`. UserError for a key that is no setting, or a value of another type."""
    import yaml

    from fedrepro.config.layers import SETTINGS
    from fedrepro.registry import coerce, unknown

    key, equals, text = item.partition("=")
    if not equals:
        raise UserError(f"--set {item}: write key=value")
    if key not in SETTINGS:
        raise UserError(f"--set {item}: {unknown('setting', key, sorted(SETTINGS))}")
    try:
        return key, coerce(f"--set {key}", yaml.safe_load(text), SETTINGS[key])
    except yaml.YAMLError as error:
        raise UserError(f"--set {item}: {text!r} is not a value; quote it") from error


def _select(plan: dict[str, Any], options: Namespace) -> list[dict[str, Any]]:
    """The cells with runs that --rows, --columns and --run-id leave. UserError when a name is unknown or nothing is left."""
    cells = selection.cells(plan, options)
    found = [cell for cell in cells if cell["run_id"]]
    if not found:
        reasons = sorted({str(cell["reason"]) for cell in cells if cell["reason"]})
        raise UserError(f"{options.target}: nothing to run: {'; '.join(reasons) or 'no cell is left'}")
    return found
