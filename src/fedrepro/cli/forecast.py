"""What a command would train and how long that takes: `fedrepro run --dry-run`, and the one line before any training."""

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro import arithmetic
from fedrepro.console import duration, say
from fedrepro.data.registry import REGISTRY, Entry, load_registry
from fedrepro.engine import environment, receipts
from fedrepro.engine.checkpoint import FOLDER as CHECKPOINTS
from fedrepro.engine.estimate import Rates, image_counts, makespan
from fedrepro.engine.spec import RunSpec


@dataclass(frozen=True)
class Job:
    """One run: the seeds that it would train, and those that are there already."""

    run: dict[str, Any]  # its identity
    to_train: list[int]
    kept: dict[int, str]  # seed -> what there is of it
    begun: list[int]  # of to_train, those that have a checkpoint

    @classmethod
    def of(cls, root: Path, run: dict[str, Any], seeds: Iterable[int], fresh: bool = False) -> "Job":
        """As the folders below `root` have it. `fresh`: what is there counts for nothing."""
        asked = [] if fresh else seeds
        kept = {seed: found for seed in asked if (found := receipts.kept(root, run["run_id"], seed, run["config"]))}
        left = [seed for seed in seeds if seed not in kept]
        folder = Path(root) / CHECKPOINTS / run["run_id"]
        return cls(run, left, kept, [seed for seed in left if (folder / f"seed{seed}.pt").exists()])


class Forecast:
    """Times of jobs on this device. `limit_s`: seconds that measuring may take, but for the local steps of each model."""

    def __init__(self, root: Path, registry: dict[str, Entry], jobs: list[Job], device: str, limit_s: float) -> None:
        began = time.monotonic()
        device = environment.pick_device(device)
        environment.prepare(device)
        rates = Rates(device, limit_s=limit_s)
        self.jobs, self.device, self.unknown = jobs, device, set()
        self.seconds: dict[str, float] = {}  # run_id -> seconds a seed
        self.measuring = 0.0  # seconds of diagnostics on the models that trainings keep
        for job in jobs:
            spec = RunSpec(**job.run["config"])
            environment.choose_products(device, spec.products)
            counts = image_counts(root, registry[spec.dataset])
            if counts is None:
                self.unknown.add(spec.dataset)
            elif job.to_train:
                self.seconds[job.run["run_id"]] = rates.seconds(spec, *counts)
                calls, rounds = job.run.get("calls", {}).values(), len(job.run.get("keep", ()))
                self.measuring += len(job.to_train) * rates.measuring(spec, calls, rounds, *counts)
        self.took_s = time.monotonic() - began

    @property
    def training(self) -> list[Job]:
        """The jobs that have something to train."""
        return [job for job in self.jobs if job.to_train]

    def job_seconds(self) -> list[float]:
        """Seconds of each job that trains, all its seeds one after another; those of unknown length are left out."""
        known = [(self.seconds.get(job.run["run_id"]), len(job.to_train)) for job in self.training]
        return [seconds * seeds for seconds, seeds in known if seconds is not None]

    def later(self) -> dict[str, float]:
        """run_id -> the time of all runs that come after it, in seeds of that run; runs of unknown length count as 0."""
        found, after = {}, 0.0
        for job in reversed(self.training):
            each = self.seconds.get(job.run["run_id"], 0.0)
            found[job.run["run_id"]] = after / each if each else 0.0
            after += each * len(job.to_train)
        return found

    def lines(self, cores: int | None) -> list[str]:
        """A line for each run, those that train first, then the totals."""
        lines = [self._line(job) for job in sorted(self.jobs, key=lambda job: not job.to_train)]
        return [*lines, *self.totals(cores)]

    def _line(self, job: Job) -> str:
        config = job.run["config"]
        what = f"{config['dataset']} {config['model']} {config['partition']}, {config['rounds']} rounds"
        parts = []
        if job.to_train:
            seconds = self.seconds.get(job.run["run_id"])
            each = "unknown time" if seconds is None else f"{duration(seconds)} each"
            parts.append(f"train seeds {_listed(job.to_train)}: {each}")
        if job.begun:
            parts.append(f"begun: {_listed(job.begun)}")
        for what_is_there in dict.fromkeys(job.kept.values()):
            parts.append(f"kept ({what_is_there}): {_listed([s for s, found in job.kept.items() if found == what_is_there])}")
        return f"{job.run['method_label']:<22}{what}; {'; '.join(parts)}"

    def totals(self, cores: int | None) -> list[str]:
        """How much is trained and kept, and how long it takes on so many cores (default: those of this machine)."""
        cores = cores or available_cores()
        seeds, kept = (sum(len(getattr(job, key)) for job in self.jobs) for key in ("to_train", "kept"))
        found = [
            f"{_count(len(self.training), 'run')} to train with {_count(seeds, 'seed')} in all, {_count(kept, 'seed')} kept"
        ]
        if self.seconds:
            found.append(self.sentence(cores))
        if self.measuring:
            found.append(f"then {self.measurements}")
        if self.unknown:
            found.append(f"not counted: {_listed(self.unknown)}, of unknown size before it is prepared")
        return found

    @property
    def measurements(self) -> str:
        """What diagnostics take, one after another."""
        return f"about {duration(self.measuring)} to measure kept models"

    def sentence(self, cores: int) -> str:
        """`about 3.2 core-hours, 1 h 40 min with 2 cores`; below an hour in minutes or seconds."""
        jobs = self.job_seconds()
        if self.device == "cuda":
            return f"about {duration(sum(jobs))} on the GPU, one run after another"
        total = f"{sum(jobs) / 3600:.1f} core-hours" if sum(jobs) >= 3600 else f"{duration(sum(jobs))} on one core"
        if cores == 1 and sum(jobs) < 3600:
            return f"about {total}"
        return f"about {total}, {duration(makespan(jobs, cores))} with {_count(cores, 'core')}"


def announce(options: Namespace) -> None:
    """The line for what a workflow trains: standard input holds a list of [run, seeds], as JSON."""
    jobs = [Job.of(Path(), run, seeds) for run, seeds in json.load(sys.stdin)]
    arithmetic.widen()
    line, _ = forecast(Path(), load_registry(REGISTRY), jobs, "cpu", options.cores or available_cores())
    if line:
        say(f"fedrepro: {line}")


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def forecast(
    root: Path, registry: dict[str, Entry], jobs: list[Job], device: str, cores: int
) -> tuple[str | None, Forecast | None]:
    """What is about to be trained and how long it takes, measured within a few seconds; nothing when nothing is trained.

    Never an error: whatever goes wrong here must not stop a training.
    """
    try:
        made = Forecast(root, registry, [job for job in jobs if job.to_train], device, limit_s=1.5)
        if not made.jobs:
            return None, None
        seeds = sum(len(job.to_train) for job in made.jobs)
        text = f"training {_count(len(made.jobs), 'run')} with {_count(seeds, 'seed')} in all"
        if made.seconds:
            text += f": {made.sentence(cores)}" + (f", then {made.measurements}" if made.measuring else "")
        return text + (f", and {_listed(made.unknown)}, of unknown size" if made.unknown else ""), made
    except Exception as error:
        return f"how long this takes is not known ({type(error).__name__}: {error})", None


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, sorted(items, key=str) if isinstance(items, set) else items))
