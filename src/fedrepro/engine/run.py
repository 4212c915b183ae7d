"""Trains the seeds of one run, one after another; what is finished is kept, what was begun goes on from its checkpoint."""

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedrepro import arithmetic
from fedrepro.console import duration, say
from fedrepro.engine import environment, kept, records, results
from fedrepro.engine.checkpoint import FOLDER as CHECKPOINTS
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.differences import compare
from fedrepro.engine.kept import Keeper
from fedrepro.engine.loop import Checkpoints, Outcome, train, train_together
from fedrepro.engine.spec import RunSpec
from fedrepro.engine.task import Images, Inputs, Task, load_images, load_task
from fedrepro.engine.traffic import traffic
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, lock, write_json
from fedrepro.methods.compose import Method, compose
from fedrepro.models.names import MODELS, primary_metric


@dataclass(frozen=True)
class Options:
    """How to run, as opposed to what: none of it changes a result on a CPU, except the choice of engine in its last digits."""

    root: Path = Path()
    device: str = "auto"
    engine: str = "auto"  # vectorised on a GPU, sequential otherwise
    workers: int = 1  # processes that the sequential engine shares a round's clients out among
    checkpoint_s: float = 20.0
    progress_s: float = 10.0  # between two lines of progress at first; a minute once a run takes long
    later: float = 0.0  # what the command trains after this run, in seeds of this run; only the time left depends on it
    read: Callable[[dict[str, Any]], str] | None = None  # what to say of a finished seed's evidence; None: its last round
    keep: tuple[
        int, ...
    ] = ()  # rounds, counted from 1, whose models are kept; a finished seed is trained again as far as needed
    again: bool = False  # train what is finished once more, to see whether it comes out the same; the kept result stays


def run_seeds(run: dict[str, Any], seeds: list[int], options: Options) -> dict[int, str]:
    """Brings every seed of `run` (an entry of a plan) to its receipt. Returns seed -> "trained", "kept", or that it was
    trained again with the same values. UserError where other values came out: nothing is overwritten.
    """
    job = _Job.of(run, options)
    environment.prepare(job.device)
    environment.choose_products(job.device, job.spec.products)
    done = {}
    busy = lambda pid: say(f"{run['run_id']}: waiting for process {pid}, which is training it")  # noqa: E731
    # Not inside the run's folder: DVC versions that, and a lock is no result.
    with lock(options.root / CHECKPOINTS / f"{run['run_id']}.lock", busy=busy):
        folder = options.root / results.RUNS / run["run_id"]
        for leftover in folder.glob(".seed*"):  # of a process that was killed while it wrote
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        write_json(folder / "config.json", results.identity(run))
        images, waiting = load_images(job.spec, job.inputs, job.device), []
        ahead = dict.fromkeys(seeds)
        for seed in list(ahead):
            del ahead[seed]
            environment.forget_peak()
            task = load_task(job.spec, job.inputs, seed, job.device, images=images)
            after = sum(options.again or not results.kept(options.root, run["run_id"], other) for other in ahead)
            if results.confirm(options.root, run["run_id"], seed, task.inputs):
                done[seed] = job.repeat(task, after) if options.again else "kept"
            elif job.engine == "vectorised":
                waiting.append(task)
            else:
                job.train(task, after)
                done[seed] = "trained"
        if waiting:
            job.train_together(waiting)
            done |= {task.seed: "trained" for task in waiting}
    for seed in seeds if options.keep else ():  # not below the run's lock: several processes may do a seed each
        with lock(options.root / CHECKPOINTS / f"{run['run_id']}-seed{seed}-kept.lock", busy=busy):
            again = job.keep(seed, images)
        done[seed] += f", models of round{'s' * (len(again) > 1)} {', '.join(map(str, again))} trained again" if again else ""
    return {seed: done[seed] for seed in seeds}


def train_again(run: dict[str, Any], seed: int, options: Options) -> dict[str, Any]:
    """The evidence of one seed of `run`, trained from the start whatever there is of it, with the sha256 of its files."""
    job = _Job.of(run, options)
    environment.prepare(job.device)
    environment.choose_products(job.device, job.spec.products)
    return job.again(load_task(job.spec, job.inputs, seed, job.device), 0)


