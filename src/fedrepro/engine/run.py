"""Trains the seeds of one run, one after another; finished seeds are kept, interrupted ones continue from their checkpoints."""

import contextlib
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedrepro import arithmetic, stopping
from fedrepro.console import duration, say, some
from fedrepro.data import partition
from fedrepro.engine import checkout, environment, fingerprints, kept, live, receipts, results, retrain, stale
from fedrepro.engine.checkpoint import FOLDER as CHECKPOINTS
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.fork_point import FOLDER as FORKS
from fedrepro.engine.fork_point import ForkPoint
from fedrepro.engine.forks import Fork, begins_later, trunk
from fedrepro.engine.full_memory import one_line, train_in_chunks
from fedrepro.engine.identity import settings_hash
from fedrepro.engine.loop import Checkpoints, Outcome, train
from fedrepro.engine.spec import RunSpec
from fedrepro.engine.task import Inputs, Task, load_images, load_task
from fedrepro.engine.traffic import traffic
from fedrepro.errors import UserError
from fedrepro.files import canonical_hash, lock, restore, write_json
from fedrepro.lazy import torch
from fedrepro.methods.compose import Method, compose
from fedrepro.models import gpu
from fedrepro.models.names import MODELS, primary_metric


@dataclass(frozen=True)
class Options:
    """How to run, as opposed to what: none of it changes a result on a CPU, except the choice of engine in its last digits."""

    root: Path = Path()
    device: str = "auto"
    engine: str = "auto"  # vectorised on a GPU, sequential otherwise
    workers: int = 1  # processes that the sequential engine shares a round's clients out among
    checkpoint_s: float = 20.0
    later: float = 0.0  # what the command trains after this run, in seeds of this run; only the time left depends on it
    read: Callable[[dict[str, Any]], str] | None = None  # what to say of a finished seed's evidence; None: its last round
    # Rounds, counted from 1, whose models are kept. A finished seed is trained again as far as needed.
    keep: tuple[int, ...] = ()
    again: bool = False  # train what is finished once more, to see whether it comes out the same; the kept result stays
    forks: tuple[Fork, ...] = ()  # rounds that the run shares with others, see `fedrepro.engine.forks`
    fresh: bool = False  # train finished seeds from the start too; the new result replaces the old one


def run_seeds(run: dict[str, Any], seeds: list[int], options: Options) -> dict[int, str]:
    """Trains every seed of `run` (an entry of a plan) that has no result, and writes its receipt. Returns seed -> "trained",
    "kept", or that it was trained again with the same values. UserError if values differ: nothing is overwritten.

    A result that other code of a part or of the partition scheme made is stale: it is trained again and replaced at the end,
    unless `again` only compares it.
    """
    fingerprints.load()
    job = _Job.of(run, options)
    job.prepare()
    outcomes = {}

    def busy(holder: str) -> None:
        say(f"{run['run_id']}: waiting for process {holder}, which is training it")

    # Not inside the run's folder, which DVC versions: a lock is not a result.
    with lock(options.root / CHECKPOINTS / f"{run['run_id']}.lock", busy=busy):
        folder = options.root / receipts.RUNS / run["run_id"]
        for aside in folder.glob(".seed*.before"):
            restore(folder / aside.name[1 : -len(".before")])
        for leftover in folder.glob(".seed*"):  # left by a process that was killed while writing
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        for leftover in (options.root / CHECKPOINTS / run["run_id"]).glob(".seed*"):
            if "-kept." not in leftover.name:  # such a file belongs to a training for models, which has a lock of its own
                leftover.unlink()
        write_json(folder / "config.json", receipts.identity(run))
        replaced = stale.to_replace(run, seeds, options)
        images, waiting = load_images(job.spec, job.inputs, job.device), []
        ahead = dict.fromkeys(seeds)
        for seed in list(ahead):
            del ahead[seed]
            if seed in outcomes:  # trained again together with another one
                continue
            environment.forget_peak()
            partition.renew(options.root, job.inputs.partition, seed)
            task = load_task(job.spec, job.inputs, seed, job.device, images=images)
            finished = (later not in replaced and receipts.existing(options.root, run["run_id"], later) for later in ahead)
            after = len(ahead) if options.again else len(ahead) - sum(map(bool, finished))
            if seed not in replaced and receipts.confirm(options.root, run["run_id"], seed, task.inputs):
                message = {seed: stale.kept_line(run, seed, options, job.device, job.engine)}
                outcomes |= retrain.repeat(job, task, after, seeds, images) if options.again else message
            elif job.engine == "vectorised":
                waiting.append(task)
            else:
                job.train([task], after)
                outcomes[seed] = "trained"
        if waiting:
            job.train(waiting, 0)
            outcomes |= {task.seed: "trained" for task in waiting}
    for seed in seeds if options.keep else ():  # without the run's lock: several processes may each do a seed
        for other_seed, rounds in retrain.keep(job, seed, seeds, images, busy).items():
            outcomes[other_seed] += f", models of round{'s' * (len(rounds) > 1)} {', '.join(map(str, rounds))} trained again"
    return {seed: outcomes[seed] for seed in seeds}


