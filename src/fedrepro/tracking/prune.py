"""Removes what no plan asks for any more: result folders, kept models and what was measured on them, checkpoints, MLflow
runs."""

import contextlib
import shutil
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from fedrepro import console
from fedrepro.config.plan import PLANS
from fedrepro.engine.live import FOLDER as CHECKPOINTS
from fedrepro.engine.measurements import DIAGNOSTICS, KEPT
from fedrepro.engine.receipts import RUNS
from fedrepro.errors import UserError
from fedrepro.exhibits.names import volume
from fedrepro.files import lock, writing
from fedrepro.tracking import store
from fedrepro.tracking.address import find
from fedrepro.tracking.backend import Backend, KnownRun
from fedrepro.tracking.content import KEY, ORIGIN
from fedrepro.tracking.planned_runs import collect, places, plan_files

ABANDONED_S = 24 * 3600  # a file that a process began to write so long ago is left of one that was killed


Removed = tuple[str, int]  # the line on a file or a folder, its bytes


def prune(root: Path = Path(), *, asked_runs: Collection[str] = (), dry_run: bool = False) -> Iterator[str]:
    """Removes every result, checkpoint and MLflow run that no table asks for; yields a line for each as soon as it is gone,
    then one with the sum. Checkpoints that several runs share stay, but not what a killed process left half written of them.

    A table asks for the runs of its plan below `results/plans`; every run_id in `asked_runs` stays with all its seeds. Evidence
    kept with the reports stays. A run that is training now is kept. With `dry_run` nothing is removed. UserError when there is
    no plan at all, since everything would go, and when MLflow does not answer: then nothing is removed. In a shared store only
    runs that this folder wrote are removed.
    """
    root = Path(root).resolve()
    plans = plan_files(root)
    if not plans:
        raise UserError(f"{root / PLANS}: no plans, so everything would go; make a report first, it makes its plan")
    return _pruned(root, places(collect(plans)), set(asked_runs), dry_run)


def _pruned(root: Path, planned: set[tuple[str, str]], kept_ids: set[str], dry_run: bool) -> Iterator[str]:
    size = runs = 0
    with _mlflow(root) as backend:
        doomed = _doomed_runs(backend, planned, kept_ids) if backend else {}
        for line, bytes_removed in _prune_results(root, {key for _, key in planned}, kept_ids, dry_run):
            size += bytes_removed
            yield line
        for name, its_runs in doomed.items():
            if backend and not dry_run:
                backend.remove(its_runs)
            runs += len(its_runs)
            yield from (f"MLflow {name}: {run.tags[KEY]}" for run in its_runs)
    if size or runs:
        yield f"in all: {volume(size)} of results, {console.some(runs, 'run')} in MLflow"


@contextlib.contextmanager
def _mlflow(root: Path) -> Iterator[Backend | None]:
    """MLflow's store, to write into; None where the project has none yet."""
    address = find(root)
    if address.database and not address.database.exists():
        yield None
        return
    with store.writer(root), store.connected(address, root) as backend:
        yield backend


def _prune_results(root: Path, keys: set[str], kept_ids: set[str], dry_run: bool) -> Iterator[Removed]:
    planned_ids = {key.partition("/")[0] for key in keys}
    for folder in _folders(root):
        run_id = folder.name
        doomed = [folder] if run_id not in planned_ids else _unasked_seeds(folder, keys)
        if run_id.startswith(".") or run_id in kept_ids or not doomed:
            continue
        try:
            with contextlib.nullcontext() if dry_run else _locked(root, run_id), writing(folder):
                for path in doomed:
                    yield _remove(path, root, dry_run)
        except BlockingIOError:
            yield f"{folder.relative_to(root)}: kept, a training is using it", 0
    for path in _half_written(root):
        yield _remove(path, root, dry_run)
        with contextlib.suppress(OSError):  # not empty
            path.parent.rmdir()


def _half_written(root: Path) -> list[Path]:
    """Lists what killed processes left of checkpoints that several runs share. No lock tells which of them is being written."""
    abandoned = []
    for path in sorted((root / CHECKPOINTS / "forks").glob("*/.seed*")):
        with contextlib.suppress(FileNotFoundError):  # it has its name by now
            if time.time() - path.lstat().st_mtime > ABANDONED_S:
                abandoned.append(path)
    return abandoned


def _folders(root: Path) -> Iterator[Path]:
    """The folders of runs. A finished run leaves an empty folder of checkpoints, which is not worth a line."""
    for base in (RUNS, KEPT, DIAGNOSTICS):
        yield from sorted((root / base).glob("*/"))
    for folder in sorted((root / CHECKPOINTS).glob("*/")):
        if folder.name != "forks" and any(folder.iterdir()):  # states in `forks` belong to several runs
            yield folder


@contextlib.contextmanager
def _locked(root: Path, run_id: str) -> Iterator[None]:
    """Holds all locks of a run: its own, and those of its seeds that train again for their models. BlockingIOError if a
    training has one of them."""
    with contextlib.ExitStack() as locks:
        for path in (root / CHECKPOINTS / f"{run_id}.lock", *(root / CHECKPOINTS).glob(f"{run_id}-seed*-kept.lock")):
            locks.enter_context(lock(path, busy=_refuse))
        yield


def _remove(path: Path, root: Path, dry_run: bool) -> Removed:
    """Removes a file, a folder, or a link, whose target stays."""
    name = path.relative_to(root)
    if path.is_symlink():
        removed = f"{name}: a link; {path.readlink()} stays", 0
    else:
        size = sum(inner_path.lstat().st_size for inner_path in (path, *path.rglob("*")) if not inner_path.is_dir())
        removed = f"{name}: {volume(size)}", size
    if dry_run:
        return removed
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    return removed


def _unasked_seeds(folder: Path, keys: set[str]) -> list[Path]:
    """Receipts, folders and checkpoints (`seed8.pt`, `seed8-kept.pt`) of seeds that no plan asks for, a receipt before its
    folder: none outlives its files."""
    paths = [path for path in folder.glob("seed*") if f"{folder.name}/{path.stem.removesuffix('-kept')}" not in keys]
    return sorted(paths, key=lambda path: (path.stem, path.is_dir()))


def _refuse(holder: str) -> None:
    raise BlockingIOError(holder)


def _doomed_runs(backend: Backend, planned: set[tuple[str, str]], kept_ids: set[str]) -> dict[str, list[KnownRun]]:
    """Experiment -> the runs that this folder wrote and that are in no plan and not among `kept_ids` (run_ids)."""
    doomed = {}
    for name, identity in sorted(store.our_experiments(backend.client).items()):
        folder_runs = [run for run in backend.runs(identity) if run.tags.get(ORIGIN) == backend.more.get(ORIGIN)]
        unplanned = [run for run in folder_runs if (name, run.tags[KEY]) not in planned]
        doomed[name] = [run for run in unplanned if run.tags[KEY].partition("/")[0] not in kept_ids]
    return doomed
