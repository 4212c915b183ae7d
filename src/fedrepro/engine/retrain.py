"""Trains finished seeds again, to check that the numbers are the same and to keep models of their rounds.

On the vectorised engine the last bits of a seed depend on which seeds train with it. So the record names these seeds, and they
train together again; a seed whose record names none trains alone. On the sequential engine each seed trains alone and gets the
same bits.
"""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fedrepro import arithmetic, stopping
from fedrepro.engine import environment, fingerprints, kept, live, records, results
from fedrepro.engine.checkpoint import FOLDER as CHECKPOINTS
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.differences import compare
from fedrepro.engine.receipts import changed, confirm, receipt_path, together
from fedrepro.engine.records import Record
from fedrepro.engine.task import Images, Task, load_task
from fedrepro.errors import UserError
from fedrepro.files import lock

if TYPE_CHECKING:
    from fedrepro.engine.run import _Job as Job


def repeat(job: "Job", task: Task, after: int, seeds: list[int], images: Images) -> dict[int, str]:
    """Trains a finished seed from the start, with those that it trained together with, and compares every recorded number with
    the kept one, to the last digit: its own and those of the finished ones of `seeds` among them. With the same torch and NumPy
    it compares the sha256 of the final model too. Returns seed -> a phrase for the output.

    `after`: how many of the run's other seeds follow. UserError if a number or a file differs: the kept result stays.
    """
    root, run_id = job.options.root, job.run["run_id"]
    company = _company(job, records.read(_path(job, task.seed)))
    tasks = [
        task if seed == task.seed else load_task(job.spec, job.inputs, seed, job.device, images=images) for seed in company
    ]
    for other_task in tasks:
        if other_task.seed in seeds and other_task.seed != task.seed:
            confirm(root, run_id, other_task.seed, other_task.inputs)
    receipts, retrained = _receipts(job, company, seeds), evidence(job, tasks, after if len(tasks) == 1 else 0)
    for seed, receipt in receipts.items():
        difference = _difference(receipt, retrained[seed])
        if difference:
            raise UserError(
                f"{_path(job, seed)}: trained again, {difference} ({_causes(job, receipt)}); the kept result stays, and "
                "`fedrepro run --fresh` replaces it"
            )
    return dict.fromkeys(receipts, "trained again, identical")


def _difference(receipt: Record, again: Record) -> str:
    """Names the first number that differs, or else the files, which are compared with the same torch and NumPy only. "" if
    nothing differs."""
    found = compare(receipt, again, strict=False)
    same_libraries = all(receipt["environment"].get(name) == again["environment"].get(name) for name in ("torch", "numpy"))
    if found.first or not (found.files and same_libraries):
        return found.first.replace(", published is", ", kept is")
    return f"every number is the same, but the sha256 of {' and of '.join(found.files)} is another"


def evidence(job: "Job", tasks: list[Task], after: int) -> dict[int, Record]:
    """Trains `tasks` from the start, without checkpoints. Returns the evidence by seed, with the sha256 of its files."""
    by_seed = {}
    for task, outcome in job.outcomes(tasks, [job.reporter(task, after, len(tasks)) for task in tasks]):
        description = environment.describe(job.device, job.engine, job.spec.products)
        content = results.evidence(job.spec, job.run, task.seed, outcome, description, task.inputs, {})
        with tempfile.TemporaryDirectory() as folder:
            results.write_seed(Path(folder), job.run["run_id"], content, outcome)
            written = receipt_path(Path(folder), job.run["run_id"], task.seed).with_suffix("")
            by_seed[task.seed] = records.read_folder(written)
    return by_seed