@dataclass(frozen=True)
class _Job:
    """One run on one device."""

    run: dict[str, Any]
    spec: RunSpec
    inputs: Inputs
    device: str
    engine: str
    options: Options

    @classmethod
    def of(cls, run: dict[str, Any], options: Options) -> "_Job":
        """With the device and the engine chosen."""
        device, spec = environment.pick_device(options.device), RunSpec(**run["config"])
        return cls(run, spec, Inputs(**run["inputs"], root=options.root), device, choose_engine(options, device, spec), options)

    def train(self, task: Task, after: int) -> None:
        """One seed, start to end; `after`: how many of the run's other seeds follow."""
        how = {"engine": self.engine, "workers": self.options.workers}
        how |= {"checkpoints": self._checkpoints(task), "report": self._reporter(task, after), "keeper": self._keeper(task)}
        self._write(task, train(task, self._method, **how), {})

    def keep(self, seed: int, images: Images) -> list[int]:
        """Sees to it that a finished seed has the models that are wanted. Those that it lacks, which are returned, are trained
        again, up to the last of them; receipt and results stay.

        UserError where a number of that training is not the receipt's.
        """
        root, path = self.options.root, results.receipt_path(self.options.root, self.run["run_id"], seed)
        receipt = records.read(path)
        missing = kept.missing(root, receipt, self.options.keep)
        if missing:
            self._train_for_models(load_task(self.spec, self.inputs, seed, self.device, images=images), missing, path, receipt)
        kept.write_index(root, receipt)
        return missing

    def _train_for_models(self, task: Task, rounds: list[int], path: Path, receipt: dict[str, Any]) -> None:
        metric, title = primary_metric(self.spec.model), f"{self.run['run_id']} seed {task.seed}, for its models"
        shown = _Reporter(title, max(rounds), 0, metric, self.options.progress_s)

        def report(round: int, progress: Progress) -> None:
            found = kept.first_difference(receipt, progress.rows, round)
            if found:
                raise UserError(
                    f"{path}: trained again to keep models, {found} (another machine, library or commit?); they are not kept"
                )
            shown(round, progress)

        checkpoints = self._checkpoints(task, "-kept")
        how = {"engine": self.engine, "workers": self.options.workers, "checkpoints": checkpoints, "report": report}
        train(task, self._method, **how, keeper=self._keeper(task, rounds, max(rounds)))
        checkpoints.path.unlink(missing_ok=True)

    def repeat(self, task: Task, after: int) -> str:
        """Trains a finished seed from the start and compares every recorded number with the kept one, to the last digit."""
        path = results.receipt_path(self.options.root, self.run["run_id"], task.seed)
        found = compare(records.read(path), self.again(task, after), strict=False)
        if found.first:
            raise UserError(
                f"{path}: trained again, {found.first} (another machine, library or commit?); the kept result stays"
            )
        return "trained again, identical"

    def again(self, task: Task, after: int) -> dict[str, Any]:
        """The evidence of one seed, trained from the start, with the sha256 of its files; no checkpoint of other code."""
        how = {"engine": self.engine, "workers": self.options.workers}
        outcome = train(task, self._method, **how, report=self._reporter(task, after))
        found = environment.describe(self.device, self.engine, self.spec.products)
        evidence = results.evidence(self.spec, self.run, task.seed, outcome, found, task.inputs, {})
        with tempfile.TemporaryDirectory() as folder:
            results.write_seed(Path(folder), self.run["run_id"], evidence, outcome)
            written = results.receipt_path(Path(folder), self.run["run_id"], task.seed).with_suffix("")
            return records.read_folder(written)

    def train_together(self, tasks: list[Task]) -> None:
        """Several seeds at once; each is written as it finishes."""
        several = {
            "checkpoints": [self._checkpoints(t) for t in tasks],
            "reports": [self._reporter(t, 0, len(tasks)) for t in tasks],
            "keepers": [self._keeper(t) for t in tasks],
        }
        for position, outcome in train_together(tasks, self._method, **several):
            self._write(tasks[position], outcome, {"seeds_at_once": len(tasks)})

    @property
    def _method(self) -> Method:
        return compose(self.run["method"])

    def _keeper(self, task: Task, rounds: Sequence[int] | None = None, until: int | None = None) -> Keeper | None:
        wanted = frozenset(self.options.keep if rounds is None else rounds)
        return Keeper(self.options.root, self.run["run_id"], task.seed, wanted, until) if wanted else None

    def _checkpoints(self, task: Task, ending: str = "") -> Checkpoints:
        path = self.options.root / CHECKPOINTS / self.run["run_id"] / f"seed{task.seed}{ending}.pt"
        # Begun on one device, by one engine or in one arithmetic, a seed is not continued in another; workers change nothing.
        how = {"engine": self.engine, "device": self.device, "arithmetic": arithmetic.current()}
        key = canonical_hash({"run": self.run["run_id"], "seed": task.seed, "inputs": task.inputs, **how})
        return Checkpoints(path, key, self.options.checkpoint_s)

    def _reporter(self, task: Task, after: int, at_once: int = 1) -> "_Reporter":
        """`after`: seeds of this run that follow; `at_once`: seeds that share each round."""
        title, metric = f"{self.run['run_id']} seed {task.seed}", primary_metric(self.spec.model)
        ahead = task.spec.rounds * (after + self.options.later / at_once)
        return _Reporter(title, task.spec.rounds, ahead, metric, self.options.progress_s)

    def _write(self, task: Task, outcome: Outcome, shared: dict[str, int]) -> None:
        run_id, progress, root = self.run["run_id"], outcome.progress, self.options.root
        cost = {
            "wall_s": round(progress.wall_s, 3),
            "peak_rss_mib": round(environment.peak_rss_mib() + outcome.workers_mib, 1),
            "samples": progress.samples,
            "samples_per_second": round(progress.samples / max(progress.wall_s, 1e-9), 1),
            "started_at": progress.started_at,
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
            **traffic(task, self._method, progress.round),
        }
        found = environment.describe(self.device, self.engine, self.spec.products) | {"workers": self.options.workers}
        evidence = results.evidence(self.spec, self.run, task.seed, outcome, found, task.inputs, cost | shared)
        results.write_seed(root, run_id, evidence, outcome)
        self._checkpoints(task).path.unlink(missing_ok=True)
        results.confirm(root, run_id, task.seed, task.inputs)
        shown = (self.options.read or self._last_round)(evidence)
        say(f"{run_id} seed {task.seed}: {shown}, {progress.round} rounds in {progress.wall_s:.1f} s")

    def _last_round(self, evidence: dict[str, Any]) -> str:
        metric = primary_metric(self.spec.model)
        value = evidence["summary"][f"last_{metric}"]
        return "diverged" if value is None else f"{_words(metric, value)} in the last round"


