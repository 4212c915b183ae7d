"""fedrepro verify: trains published cells again and reports whether they are identical to the bit, and whether the table's page
follows from its evidence."""

import glob
import hashlib
import json
import math
from argparse import Namespace
from pathlib import Path
from typing import Any

from fedrepro import arithmetic, console
from fedrepro.choices import PUBLISHED
from fedrepro.cli import table_selection
from fedrepro.cli.drawing import draw_missing
from fedrepro.cli.listing import seed_list
from fedrepro.config.grid import plan
from fedrepro.config.plan import Plan, Run
from fedrepro.config.project import load_project
from fedrepro.config.run_differences import method_names
from fedrepro.console import duration, some
from fedrepro.engine import fingerprints, renewal
from fedrepro.engine.differences import compare, reasons
from fedrepro.engine.records import digest_fault
from fedrepro.engine.run import Options, train_again
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.render import texts
from fedrepro.files import read_json
from fedrepro.store import Store, published_folders, seeds_in
from fedrepro.typed import text, typed


def verify(options: Namespace) -> int:
    """Prints a sentence on the page, and one on each cell; exit code 1 when one differs. What a GPU has trained is left out."""
    arithmetic.widen()
    fingerprints.load()
    verified = renewal.stamp() if options.renew else None
    project = load_project()
    trainings = _cpu_trainings(_published_trainings(project, options), options.target)
    sampled = sample(trainings, math.inf if options.all else options.minutes)
    took = duration(sum(_seconds(path) for _, path in sampled))
    console.say(f"training {len(sampled)} of {len(trainings)} published trainings again; they took {took} when published")
    faithful = "/" not in options.target or page_is_faithful(project, options.target, trainings[0][1].parts[1])
    run_options, different = Options(root=Path(), device="cpu", workers=options.workers), 0
    names = method_names([run.method for run, _ in sampled])
    for (run, path), method in zip(sampled, names, strict=True):
        published, seed = read_json(path), int(path.stem[4:])
        name = f"{method}, {run.run_id}, seed {seed}"
        damage = digest_fault(published)
        if damage:  # printed first; the training then shows which values were changed
            print(f"{name}: {path}: {damage}", flush=True)
        changed = fingerprints.changed(published.get("code"), run.config)
        if changed:
            print(f"{name}: made with other code of {fingerprints.listed(changed.names)}", flush=True)
        try:
            draw_missing(project, run, [seed])
            repeated = train_again(run.identity, seed, run_options)
        except UserError as error:
            different += 1
            print(f"{name}: NOT VERIFIED: {error}", flush=True)
            continue
        result = compare(published, repeated)
        if result.identical and not damage:
            rounds, metrics = some(len(published["curves"]["round"]), "round"), len(published["curves"]) - 1
            print(f"{name}: identical to the bit ({metrics} metrics of {rounds}, final model)", flush=True)
            for renewed in renewal.renew(Path(), published, verified) if verified else ():
                print(f"  {renewed}: has the fingerprints of today's code", flush=True)
            continue
        different += 1
        differences = [result.first, *(f"another sha256 of {words}" for words in result.files), *result.facts]
        if result.identical:
            differences = ["all that a training gives is identical, but the file was changed"]
        print(f"{name}: DIFFERS: {'; '.join(filter(None, differences))}", flush=True)
        for reason in reasons(published, repeated, result):
            print(f"  perhaps because {reason}", flush=True)
    print(f"{len(sampled) - different} of {len(sampled)} identical to the bit")
    return int(different > 0 or not faithful)


def page_is_faithful(project: Any, target: str, scale: str) -> bool:
    """Tells whether this code renders every file of the table's report, except pictures, identically from the published
    evidence. Prints a line on it; for a table without a report it prints nothing."""
    paper, _, table = target.partition("/")
    # As a report reads it from its file, with sorted keys.
    published_plan = typed(Plan, json.loads(text(plan(project.as_published(scale), paper, table, scale))), target)
    stem = Path(published_plan.folder, table)
    if not stem.with_name(f"{table}.json").exists():  # not rendered
        return True
    report = texts(Exhibit.of(published_plan, Store((*published_folders(),))), stem)
    existing = [path for path in report if path.exists()]
    different = [path for path in existing if path.read_text(encoding="utf-8") != report[path]]
    for path in different:
        why = "it was edited, or other code or evidence made it"
        how = f"`{published_plan.command} --forcerun {'figure' if published_plan.kind else 'table'}` renders it anew"
        print(f"{path}: NOT WHAT THE EVIDENCE GIVES: {why}; {how}", flush=True)
    if not different:
        endings = ", ".join(path.suffix for path in existing)
        print(f"{stem} ({endings}): what the evidence gives", flush=True)
    return not different