def keep(job: "Job", seed: int, seeds: list[int], images: Images, busy: Callable[[str], None]) -> dict[int, list[int]]:
    """Makes sure that the models of the requested rounds exist for a finished seed and for those of `seeds` that trained
    together with it. Trains again up to the last missing round, and returns the missing rounds by seed. Receipt and results
    stay.

    `busy`: called with the process that already does this. UserError if a number of that training differs from the receipt.
    """
    root, run_id = job.options.root, job.run["run_id"]
    company = _company(job, records.read(_path(job, seed)))
    with contextlib.ExitStack() as locks:
        for member in sorted(company):  # locked in ascending order, so that two processes never wait for each other
            locks.enter_context(lock(root / CHECKPOINTS / f"{run_id}-seed{member}-kept.lock", busy=busy))
            for leftover in (root / CHECKPOINTS / run_id).glob(f".seed{member}-kept.*"):  # of a process killed while writing
                leftover.unlink()
        receipts = _receipts(job, company, seeds)
        by_seed = {member: kept.missing(root, receipt, job.options.keep) for member, receipt in receipts.items()}
        missing = {member: rounds for member, rounds in by_seed.items() if rounds}
        if missing:
            tasks = [load_task(job.spec, job.inputs, member, job.device, images=images) for member in company]
            _train_for_models(job, tasks, missing, receipts)
        for receipt in receipts.values():
            kept.write_index(root, receipt)
    return missing


def _train_for_models(job: "Job", tasks: list[Task], missing: dict[int, list[int]], receipts: dict[int, Record]) -> None:
    company, until = [task.seed for task in tasks], max(map(max, missing.values()))
    # A checkpoint of a call with other rounds may lie after a round that is missing here, so the key names the rounds.
    wishes = {"keep": list(job.options.keep), "of": list(receipts)}
    saved = [job.checkpoints(task, company, "-kept", wishes) for task in tasks]
    keepers = [job.keeper(task, missing.get(task.seed, []), until) for task in tasks]
    reports = [_comparing_reporter(job, task, receipts.get(task.seed), until) for task in tasks]
    with stopping.deferred():
        for _ in job.outcomes(tasks, reports, saved, keepers):
            pass
        for task, checkpoint in zip(tasks, saved, strict=True):
            live.remove(checkpoint.path)
            job.close_forks(task, checkpoint.forks)


def _comparing_reporter(job: "Job", task: Task, receipt: Record | None, until: int) -> Callable[[int, Progress], None]:
    """Reports the progress of a training for models, and compares each round with the seed's receipt, if there is one."""
    show_progress = job.reporter(task, until=until)

    def report(round: int, progress: Progress) -> None:
        change = kept.first_difference(receipt, progress.rows, round) if receipt else ""
        if receipt and change:
            raise UserError(
                f"{_path(job, task.seed)}: trained again to keep models, {change} ({_causes(job, receipt)}); they are not kept"
            )
        show_progress(round, progress)

    return report


def _company(job: "Job", receipt: Record) -> list[int]:
    """The seeds that have to train together for this one to get the same numbers."""
    return together(receipt) if job.engine == "vectorised" else [receipt["seed"]]


def _receipts(job: "Job", company: list[int], seeds: list[int]) -> dict[int, Record]:
    """Returns seed -> receipt of the finished `seeds` that trained together with these seeds."""
    paths = {seed: _path(job, seed) for seed in company if seed in seeds}
    receipts = {seed: records.read(path) for seed, path in paths.items() if path.exists()}
    return {seed: receipt for seed, receipt in receipts.items() if _company(job, receipt) == company}


def _causes(job: "Job", receipt: Record) -> str:
    """Names what may have changed the numbers of a seed that is trained again."""
    extra = receipt["cost"].get("seeds_at_once", 1) - len(_company(job, receipt))
    unnamed = f"{extra} seeds trained with it that it does not name, or " if job.engine == "vectorised" and extra > 0 else ""
    code = changed(job.options.root, receipt["run_id"], receipt["seed"], receipt["config"])
    other_code = f"other code of {fingerprints.listed(code.names)}, " if code else ""
    now = arithmetic.current() if job.engine == "sequential" else "native"
    kind = receipt["environment"].get("arithmetic", now)
    other_arithmetic = f"{kind} arithmetic, which is now {now}, " if kind != now else ""
    return f"{unnamed}{other_code}{other_arithmetic}another machine, library or commit?"


def _path(job: "Job", seed: int) -> Path:
    return receipt_path(job.options.root, job.run["run_id"], seed)
