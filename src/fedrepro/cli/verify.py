"""fedrepro verify: trains published cells again and says whether they come out the same to the bit."""

import hashlib
from argparse import Namespace
from pathlib import Path
from typing import Any

from fedrepro import arithmetic, console
from fedrepro.errors import UserError
from fedrepro.files import read_json

ROOT = Path()
SCALES = ("full", "short")


def verify(options: Namespace) -> int:
    """A sentence a cell; exit code 1 when one of them differs."""
    from fedrepro.cli.inputs import draw_missing
    from fedrepro.config.project import load_project
    from fedrepro.engine.differences import compare, reasons
    from fedrepro.engine.run import Options, train_again
    from fedrepro.reports.words import duration

    arithmetic.widen()
    project = load_project(ROOT)
    found = _published(project, options)
    chosen = sample(found, None if options.all else options.minutes)
    seconds = sum(_seconds(path) for _, path in chosen)
    console.say(
        f"training {len(chosen)} of {len(found)} published trainings again; they took {duration(seconds)} when published"
    )
    how, different = Options(root=ROOT, device="cpu", workers=options.workers), 0
    for run, path in chosen:
        published, seed = read_json(path), int(path.stem[4:])
        name = f"{run['method_label']}, {run['run_id']}, seed {seed}"
        try:
            draw_missing(project, run, [seed])
            again = train_again(run, seed, how)
        except UserError as error:
            different += 1
            print(f"{name}: NOT VERIFIED: {error}", flush=True)
            continue
        result = compare(published, again)
        if result.identical:
            rounds, metrics = len(published["curves"]["round"]), len(published["curves"]) - 1
            print(f"{name}: identical to the bit ({metrics} metrics of {rounds} rounds, final model)", flush=True)
            continue
        different += 1
        what = [result.first, *(f"another sha256 of {words}" for words in result.files), *result.facts]
        print(f"{name}: DIFFERS: {'; '.join(filter(None, what))}", flush=True)
        print(*(f"  perhaps because {reason}" for reason in reasons(published, again, result)), sep="\n", flush=True)
    print(f"{len(chosen) - different} of {len(chosen)} identical to the bit")
    return int(different > 0)


def sample(found: list[tuple[dict[str, Any], Path]], minutes: float | None) -> list[tuple[dict[str, Any], Path]]:
    """As many trainings as took `minutes` when they were published, at least one; all without a limit.

    A hash of run_id and seed orders them, so every user gets the same sample, and we could not choose a flattering one.
    """
    order = sorted(found, key=lambda one: hashlib.sha256(f"{one[0]['run_id']} {one[1].name}".encode()).hexdigest())
    if minutes is None:
        return order
    chosen, left = order[:1], minutes * 60 - _seconds(order[0][1])
    for one in order[1:]:
        if _seconds(one[1]) <= left:
            chosen.append(one)
            left -= _seconds(one[1])
    return chosen


def _seconds(path: Path) -> float:
    return float(read_json(path)["cost"]["wall_s"])


def _published(project: Any, options: Namespace) -> list[tuple[dict[str, Any], Path]]:
    """(run, evidence file) of every training that `options` mean. UserError when nothing has been published of them."""
    from fedrepro.config.grid import plan

    scales = [options.scale] if options.scale else list(SCALES)
    by_table = "/" in options.target
    tables = [options.target] if by_table else project.table_names()
    found: dict[Path, dict[str, Any]] = {}
    for scale in scales:
        for paper, _, table in (name.partition("/") for name in tables):
            evidence = ROOT / "reports" / scale / paper / "evidence"
            if not evidence.is_dir():
                continue
            for run in _runs(plan(project.as_published(scale), paper, table, scale), options):
                if by_table or run["run_id"] == options.target:
                    found |= dict.fromkeys(sorted((evidence / run["run_id"]).glob("seed*.json")), run)
        if found:
            break
    if options.seeds:
        found = {path: run for path, run in found.items() if int(path.stem[4:]) in options.seeds}
    if not found:
        where = " or ".join(f"reports/{scale}" for scale in scales)
        raise UserError(
            f"{options.target}: no evidence of it below {where}; name a table as paper/table, or a run_id that is there"
        )
    return [(run, path) for path, run in found.items()]


def _runs(made: dict[str, Any], options: Namespace) -> list[dict[str, Any]]:
    """The runs of a plan in the rows and columns asked for."""
    from fedrepro.registry import unknown

    for kind in ("rows", "columns"):
        known = [entry["key"] for entry in made[kind]]
        for name in getattr(options, kind) or []:
            if name not in known:
                raise UserError(f"{options.target}: {unknown(kind.rstrip('s'), name, known)}")
    cells = made["cells"]
    for kind, key in (("rows", "row"), ("columns", "column")):
        wanted = getattr(options, kind)
        cells = [cell for cell in cells if not wanted or cell[key] in wanted]
    return [made["runs"][run_id] for run_id in dict.fromkeys(cell["run_id"] for cell in cells if cell["run_id"])]
