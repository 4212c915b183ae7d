"""What a command would train and how long that takes: `fedrepro run --dry-run`, and the one line before any training."""

import heapq
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrepro.config.run_differences import columns, method_names
from fedrepro.console import duration, some
from fedrepro.cost.rates import Rates
from fedrepro.engine import live, receipts
from fedrepro.registry import parse

LONG_S = 300.0  # a seed for which it pays to stop and to edit params.yaml
START_S = 2.0  # of a job, before it trains and between its seeds: to import torch and to read the data


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
        kept = {seed: found for seed in asked if (found := receipts.existing(root, run["run_id"], seed, run["config"]))}
        left = [seed for seed in seeds if seed not in kept]
        folder = Path(root) / live.FOLDER / run["run_id"]
        return cls(run, left, kept, [seed for seed in left if (folder / f"seed{seed}.pt").exists()])


@dataclass(frozen=True)
class Forecast:
    """Times of jobs on a device, "cpu" or "cuda"."""

    jobs: list[Job]
    rates: Rates
    device: str

    @cached_property
    def seconds(self) -> dict[str, float]:
        """run_id -> seconds a seed, of runs that train and are like a known one. Rounds that several share count once."""
        found: dict[str, float] = {}
        for place, job in enumerate(self.training):
            seconds = self.rates.seconds(job.run["config"], self.device)
            if seconds is not None:
                own = 1 - self._shared(job, self.training[:place]) / job.run["config"]["rounds"]
                found[job.run["run_id"]] = seconds * own
        return found

    @staticmethod
    def _shared(job: Job, before: "list[Job]") -> int:
        """How many rounds one of the jobs before it has trained by then."""
        known = {other.run["run_id"] for other in before}
        return max((fork["round"] for fork in job.run.get("forks", ()) if known & {*fork["runs"]}), default=0)

    @cached_property
    def measuring(self) -> float:
        """Seconds of diagnostics on the models that trainings keep, as far as the time of those is known."""
        found = 0.0
        for job in self.training:
            for call, rounds in job.run.get("measures", {}).items():
                each = self.rates.measuring(job.run["config"], call, self.device) or 0.0
                found += len(rounds) * len(job.to_train) * each
        return found

    @property
    def training(self) -> list[Job]:
        """The jobs that have something to train."""
        return [job for job in self.jobs if job.to_train]

    @property
    def unknown(self) -> list[Job]:
        """Those of unknown length."""
        return [job for job in self.training if job.run["run_id"] not in self.seconds]

    def later(self) -> dict[str, float]:
        """run_id -> the time of all runs that come after it, in seeds of that run; runs of unknown length count as 0."""
        found, after = {}, 0.0
        for job in reversed(self.training):
            each = self.seconds.get(job.run["run_id"], 0.0)
            found[job.run["run_id"]] = after / each if each else 0.0
            after += each * len(job.to_train)
        return found

    def lines(self, cores: int | None) -> list[str]:
        """A line for each run, those that train first. Then how much is trained, how much is kept, and how long it takes on
        `cores` cores (default: all that this machine has)."""
        seeds, kept = (sum(len(getattr(job, key)) for job in self.jobs) for key in ("to_train", "kept"))
        total = f"{some(len(self.training), 'run')} to train with {some(seeds, 'seed')} in all, {some(kept, 'seed')} kept"
        jobs = sorted(self.jobs, key=lambda job: not job.to_train)
        names = method_names([job.run["method"] for job in jobs])
        found = [*map(self._line, jobs, names, _apart([job.run["config"] for job in jobs])), total]
        if self.seconds:
            found.append(f"{self.sentence(cores or available_cores(), 'snakemake --cores ')}, {self._by()}{self._then()}")
        if self.unknown:
            names = sorted({f"{job.run['config']['model']} on {job.run['config']['dataset']}" for job in self.unknown})
            why = f"nothing like {', '.join(names)} with about as much work is published or trained here"
            found.append(f"not counted: {some(len(self.unknown), 'run')}, since {why}")
        return found

    def announcement(self, cores: int | None) -> str:
        """What is about to be trained and how long it takes, as far as that is known; "" when nothing is trained. Without
        `cores` only how many hours of one."""
        if not self.training:
            return ""
        seeds = sum(len(job.to_train) for job in self.training)
        text = f"training {some(len(self.training), 'run')} with {some(seeds, 'seed')} in all"
        if not self.seconds:
            return f"{text}; how long that takes the first ones will tell: nothing like them is published or trained here"
        text += f": {self.sentence(cores)}, {self._by()}{self._then()}"
        return text + (f", and {some(len(self.unknown), 'run')} of unknown length" if self.unknown else "")

    def spare(self, cores: int | None, workers: int) -> str:
        """How cores without a run of their own help the others; "" where there are none, or no seed takes long."""
        each, seconds = (cores or 0) // max(1, len(self.training)), [*self.seconds.values()]
        if self.device == "cuda" or each <= workers or max(seconds, default=0.0) <= LONG_S:
            return ""
        more = f"`workers: {each}` in params.yaml shares out the clients of each among {each} processes and changes no result"
        return f"{some(len(self.training), 'run')} for {cores} cores: {more}"

    def _by(self) -> str:
        """`by published runs`, or by those of this folder; and how much longer these took than published ones."""
        configs = [job.run["config"] for job in self.training if job.run["run_id"] in self.seconds]
        published = [config for config in configs if self.rates.published(config, self.device)]
        sources = ["published runs"] * bool(published) + ["runs trained here"] * (len(published) < len(configs))
        times = {config["model"]: f"{self.rates.slower(config['model'], self.device):.1f}" for config in published}
        here = [f"{model} takes {each} times as long" for model, each in times.items() if each != "1.0"]
        return f"by {' and '.join(sources)}" + (f" ({', '.join(here)} here)" if here else "")

    def _then(self) -> str:
        return f", then about {duration(self.measuring)} to measure kept models" if self.measuring else ""

    def sentence(self, cores: int | None, command: str = "") -> str:
        """`about 3.2 core-hours, 1 h 40 min with 2 cores`; below an hour in minutes or seconds. `command` has the cores."""
        known = [job for job in self.training if job.run["run_id"] in self.seconds]
        jobs = [START_S + self.seconds[job.run["run_id"]] * len(job.to_train) for job in known]
        if self.device == "cuda":
            return f"about {duration(sum(jobs))} on the GPU, one run after another"
        total = f"{sum(jobs) / 3600:.1f} core-hours" if sum(jobs) >= 3600 else f"{duration(sum(jobs))} on one core"
        if cores is None or (cores == 1 and sum(jobs) < 3600):
            return f"about {total}"
        with_ = f"{command}{cores}" if command else some(cores, "core")
        return f"about {total}, {duration(makespan(jobs, cores))} with {with_}"

    def _line(self, job: Job, method: str, apart: str) -> str:
        config = job.run["config"]
        what = f"{config['dataset']} {config['model']} {config['partition']}, {config['rounds']} rounds{apart}"
        parts = []
        if job.to_train:
            seconds = self.seconds.get(job.run["run_id"])
            each = "unknown time" if seconds is None else f"{duration(seconds)} each"
            parts.append(f"train seeds {_listed(job.to_train)}: {each}")
        if job.begun:
            parts.append(f"begun: {_listed(job.begun)}")
        for what_is_there in dict.fromkeys(job.kept.values()):
            parts.append(f"kept ({what_is_there}): {_listed(s for s, found in job.kept.items() if found == what_is_there)}")
        return f"{method:<21} {what}; {'; '.join(parts)}"


def _apart(configs: list[dict[str, Any]]) -> list[str]:
    """Of each run the settings in which these differ, apart from those that its line has anyway: `, client_lr 0.1`."""
    said = {"method", "dataset", "model", "partition", "rounds"}
    said |= {key for one in configs for key in parse(one["partition"])[0].arguments}
    differ = {key: values for key, values in columns(configs).items() if key not in said} if configs else {}
    return ["".join(f", {key} {values[place]}" for key, values in differ.items()) for place in range(len(configs))]


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def makespan(seconds: list[float], slots: int) -> float:
    """Seconds until all jobs are done, `slots` at a time, the longest first."""
    ends = [0.0] * max(1, slots)
    for job in sorted(seconds, reverse=True):
        heapq.heapreplace(ends, ends[0] + job)
    return max(ends)


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
