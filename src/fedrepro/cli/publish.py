"""fedrepro publish: copies finished seeds of a table to the folder of committed evidence. No rule of the workflow does this."""

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


def publish(options: Namespace) -> None:
    """Checks every file before it copies the first one. UserError if a seed is missing or not fit for publication.

    If another paper has published the run, that evidence is copied without a second check, since pages already show it. It is
    not copied if a result of this folder differs: that result may be meant to replace it.
    """
    paper, _, table = options.target.partition("/")
    project = load_project(params={"scale": options.scale})
    if project.scale(options.scale).published_seeds is None:
        raise UserError(f"--scale {options.scale}: nothing of it is published; give --scale short or full")
    table_plan = plan(project.as_published(options.scale), paper, table, options.scale)
    evidence = Path(table_plan.folder, "evidence")
    store, copied, missing, differing = Store.of(), [], [], []
    full_plan = Exhibit.of(table_plan, store).plan if table_plan.candidates else table_plan  # with the runs that trials chose
    for name, path in _report_files(full_plan, Store((evidence, *store.folders))):
        if path is None:
            missing.append(name)
            continue
        target = evidence / _below(path)
        if path.suffix == ".json" and not is_published(path):
            _require_fit(path, native=options.native)
        if is_published(path) and _differs(path):
            differing.append(path.as_posix())
        elif path != target:
            _require_addition(target, path)
            copied.append(path)
    if missing and not options.partial:
        missing_names = f"{missing[0]} and {len(missing) - 1} more" if len(missing) > 1 else missing[0]
        raise UserError(
            f"{options.target}: {missing_names} have not run at scale {options.scale}; "
            f"run `{table_plan.command}` first, or give --partial"
        )
    for path in copied:
        target = evidence / _below(path)
        write_atomic(target, lambda temporary, path=path: shutil.copyfile(path, temporary))
    pictures = _copy_pictures(full_plan, store, evidence.parent)
    lacking = f", {len(missing)} are missing" if missing else ""
    console.say(f"{evidence}: {len(copied)} files published{lacking}{_difference_note(differing)}")
    if copied or pictures:
        spread = f"fedrepro spread {table_plan.paper}, " if table_plan.comparable and table_plan.prints else ""
        console.say(f"next: {spread}{table_plan.command}, then commit {table_plan.folder}")


def _difference_note(paths: list[str]) -> str:
    """Returns a note that names the published files from which results of this folder differ."""
    if not paths:
        return ""
    listed = ", ".join([*paths[:3], *(["..."] if len(paths) > 3 else [])])
    if len(paths) == 1:
        return f"; 1 result here differs from what is published ({listed}): delete that file to replace it"
    return f"; {len(paths)} results here differ from what is published ({listed}): delete those files to replace them"


def _differs(path: Path) -> bool:
    """Tells whether this folder's result differs from the published one at `path`. A result confirmed from the published one
    does not differ, nor does a training with identical bits."""
    below = _below(path)
    if path.suffix == ".json":
        local = RUNS / below
        return local.exists() and not compare(read_json(path), read_json(local), strict=False).identical
    local = measurements.DIAGNOSTICS / below
    if not local.exists():
        return False
    first, second = ({*measurements.read(file).values} for file in (path, local))
    return not (first <= second or second <= first)  # one may have more rounds


def _copy_pictures(table_plan: Plan, store: Store, folder: Path) -> int:
    """Copies the pictures of partitions that are drawn here and that the page in `folder` lacks. Returns how many."""
    copied = 0
    for run_id, seeds in table_plan.seeds_by_run.items():
        finished = [seed for seed in seeds if store.find(run_id, seed)]
        drawn, copy = picture(table_plan.runs[run_id].inputs["partition"], min(finished, default=0))
        if finished and drawn.exists() and not (folder / copy).exists():
            write_atomic(folder / copy, lambda temporary, drawn=drawn: shutil.copyfile(drawn, temporary))
            copied += 1
    return copied


def _require_fit(path: Path, *, native: bool) -> None:
    """Raises UserError unless the receipt is complete, from a clean tree, and in arithmetic that other machines repeat to the
    bit."""
    record = read_receipt(path)
    environment, changed_parts = record["environment"], fingerprints.changed(record.get("code"), record["config"]).retrain
    if changed_parts:
        raise UserError(f"{path}: was made with other code of {fingerprints.listed(changed_parts)}; train it again first")
    if environment.get("commit") is None or environment.get("dirty"):
        why = "sources that were not committed" if environment.get("dirty") else "no git checkout"
        raise UserError(f"{path}: was trained from {why}; commit them, delete {path.parent}, and train it again")
    if environment.get("arithmetic") != "portable" and not native:
        what = f"{environment.get('device')}, {environment.get('arithmetic')} arithmetic"
        raise UserError(f"{path}: was trained on {what}, which other machines repeat in part only; give --native to publish it")


def _report_files(table_plan: Plan, store: Store) -> Iterator[tuple[str, Path | None]]:
    """Yields the name and the path of each receipt and each measurement that the report shows; None where it is missing."""
    diagnostics = dict.fromkeys((cell.run_id, cell.diagnostic) for cell in table_plan.planned if cell.diagnostic)
    for run_id, seeds in table_plan.seeds_by_run.items():
        calls = [call for cell_run, call in diagnostics if cell_run == run_id and call]
        for seed in seeds:
            yield f"{run_id}/seed{seed}", store.find(run_id, seed)
            for call in calls if seed in table_plan.seeds else ():
                path = store.measured(run_id, call, seed, table_plan.runs[run_id].measures[call])
                yield f"{call} of {run_id}/seed{seed}", path


def _require_addition(target: Path, path: Path) -> None:
    """Raises UserError if the published measurement at `target` has a value that the one at `path` lacks."""
    if target.exists() and not {*measurements.read(target).values} <= {*measurements.read(path).values}:
        raise UserError(f"{path}: has other values than {target}, which is published; delete that one first to replace it")


def _below(path: Path) -> Path:
    """`<run_id>/seed8.json` of a receipt, `<run_id>/<call>/seed8.parquet` of a measurement."""
    return Path(*path.parts[-2 if path.suffix == ".json" else -3 :])