def sample(trainings: list[tuple[Run, Path]], minutes: float) -> list[tuple[Run, Path]]:
    """Returns as many trainings as took `minutes` when they were published, at least one; all for `inf`.

    A hash of run_id and seed orders them, so every user gets the same sample, and we could not pick a favourable one.
    """
    order = sorted(
        trainings, key=lambda training: hashlib.sha256(f"{training[0].run_id} {training[1].name}".encode()).hexdigest()
    )
    sampled, remaining_s = [], minutes * 60
    for training in order:
        seconds = _seconds(training[1])
        if not sampled or seconds <= remaining_s:
            sampled.append(training)
            remaining_s -= seconds
    return sampled


def _cpu_trainings(trainings: list[tuple[Run, Path]], target: str) -> list[tuple[Run, Path]]:
    """Returns the trainings that a CPU has done. UserError where there are none."""
    cpu_trainings = [(run, path) for run, path in trainings if read_json(path).get("environment", {}).get("device") != "cuda"]
    share = f"{len(trainings) - len(cpu_trainings)} of {len(trainings)}"
    gpu_note = f"{share} published trainings are from a GPU, whose bits no other machine repeats"
    if not cpu_trainings:
        raise UserError(f"{target}: {gpu_note}; there is nothing to compare to the bit")
    if len(cpu_trainings) < len(trainings):
        console.say(f"{gpu_note}: they are left out")
    return cpu_trainings


def _seconds(path: Path) -> float:
    return float(read_json(path)["cost"]["wall_s"])


def _published_trainings(project: Any, options: Namespace) -> list[tuple[Run, Path]]:
    """Returns (run, evidence file) of every training that `options` mean. UserError when none of them is published. For a
    run_id, a table that cannot be planned matters only where no other has the run."""
    scales = [options.scale] if options.scale else list(PUBLISHED)
    by_table = "/" in options.target
    tables = [options.target] if by_table else project.table_names()
    runs_by_path: dict[Path, Run] = {}
    refusals: list[UserError] = []
    published_seeds: set[int] = set()
    for scale in scales:
        for paper, _, table in (name.partition("/") for name in tables):
            evidence = Path("reports", scale, paper, "evidence")
            if not any(evidence.glob("*" if by_table else f"*{glob.escape(options.target)}")):
                continue
            try:
                table_plan = plan(project.as_published(scale), paper, table, scale)
            except UserError as error:
                if by_table:
                    raise
                refusals.append(error)
                continue
            for run, _ in table_selection.jobs(table_plan, table_selection.cells(table_plan, options), [], chosen=True):
                if by_table or run.run_id.endswith(options.target):
                    seeds = seeds_in(evidence / run.run_id)
                    published_seeds |= seeds.keys()
                    runs_by_path |= {path: run for seed, path in seeds.items() if not options.seeds or seed in options.seeds}
        if runs_by_path:
            break
    ids = sorted({run.run_id for run in runs_by_path.values()})
    if not by_table and len(ids) > 1:
        raise UserError(f"{options.target!r} ends {len(ids)} run_ids; the last eight characters tell them apart: {ids[0]}, ...")
    if published_seeds and not runs_by_path:
        seed_words = " ".join(map(str, options.seeds))
        raise UserError(
            f"--seeds {seed_words}: {options.target} has evidence of other seeds only, "
            f"{seed_list(published_seeds)}; name some of them"
        )
    if refusals and not runs_by_path:
        raise refusals[0]
    if not runs_by_path:
        where = " or ".join(f"reports/{scale}" for scale in scales)
        raise UserError(
            f"{options.target}: no evidence of it below {where}; name a table as paper/table, or a run_id that is there; "
            "`fedrepro run <table> --again` trains again what was trained here, and compares"
        )
    return [(run, path) for path, run in runs_by_path.items()]