def choose_engine(options: Options, device: str, spec: RunSpec) -> str:
    """The engine of a run: the one that was named, or by device. UserError when a model cannot be stacked but has to be."""
    if options.workers > 1 and (device == "cuda" or options.engine == "vectorised"):
        where = "a GPU" if device == "cuda" else "the vectorised engine"
        raise UserError(f"workers = {options.workers}: {where} takes all clients at once; set it to 1")
    stackable = MODELS[spec.model].stackable if spec.model in MODELS else True
    if options.engine == "auto":
        return "vectorised" if device == "cuda" and stackable else "sequential"
    if options.engine == "vectorised" and not stackable:
        raise UserError(
            f"engine = vectorised: {spec.model} has operations that take one client at a time; set it to sequential"
        )
    return options.engine


def _words(metric: str, value: float) -> str:
    """`test accuracy 81.25 %`; `test map50 0.873`."""
    return f"{metric.replace('_', ' ')} " + (f"{value:.2f} %" if metric.endswith("accuracy") else f"{value:.3f}")


class _Reporter:
    """A line every few seconds: round, the model's metric, rate, and the time left for all that the command has to do.

    `ahead`: rounds that follow those of this seed, at its rate. The lines become fewer, down to one a minute.
    """

    def __init__(self, title: str, rounds: int, ahead: float, metric: str, every_s: float) -> None:
        self.title, self.rounds, self.ahead, self.metric, self.every_s = title, rounds, ahead, metric, every_s
        self.start = self.last = time.monotonic()
        self.first: int | None = None

    def __call__(self, round: int, progress: Progress) -> None:
        now = time.monotonic()
        self.first = round if self.first is None else self.first
        if now - self.last < min(max(self.every_s, (now - self.start) / 10), max(self.every_s, 60.0)):
            return
        self.last = now
        rate = (round + 1 - self.first) / (now - self.start)
        value = next((value for _, name, value in reversed(progress.rows) if name == self.metric), None)
        reached = "" if value is None else f"{_words(self.metric, value)}, "  # none before the first evaluation
        here, all_s = (rounds / rate for rounds in (self.rounds - round - 1, self.rounds - round - 1 + self.ahead))
        left = f"{duration(all_s)} left" + (f" ({duration(here)} of this seed)" if self.ahead else "")
        say(f"{self.title}: round {round + 1}/{self.rounds}, {reached}{rate:.2f} rounds/s, {left}")
