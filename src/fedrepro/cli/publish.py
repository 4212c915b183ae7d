"""fedrepro publish: copies finished seeds of a table to where evidence is committed. An act like a commit: no rule does it."""

import shutil
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from fedrepro import console
from fedrepro.config.grid import plan
from fedrepro.config.plan import Plan
from fedrepro.config.project import load_project
from fedrepro.engine import fingerprints, measurements
from fedrepro.engine.differences import compare
from fedrepro.engine.receipts import RUNS
from fedrepro.engine.records import read_receipt
from fedrepro.errors import UserError
from fedrepro.exhibits.exhibit import Exhibit
from fedrepro.exhibits.sections.partitions import picture
from fedrepro.files import read_json, write_atomic
from fedrepro.store import Store, is_published

ROOT = Path()


def publish(options: Namespace) -> None:
    """Everything is checked before anything is copied. UserError where a seed is missing, or is not fit to be published.

    Of a run that another paper has published, too, its evidence is copied, which was checked then: pages show it already; but
    not where a result of this folder differs, which may be meant to replace it.
    """
    paper, _, table = options.target.partition("/")
    project = load_project(ROOT, {"scale": options.scale})
    if project.scale(options.scale).published_seeds is None:
        raise UserError(f"--scale {options.scale}: nothing of it is published; give --scale short or full")
    made = plan(project.as_published(options.scale), paper, table, options.scale)
    evidence = ROOT / made.folder / "evidence"
    store, copied, missing, others = Store.of(ROOT), [], [], []
    settled = Exhibit.of(made, store).plan if made.candidates else made  # with the runs that trials have chosen
    for name, path in _wanted(settled, Store((evidence, *store.folders))):
        if path is None:
            missing.append(name)
            continue
        target = evidence / _below(path)
        if path.suffix == ".json" and not is_published(path):
            _require_fit(path, native=options.native)
        if is_published(path) and _differs(path):
            others.append(path.as_posix())
        elif path != target:
            _require_addition(target, path)
            copied.append(path)
    if missing and not options.partial:
        told = f"{missing[0]} and {len(missing) - 1} more" if len(missing) > 1 else missing[0]
        raise UserError(
            f"{options.target}: {told} have not run at scale {options.scale}; run `{made.command}` first, or give --partial"
        )
    for path in copied:
        target = evidence / _below(path)
        write_atomic(target, lambda temporary, path=path: shutil.copyfile(path, temporary))
    pictures = _copy_pictures(settled, store, evidence.parent)
    lacking = f", {len(missing)} are missing" if missing else ""
    console.say(f"{evidence}: {len(copied)} files published{lacking}{_told(others)}")
    if copied or pictures:
        spread = f"fedrepro spread {made.paper}, " if made.comparable and made.prints else ""
        console.say(f"next: {spread}{made.command}, then commit {made.folder}")


def _told(others: list[str]) -> str:
    """Names the published files from which results that were trained here differ."""
    if not others:
        return ""
    named = ", ".join([*others[:3], *(["..."] if len(others) > 3 else [])])
    if len(others) == 1:
        return f"; 1 result here differs from what is published ({named}): delete that file to replace it"
    return f"; {len(others)} results here differ from what is published ({named}): delete those files to replace them"


def _differs(path: Path) -> bool:
    """Tells whether the file of this folder says something else than the published one at `path`. What was confirmed from that
    is the same, and so is a training that came out identical to the bit."""
    below = _below(path)
    if path.suffix == ".json":
        local = ROOT / RUNS / below
        return local.exists() and not compare(read_json(path), read_json(local), strict=False).identical
    local = ROOT / measurements.DIAGNOSTICS / below
    return local.exists() and not _alike({*measurements.read(path).values}, {*measurements.read(local).values})


def _alike(one: set[measurements.Value], other: set[measurements.Value]) -> bool:
    """Tells whether one measurement has all values of the other: more rounds are no difference."""
    return one <= other or other <= one


def _copy_pictures(made: Plan, store: Store, folder: Path) -> int:
    """Copies those of partitions, as they are drawn here, where the page in `folder` has none yet. Returns how many."""
    copied = 0
    for run_id, seeds in made.seeds_by_run.items():
        there = [seed for seed in seeds if store.find(run_id, seed)]
        drawn, copy = picture(made.runs[run_id].inputs["partition"], min(there, default=0))
        if there and drawn.exists() and not (folder / copy).exists():
            write_atomic(folder / copy, lambda temporary, drawn=drawn: shutil.copyfile(drawn, temporary))
            copied += 1
    return copied


def _require_fit(path: Path, *, native: bool) -> None:
    """UserError unless the receipt is whole, of a clean tree, and of arithmetic that others can repeat to the bit."""
    record = read_receipt(path)
    environment, other = record["environment"], fingerprints.changed(record.get("code"), record["config"]).retrain
    if other:
        raise UserError(f"{path}: was made with other code of {fingerprints.listed(other)}; train it again first")
    if environment.get("commit") is None or environment.get("dirty"):
        why = "sources that were not committed" if environment.get("dirty") else "no git checkout"
        raise UserError(f"{path}: was trained from {why}; commit them, delete {path.parent}, and train it again")
    if environment.get("arithmetic") != "portable" and not native:
        what = f"{environment.get('device')}, {environment.get('arithmetic')} arithmetic"
        raise UserError(f"{path}: was trained on {what}, which other machines repeat in part only; give --native to publish it")


def _wanted(made: Plan, store: Store) -> Iterator[tuple[str, Path | None]]:
    """By name what the report shows, and where it lies: receipts, and what diagnostics measured on the models."""
    called = dict.fromkeys((cell.run_id, cell.diagnostic) for cell in made.planned if cell.diagnostic)
    for run_id, seeds in made.seeds_by_run.items():
        calls = [call for one, call in called if one == run_id and call]
        for seed in seeds:
            yield f"{run_id}/seed{seed}", store.find(run_id, seed)
            for call in calls if seed in made.seeds else ():
                yield f"{call} of {run_id}/seed{seed}", store.measured(run_id, call, seed, made.runs[run_id].measures[call])


def _require_addition(target: Path, path: Path) -> None:
    """UserError where a published measurement, of fewer rounds, says something else than the one at `path`."""
    if target.exists() and not {*measurements.read(target).values} <= {*measurements.read(path).values}:
        raise UserError(f"{path}: has other values than {target}, which is published; delete that one first to replace it")


def _below(path: Path) -> Path:
    """`<run_id>/seed8.json` of a receipt, `<run_id>/<call>/seed8.parquet` of a measurement."""
    return Path(*path.parts[-2 if path.suffix == ".json" else -3 :])
