"""Removes what no plan asks for any more: result folders, kept models and what was measured on them, MLflow runs."""

import shutil
from collections.abc import Collection
from pathlib import Path

from fedrepro.config.plan import PLANS
from fedrepro.engine.diagnosed import DIAGNOSTICS, KEPT
from fedrepro.engine.live import FOLDER as CHECKPOINTS
from fedrepro.engine.receipts import RUNS
from fedrepro.errors import UserError
from fedrepro.files import lock, writing
from fedrepro.tracking import store
from fedrepro.tracking.address import Address, find
from fedrepro.tracking.shown import KEY, ORIGIN
from fedrepro.tracking.wanted import collect, places, plan_files


class _InUseError(Exception):
    """A training holds the run's lock."""


def prune(root: Path = Path(), *, asked_runs: Collection[str] = (), dry_run: bool = False) -> list[str]:
    """Removes every result and every MLflow run that no table asks for; returns one line for each.

    Asked for is what a plan below `results/plans` names, and every run_id in `asked_runs` with all its seeds. Evidence kept
    with the reports stays. A run that is training now is kept. With `dry_run` nothing is removed. UserError when there is no
    plan at all, since everything would go. Of a shared store only what this folder wrote is removed.
    """
    root = Path(root).resolve()
    plans = plan_files(root)
    if not plans:
        raise UserError(f"{root / PLANS}: no plans, so everything would go; make a report first, it makes its plan")
    asked = places(collect(plans))
    return [
        *_prune_results(root, {key for _, key in asked}, set(asked_runs), dry_run),
        *_prune_mlflow(root, asked, dry_run, find(root)),
    ]


def _prune_results(root: Path, keys: set[str], kept: set[str], dry_run: bool) -> list[str]:
    said = []
    wanted_ids = {key.partition("/")[0] for key in keys}
    for folder in (path for base in (RUNS, KEPT, DIAGNOSTICS) for path in sorted((root / base).glob("*/"))):
        run_id = folder.name
        doomed = [folder] if run_id not in wanted_ids else _unasked_seeds(folder, keys)
        if run_id.startswith(".") or run_id in kept or not doomed:
            continue
        try:
            if not dry_run:
                with lock(root / CHECKPOINTS / f"{run_id}.lock", busy=_refuse), writing(folder):
                    for path in doomed:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
            said += [str(path.relative_to(root)) for path in doomed]
        except _InUseError:
            said.append(f"{folder.relative_to(root)}: kept, a training is using it")
    return said


def _unasked_seeds(folder: Path, keys: set[str]) -> list[Path]:
    """Receipts and folders of seeds that no plan asks for, a receipt before its folder: none outlives its files."""
    found = [path for path in folder.glob("seed*") if f"{folder.name}/{path.stem}" not in keys]
    return sorted(found, key=lambda path: (path.stem, path.is_dir()))


def _refuse(holder: str) -> None:
    raise _InUseError(holder)


def _prune_mlflow(root: Path, asked: set[tuple[str, str]], dry_run: bool, address: Address) -> list[str]:
    if address.database and not address.database.exists():
        return []
    said = []
    with store.writer(root), store.connected(address, root) as backend:
        for name, identity in sorted(store.our_experiments(backend.client).items()):
            mine = [run for run in backend.runs(identity) if run.tags.get(ORIGIN) == backend.more.get(ORIGIN)]
            doomed = [run for run in mine if (name, run.tags[KEY]) not in asked]
            if not dry_run:
                backend.remove(doomed)
            said += [f"MLflow {name}: {run.tags[KEY]}" for run in doomed]
    return said
