"""fedrepro run | config | plan | evidence | runs."""

import json
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

from fedrepro import arithmetic, console
from fedrepro.errors import UserError
from fedrepro.files import read_json, write_atomic, write_json, write_text

ROOT = Path()


def run(options: Namespace) -> None:
    console.log_to(options.log)
    by_file = options.target.endswith(".json")
    plan = _read(Path(options.target), options.seeds) if by_file else _resolve(options)
    wanted, seeds, device = _select(plan, options), options.seeds or plan["seeds"], options.device or "auto"
    if options.engine != "vectorised":
        arithmetic.widen()
    if options.dry_run:
        _forecast(wanted, seeds, device, options.cores)
        return
    if not by_file:  # a file is a job of the workflow, which has said it for all of them
        _announce(wanted, seeds, device)
    from fedrepro.engine.run import Options, run_seeds

    how = Options(
        root=ROOT,
        device=device,
        engine=options.engine,
        workers=options.workers,
        checkpoint_s=options.checkpoint_seconds,
        again=options.again,
    )
    for entry in wanted:
        done = run_seeds(entry, seeds, how)
        console.say(f"{entry['run_id']}: " + ", ".join(f"seed {seed} {what}" for seed, what in done.items()))


def _forecast(wanted: list[dict[str, Any]], seeds: list[int], device: str, cores: int | None) -> None:
    from fedrepro.cli.forecast import Forecast, Job
    from fedrepro.data.registry import REGISTRY, load_registry

    jobs = [Job.of(ROOT, entry, seeds) for entry in wanted]
    print(*Forecast(ROOT, load_registry(ROOT / REGISTRY), jobs, device, limit_s=30).lines(cores), sep="\n")


def _announce(wanted: list[dict[str, Any]], seeds: list[int], device: str) -> None:
    from fedrepro.cli.forecast import Job, one_line
    from fedrepro.data.registry import REGISTRY, load_registry

    line = one_line(ROOT, load_registry(ROOT / REGISTRY), [Job.of(ROOT, entry, seeds) for entry in wanted], device, cores=1)
    if line:
        console.say(line)


def _read(path: Path, seeds: list[int] | None) -> dict[str, Any]:
    """A plan file, or the configuration of one run as a plan of nothing else."""
    content = read_json(path)
    if "runs" in content:
        return content
    if not {"run_id", "method", "config", "inputs"} <= content.keys():
        raise UserError(f"{path}: neither a plan nor the configuration of a run; `fedrepro plan` writes one")
    if not seeds:
        raise UserError(f"{path}: the configuration of one run names no seeds; add --seeds 8 9 10")
    cell = {"row": "", "column": "", "run_id": content["run_id"], "reason": None}
    return {"rows": [{"key": ""}], "columns": [{"key": ""}], "cells": [cell], "runs": {content["run_id"]: content}}


def config(options: Namespace) -> None:
    write_json(options.out, json.loads(options.content))


def plan(options: Namespace) -> None:
    options.set, options.seeds = [], None
    text = json.dumps(_resolve(options), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if options.out:
        write_text(options.out, text)
    else:
        print(text, end="")


def plans(options: Namespace) -> None:
    """Of every table, for the workflow."""
    from fedrepro.workflow.plans import save

    save(json.loads(options.params), options.out)


def evidence(options: Namespace) -> None:
    if not options.receipt.is_file():
        raise UserError(f"{options.receipt}: no such receipt; `fedrepro run` writes it when the seed is finished")
    write_atomic(options.out, lambda temporary: shutil.copyfile(options.receipt, temporary))


def runs(options: Namespace) -> None:
    """A line a run: what the tables report of it, seed by seed; the last round's accuracy where no table asks for the run."""
    from fedrepro.config.grid import every_run
    from fedrepro.config.project import load_project
    from fedrepro.config.reading import Reading
    from fedrepro.engine.receipts import RUNS
    from fedrepro.models.names import primary_metric

    asked = every_run(load_project(ROOT))
    if options.prune or options.dry_run:
        from fedrepro.tracking import prune

        for line in prune(ROOT, asked_runs=asked, dry_run=options.dry_run):
            print(line)
        return
    for folder in sorted((ROOT / RUNS).glob("*/")):
        receipts = {int(path.stem[4:]): read_json(path) for path in folder.glob("seed*.json")}
        if not receipts:
            continue
        unasked = Reading(primary_metric(next(iter(receipts.values()))["config"]["model"]), 1)
        for reading in asked.get(folder.name, [unasked]):
            values = {seed: reading.of(receipt) for seed, receipt in sorted(receipts.items())}
            shown = (f"{seed}:{'diverged' if value is None else format(value, '.2f')}" for seed, value in values.items())
            rounds = next(iter(receipts.values()))["config"]["rounds"]
            print(folder.name, *shown, f"({reading.metric}, {reading.rounds(rounds)})")


def _resolve(options: Namespace) -> dict[str, Any]:
    """The plan of paper/table under params.yaml, --scale and --set; draws what a run by hand still lacks."""
    import yaml

    from fedrepro.config.grid import plan as resolve
    from fedrepro.config.project import load_project
    from fedrepro.config.schema import read_yaml

    paper, _, table = options.target.partition("/")
    content = json.loads(options.params) if getattr(options, "params", None) else read_yaml(ROOT / "params.yaml")
    for item in options.set:
        key, equals, value = item.partition("=")
        if not equals:
            raise UserError(f"--set {item}: write key=value")
        try:
            content["settings"] = (content.get("settings") or {}) | {key: yaml.safe_load(value)}
        except yaml.YAMLError as error:
            raise UserError(f"--set {item}: {value!r} is not a value; quote it") from error
    project = load_project(ROOT, content)
    options.device = getattr(options, "device", None) or project.params.device
    resolved = resolve(project, paper, table, options.scale or project.params.scale)
    if options.command == "run" and not options.dry_run:
        from fedrepro.cli.inputs import draw_missing

        for entry in _select(resolved, options):
            draw_missing(project, entry, options.seeds or resolved["seeds"])
    return resolved


def _select(plan: dict[str, Any], options: Namespace) -> list[dict[str, Any]]:
    """The runs that --rows, --columns and --run-id leave. UserError when a name is unknown or nothing is left."""
    from fedrepro.registry import unknown

    known = {"rows": [row["key"] for row in plan["rows"]], "columns": [column["key"] for column in plan["columns"]]}
    known["run_id"] = sorted(plan["runs"])
    for kind, names in known.items():
        for name in getattr(options, kind) or []:
            if name not in names:
                raise UserError(f"{options.target}: {unknown(kind.rstrip('s').replace('_', ' '), name, names)}")
    cells = [
        c
        for c in plan["cells"]
        if c["row"] in (options.rows or known["rows"]) and c["column"] in (options.columns or known["columns"])
    ]
    ids = [cell["run_id"] for cell in cells if cell["run_id"] in (options.run_id or known["run_id"])]
    if not ids:
        reasons = sorted({str(cell["reason"]) for cell in cells if cell["reason"]})
        raise UserError(f"{options.target}: nothing to run: {'; '.join(reasons) or 'no cell is left'}")
    return [plan["runs"][run_id] for run_id in dict.fromkeys(ids)]