def train_again(run: dict[str, Any], seed: int, options: Options) -> dict[str, Any]:
    """The evidence of one seed of `run`, trained from the start even if it has a result, with the sha256 of its files."""
    job = _Job.of(run, options)
    job.prepare()
    return retrain.evidence(job, [load_task(job.spec, job.inputs, seed, job.device)], 0)[seed]


@dataclass(frozen=True)
class _Job:
    """One run on one device."""

    run: dict[str, Any]
    spec: RunSpec
    inputs: Inputs
    device: str
    engine: str
    options: Options
    commit: tuple[str | None, bool | None]  # when the training began, and whether its sources differed from it
    smaller: dict[int, int] = field(default_factory=dict)  # seed -> clients at once, if the GPU's memory was too small for all

    @classmethod
    def of(cls, run: dict[str, Any], options: Options) -> "_Job":
        """Chooses the device and the engine of a run."""
        device, spec = environment.pick_device(options.device), RunSpec(**run["config"])
        inputs, engine = Inputs(**run["inputs"], root=options.root), choose_engine(options, device, spec)
        return cls(run, spec, inputs, device, engine, options, checkout.state())

    def prepare(self) -> None:
        """Prepares the process for the run's device and products."""
        environment.prepare(self.device)
        environment.choose_products(self.device, self.spec.products)
        if self.device == "cuda":  # torch warns at the first backward pass, and then does what the warning says
            warnings.filterwarnings("ignore", "Attempting to run cuBLAS")

    def train(self, tasks: list[Task], after: int) -> None:
        """Trains these seeds, at once if there are several, and writes each as it ends. `after`: how many of the run follow."""
        seeds = [task.seed for task in tasks]
        reports = [self.reporter(task, after, len(tasks)) for task in tasks]
        arguments = [self.checkpoints(task, seeds) for task in tasks], [self.keeper(task) for task in tasks]
        for task, saved in zip(tasks, arguments[0], strict=True):
            if saved.path.exists():
                say(f"{self.run['run_id']} seed {task.seed}: reads the state of a stopped training")
        with stopping.deferred():
            for task, outcome in self.outcomes(tasks, reports, *arguments):
                self._write(task, outcome, seeds)

    def outcomes(
        self,
        tasks: Sequence[Task],
        reports: Sequence[Callable[[int, Progress], None]],
        checkpoints: Sequence[Checkpoints | None] | None = None,
        keepers: Sequence[kept.Keeper | None] | None = None,
    ) -> Iterator[tuple[Task, Outcome]]:
        """Trains these seeds: at once on the vectorised engine, otherwise one after another."""
        if self.engine == "vectorised":
            per_task = {"checkpoints": checkpoints, "reports": reports, "keepers": keepers}
            with one_line(self.run["run_id"]):
                yield from train_in_chunks(self.run["run_id"], tasks, self._method, self.smaller, **per_task)
            return
        none = [None] * len(tasks)
        for task, report, saved, keeper in zip(tasks, reports, checkpoints or none, keepers or none, strict=True):
            arguments = {"engine": self.engine, "workers": self.options.workers, "report": report}
            with one_line(self.run["run_id"]):
                outcome = train(task, self._method, **arguments, checkpoints=saved, keeper=keeper)
            yield task, outcome

    @property
    def _method(self) -> Method:
        return compose(self.run["method"])

    def keeper(self, task: Task, rounds: Sequence[int] | None = None, until: int | None = None) -> kept.Keeper | None:
        """Returns the keeper of `rounds`, or of those that every seed keeps; `until`: the last round of the training."""
        to_keep = frozenset(self.options.keep if rounds is None else rounds)
        return kept.Keeper(self.options.root, self.run["run_id"], task.seed, to_keep, until) if to_keep or until else None

    def checkpoints(self, task: Task, seeds: list[int], ending: str = "", more: dict[str, Any] | None = None) -> Checkpoints:
        """`seeds`: that train together, if the engine takes several; `more`: further values that a checkpoint must match to be
        continued. A fresh training continues only from checkpoints of a fresh training."""
        more = (more or {}) | ({"fresh": True} if self.options.fresh else {})
        path = self.options.root / CHECKPOINTS / self.run["run_id"] / f"seed{task.seed}{ending}.pt"
        key = self._key(self.run["run_id"], self.run["config"], task, seeds, more)
        return Checkpoints(path, key, self.options.checkpoint_s, self._fork_points(task, seeds))

    def _key(self, name: str, config: dict[str, Any], task: Task, seeds: list[int], more: dict[str, Any] | None = None) -> str:
        # A checkpoint is not continued on another device, by another engine or in another arithmetic. Workers change nothing.
        settings = {"engine": self.engine, "device": self.device, **(more or {})}
        # Nor by other code, since a record names one code.
        settings |= {"code": fingerprints.today(config, self.device), "torch": torch.__version__}
        settings |= {"arithmetic": arithmetic.current()} if self.device == "cpu" else {}  # arithmetic only matters on a CPU
        settings |= {"together": seeds} if self.engine == "vectorised" else {}
        return canonical_hash({"run": name, "seed": task.seed, "inputs": task.inputs, **settings})

    @property
    def forks(self) -> list[Fork]:
        """The rounds that the run may share with others."""
        return [fork for fork in self.options.forks if _inherits(self._method, fork.round, self.spec.rounds)]

    def _fork_points(self, task: Task, seeds: list[int]) -> tuple[ForkPoint, ...]:
        """Where rounds end that the seed shares with other runs; none for a fresh training, which begins at round 0."""
        points = []
        for fork in self.forks if not self.options.fresh else ():
            early = trunk(self.run["config"], fork.round)
            key = self._key(settings_hash(early), early, task, seeds)
            path = self.options.root / FORKS / key / f"seed{task.seed}-round{fork.round}.pt"
            points.append(ForkPoint(fork.round, fork.models, path, key))
        return tuple(points)

    def close_forks(self, task: Task, points: Sequence[ForkPoint]) -> None:
        """Deletes shared states that no run needs any more: all runs that share them have finished this seed."""
        for fork, point in zip(self.forks, points, strict=False):
            if all(receipts.existing(self.options.root, run_id, task.seed) for run_id in fork.runs):
                point.path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # not empty: another seed's state is there
                    point.path.parent.rmdir()

    def reporter(self, task: Task, after: int = 0, at_once: int = 1, until: int | None = None) -> "_Reporter":
        """`after`: seeds of this run that follow; `at_once`: seeds that share each round; `until`: the last round of a training
        that is only there for its models."""
        title, metric = f"{self.run['run_id']} seed {task.seed}", primary_metric(self.spec.model)
        if until is not None:
            return _Reporter(f"{title}, for its models", until, 0, metric)
        ahead = task.spec.rounds * (after + self.options.later / at_once)
        return _Reporter(title, task.spec.rounds, ahead, metric)

    def _write(self, task: Task, outcome: Outcome, seeds: list[int]) -> None:
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
        if progress.shared:
            cost |= {"shared_rounds": progress.shared, "shared_s": round(progress.shared_s, 3)}
        description = environment.describe(self.device, self.engine, self.spec.products) | {"workers": self.options.workers}
        description |= dict(zip(("commit", "dirty"), self.commit, strict=True))
        if self.device == "cuda" and _stacks_convolutions(self.engine, self.spec.products, task):
            description |= {"convolutions": gpu.form()}
        if task.seed in self.smaller:
            description |= {"clients_at_once": self.smaller[task.seed]}
        if self.engine == "vectorised":
            description, cost = description | {"together": seeds}, cost | {"seeds_at_once": len(seeds)}
        evidence = results.evidence(self.spec, self.run, task.seed, outcome, description, task.inputs, cost)
        kept.forget_others(root, evidence)  # before the receipt: after a kill between both, nothing measured is beside another
        results.write_seed(root, run_id, evidence, outcome)
        saved = self.checkpoints(task, seeds)
        live.remove(saved.path)
        receipts.confirm(root, run_id, task.seed, task.inputs)
        self.close_forks(task, saved.forks)
        result = (self.options.read or self._last_round)(evidence)
        say(f"{run_id} seed {task.seed}: {result}, {some(progress.round, 'round')} in {progress.wall_s:.1f} s")

    def _last_round(self, evidence: dict[str, Any]) -> str:
        metric = primary_metric(self.spec.model)
        value = evidence["summary"][f"last_{metric}"]
        return "diverged" if value is None else f"{_words(metric, value)} in the last round"


