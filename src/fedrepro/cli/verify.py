"""fedrepro verify: trains published cells again and says whether they come out the same to the bit, and whether the table's
page says what its evidence gives."""

import glob
import hashlib
import json
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
from fedrepro.console import duration
from fedrepro.engine import fingerprints, renewal
from fedrepro.engine.differences import compare, reasons
from fedrepro.engine.records import fault
from fedrepro.engine.run import Options, train_again
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.render import texts
from fedrepro.files import read_json
from fedrepro.store import Store, published_folders, seeds_in
from fedrepro.typed import text, typed

ROOT = Path()


def verify(options: Namespace) -> int:
    """A sentence on the page, and one on each cell; exit code 1 when one differs. What a GPU has trained is left out."""
    arithmetic.widen()
    fingerprints.load()
    verified = renewal.stamp() if options.renew else None
    project = load_project(ROOT)
    found = _of_processors(_published(project, options), options.target)
    chosen = sample(found, None if options.all else options.minutes)
    seconds = sum(_seconds(path) for _, path in chosen)
    console.say(
        f"training {len(chosen)} of {len(found)} published trainings again; they took {duration(seconds)} when published"
    )
    faithful = "/" not in options.target or page_is_faithful(project, options.target, found[0][1].relative_to(ROOT).parts[1])
    how, different = Options(root=ROOT, device="cpu", workers=options.workers), 0
    names = method_names([run.method for run, _ in chosen])
    for (run, path), method in zip(chosen, names, strict=True):
        published, seed = read_json(path), int(path.stem[4:])
        name = f"{method}, {run.run_id}, seed {seed}"
        wrong = fault(published)
        if wrong:  # said before the training, which tells what was changed
            print(f"{name}: {path}: {wrong}", flush=True)
        changed = fingerprints.changed(published.get("code"), run.config)
        if changed:
            print(f"{name}: made with other code of {fingerprints.listed(changed.names)}", flush=True)
        try:
            draw_missing(project, run, [seed])
            again = train_again(run.identity, seed, how)
        except UserError as error:
            different += 1
            print(f"{name}: NOT VERIFIED: {error}", flush=True)
            continue
        result = compare(published, again)
        if result.identical and not wrong:
            rounds, metrics = len(published["curves"]["round"]), len(published["curves"]) - 1
            print(f"{name}: identical to the bit ({metrics} metrics of {rounds} rounds, final model)", flush=True)
            for renewed in renewal.renew(ROOT, published, verified) if verified else ():
                print(f"  {renewed}: has the fingerprints of today's code", flush=True)
            continue
        different += 1
        what = [result.first, *(f"another sha256 of {words}" for words in result.files), *result.facts]
        if result.identical:
            what = ["all that a training gives is identical, but the file was changed"]
        print(f"{name}: DIFFERS: {'; '.join(filter(None, what))}", flush=True)
        for reason in reasons(published, again, result):
            print(f"  perhaps because {reason}", flush=True)
    print(f"{len(chosen) - different} of {len(chosen)} identical to the bit")
    return int(different > 0 or not faithful)


def page_is_faithful(project: Any, target: str, scale: str) -> bool:
    """Whether every file of the table's report, but for its pictures, is what this code makes of the published evidence. Says
    so; of a table without a report nothing."""
    paper, _, table = target.partition("/")
    # As a report reads it from its file, with sorted keys.
    made = typed(Plan, json.loads(text(plan(project.as_published(scale), paper, table, scale))), target)
    stem = ROOT / made.folder / table
    if not stem.with_name(f"{table}.json").exists():  # not rendered
        return True
    report = texts(Exhibit.of(made, Store((*published_folders(ROOT),))), stem)
    there = [path for path in report if path.exists()]
    wrong = [path for path in there if path.read_text(encoding="utf-8") != report[path]]
    for path in wrong:
        why = "it was edited, or other code or evidence made it"
        how = f"`{made.command} --forcerun {'figure' if made.kind else 'table'}` renders it anew"
        print(f"{path}: NOT WHAT THE EVIDENCE GIVES: {why}; {how}", flush=True)
    if not wrong:
        endings = ", ".join(path.suffix for path in there)
        print(f"{stem} ({endings}): what the evidence gives", flush=True)
    return not wrong


def sample(found: list[tuple[Run, Path]], minutes: float | None) -> list[tuple[Run, Path]]:
    """As many trainings as took `minutes` when they were published, at least one; all without a limit.

    A hash of run_id and seed orders them, so every user gets the same sample, and we could not pick a favourable one.
    """
    order = sorted(found, key=lambda one: hashlib.sha256(f"{one[0].run_id} {one[1].name}".encode()).hexdigest())
    if minutes is None:
        return order
    chosen, left = order[:1], minutes * 60 - _seconds(order[0][1])
    for one in order[1:]:
        if _seconds(one[1]) <= left:
            chosen.append(one)
            left -= _seconds(one[1])
    return chosen


def _of_processors(found: list[tuple[Run, Path]], target: str) -> list[tuple[Run, Path]]:
    """Those that a CPU has trained. UserError where there are none."""
    left = [one for one in found if read_json(one[1]).get("environment", {}).get("device") != "cuda"]
    others = f"{len(found) - len(left)} of {len(found)} published trainings are from a GPU, whose bits no other machine repeats"
    if not left:
        raise UserError(f"{target}: {others}; there is nothing to compare to the bit")
    if len(left) < len(found):
        console.say(f"{others}: they are left out")
    return left


def _seconds(path: Path) -> float:
    return float(read_json(path)["cost"]["wall_s"])


def _published(project: Any, options: Namespace) -> list[tuple[Run, Path]]:
    """(run, evidence file) of every training that `options` mean. UserError when nothing has been published of them. For a
    run_id, a table that cannot be planned matters only where no other has the run."""
    scales = [options.scale] if options.scale else list(PUBLISHED)
    by_table = "/" in options.target
    tables = [options.target] if by_table else project.table_names()
    found: dict[Path, Run] = {}
    refused: list[UserError] = []
    there: set[int] = set()
    for scale in scales:
        for paper, _, table in (name.partition("/") for name in tables):
            evidence = ROOT / "reports" / scale / paper / "evidence"
            if not any(evidence.glob("*" if by_table else f"*{glob.escape(options.target)}")):
                continue
            try:
                made = plan(project.as_published(scale), paper, table, scale)
            except UserError as error:
                if by_table:
                    raise
                refused.append(error)
                continue
            for run in table_selection.runs(made, table_selection.cells(made, options)):
                if by_table or run.run_id.endswith(options.target):
                    seeds = seeds_in(evidence / run.run_id)
                    there |= seeds.keys()
                    found |= {path: run for seed, path in seeds.items() if not options.seeds or seed in options.seeds}
        if found:
            break
    ids = sorted({run.run_id for run in found.values()})
    if not by_table and len(ids) > 1:
        raise UserError(f"{options.target!r} ends {len(ids)} run_ids; the last eight characters tell them apart: {ids[0]}, ...")
    if there and not found:
        asked = " ".join(map(str, options.seeds))
        raise UserError(
            f"--seeds {asked}: {options.target} has evidence of other seeds only, {seed_list(there)}; name some of them"
        )
    if refused and not found:
        raise refused[0]
    if not found:
        where = " or ".join(f"reports/{scale}" for scale in scales)
        raise UserError(
            f"{options.target}: no evidence of it below {where}; name a table as paper/table, or a run_id that is there; "
            "`fedrepro run <table> --again` trains again what was trained here, and compares"
        )
    return [(run, path) for path, run in found.items()]
