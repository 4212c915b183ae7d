"""Trains the seeds of one run, one after another; what is finished is kept, what was begun goes on from its checkpoint."""

import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedrepro.console import say
from fedrepro.engine import environment, results
from fedrepro.engine.checkpoint import FOLDER as CHECKPOINTS
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.loop import Checkpoints, train
from fedrepro.engine.spec import RunSpec
from fedrepro.engine.task import Inputs, Task, load_task
from fedrepro.files import canonical_hash, lock, write_json
from fedrepro.methods.compose import compose


@dataclass(frozen=True)
class Options:
    """How to run, as opposed to what: none of it changes a result on a CPU, except the choice of engine in its last digits."""

    root: Path = Path()
    device: str = "auto"
    engine: str = "sequential"
    checkpoint_s: float = 20.0
    progress_s: float = 10.0


def run_seeds(run: dict[str, Any], seeds: list[int], options: Options) -> dict[int, str]:
    """Brings every seed of `run` (an entry of a plan) to its receipt. Returns seed -> "trained" or "kept"."""
    spec = RunSpec(**run["config"])
    inputs = Inputs(**run["inputs"], root=options.root)
    device = environment.pick_device(options.device)
    environment.set_deterministic(device)
    done = {}
    busy = lambda pid: say(f"{run['run_id']}: waiting for process {pid}, which is training it")  # noqa: E731
    # Not inside the run's folder: DVC versions that, and a lock is no result.
    with lock(options.root / CHECKPOINTS / f"{run['run_id']}.lock", busy=busy):
        folder = options.root / results.RUNS / run["run_id"]
        for leftover in folder.glob(".seed*"):  # of a process that was killed while it wrote
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        write_json(folder / "config.json", results.identity(run))
        for seed in seeds:
            environment.forget_peak()
            task = load_task(spec, inputs, seed, device)
            if results.confirm(options.root, run["run_id"], seed, task.inputs):
                done[seed] = "kept"
                continue
            _train_seed(run, task, options)
            results.confirm(options.root, run["run_id"], seed, task.inputs)
            done[seed] = "trained"
    return done


def _train_seed(run: dict[str, Any], task: Task, options: Options) -> None:
    path = options.root / CHECKPOINTS / run["run_id"] / f"seed{task.seed}.pt"
    device = str(task.params.flat.device.type)  # begun on one device, a seed is not continued on another
    how = {"engine": options.engine, "device": device}
    key = canonical_hash({"run": run["run_id"], "seed": task.seed, "inputs": task.inputs, **how})
    checkpoints = Checkpoints(path, key, options.checkpoint_s)
    reporter = _Reporter(f"{run['run_id']} seed {task.seed}", task.spec.rounds, options.progress_s)
    outcome = train(task, compose(run["method"]), engine=options.engine, checkpoints=checkpoints, report=reporter)
    progress = outcome.progress
    cost = {
        "wall_s": round(progress.wall_s, 3),
        "peak_rss_mib": round(environment.peak_rss_mib(), 1),
        "samples": progress.samples,
        "samples_per_second": round(progress.samples / max(progress.wall_s, 1e-9), 1),
        "started_at": progress.started_at,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    found = environment.describe(device, options.engine)
    evidence = results.evidence(task.spec, run, task.seed, outcome, found, task.inputs, cost)
    results.write_seed(options.root, run["run_id"], evidence, outcome)
    path.unlink(missing_ok=True)
    value = evidence["summary"]["last_test_accuracy"]
    shown = "diverged" if value is None else f"test accuracy {value:.2f} % in the last round"
    say(f"{run['run_id']} seed {task.seed}: {shown}, {progress.round} rounds in {progress.wall_s:.1f} s")


class _Reporter:
    """A line every few seconds: round, accuracy, rate and time left."""

    def __init__(self, title: str, rounds: int, every_s: float) -> None:
        self.title, self.rounds, self.every_s = title, rounds, every_s
        self.start = self.last = time.monotonic()
        self.first: int | None = None

    def __call__(self, round: int, progress: Progress) -> None:
        now = time.monotonic()
        self.first = round if self.first is None else self.first
        if now - self.last < self.every_s:
            return
        self.last = now
        rate = (round + 1 - self.first) / (now - self.start)
        accuracy = next(value for t, name, value in reversed(progress.rows) if name == "test_accuracy")
        left = (self.rounds - round - 1) / rate
        say(f"{self.title}: round {round + 1}/{self.rounds}, {accuracy:.2f} %, {rate:.2f} rounds/s, {left:.0f} s left")