def _inherits(method: Method, round: int, rounds: int) -> bool:
    """Whether the averages that begin in `round` or later can start from the global models before it. They cannot if an average
    behind them has begun: then the models are its means."""
    waiting = [begins_later(part.begins(rounds), round) for part in method.averages]
    return waiting == sorted(waiting)


def _stacks_convolutions(engine: str, products: str, task: Task) -> bool:
    """Whether a training on a GPU has convolutions of stacked clients in float32, which alone may take the kernels of
    `fedrepro.models.gpu`."""
    return engine == "vectorised" and products != "bf16" and any(len(shape) == 4 for shape in task.params.layout.shapes)


def choose_engine(options: Options, device: str, spec: RunSpec) -> str:
    """The engine of a run: the one that was named, or by device. UserError for the vectorised engine and a model that cannot be
    stacked."""
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


def _to_numbers(progress: Progress) -> None:
    """Makes the last round's notes numbers: a method may leave a tensor of one. UserError for what is none, before more rounds
    are trained."""
    position, rows = len(progress.rows), progress.rows
    while position and rows[position - 1][0] == rows[-1][0]:
        position -= 1
        round, name, value = rows[position]
        try:
            rows[position] = round, name, float(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise UserError(f"round {round + 1}: ctx.notes[{name!r}] is of {type(value).__name__}; give a number") from error


_PROGRESS_S, _MOST_S = 10.0, 60.0  # between two lines of progress: at first, and at most


class _Reporter:
    """A line every few seconds: round, the model's metric, rate, and the time left for all that the command has to do.

    `ahead`: rounds that follow those of this seed, at its rate. The lines become fewer, down to one a minute.
    """

    def __init__(self, title: str, rounds: int, ahead: float, metric: str) -> None:
        self.title, self.rounds, self.ahead, self.metric = title, rounds, ahead, metric
        self.start = self.last = time.monotonic()
        self.first: int | None = None

    def __call__(self, round: int, progress: Progress) -> None:
        _to_numbers(progress)
        now = time.monotonic()
        self.first = round if self.first is None else self.first
        if now - self.last < min(max(_PROGRESS_S, (now - self.start) / 10), _MOST_S):
            return
        self.last = now
        rate = (round + 1 - self.first) / (now - self.start)
        value = next((value for _, name, value in reversed(progress.rows) if name == self.metric), None)
        reached = "" if value is None else f"{_words(self.metric, value)}, "  # none before the first evaluation
        seed_s, all_s = (rounds / rate for rounds in (self.rounds - round - 1, self.rounds - round - 1 + self.ahead))
        remaining = f"{duration(all_s)} left" + (f" ({duration(seed_s)} of this seed)" if self.ahead else "")
        say(f"{self.title}: round {round + 1}/{self.rounds}, {reached}{rate:.2f} rounds/s, {remaining}")
