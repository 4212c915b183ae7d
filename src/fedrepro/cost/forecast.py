"""What a command would train and how long that takes: `fedrepro run --dry-run`, and the one line before any training."""

import heapq
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedrepro.config.run_differences import columns, shared
from fedrepro.console import aligned, duration, some
from fedrepro.cost.rates import Rates
from fedrepro.engine import checkout, live, receipts
from fedrepro.grouping import grouped

LONG_S = 300.0  # duration of a seed above which it is worth a line how it could run better
START_S = 2.0  # of a job, before it trains and between its seeds: to import torch and to read the data


@dataclass(frozen=True)
class Job:
    """One run: the seeds that it would train, and those that are there already."""

    run: dict[str, Any]  # its identity
    to_train: list[int]
    kept: dict[int, str]  # seed -> the state of its result
    begun: list[int]  # of to_train, those that have a checkpoint

    @classmethod
    def of(cls, root: Path, run: dict[str, Any], seeds: Iterable[int], again: bool = False, fresh: bool = False) -> "Job":
        """Returns the job as the folders below `root` have it. `again`: finished seeds train from the start. `fresh`: all do,
        and neither results, checkpoints nor shared rounds are used."""
        if fresh:
            return cls(run | {"forks": ()}, [*seeds], {}, [])
        kept = {seed: state for seed in seeds if (state := receipts.existing(root, run["run_id"], seed, run["config"]))}
        to_train = [seed for seed in seeds if again or seed not in kept]
        folder = Path(root) / live.FOLDER / run["run_id"]
        begun = [seed for seed in to_train if seed not in kept and (folder / f"seed{seed}.pt").exists()]
        return cls(run | {"forks": ()} if again and kept else run, to_train, {} if again else kept, begun)


@dataclass(frozen=True)
class Forecast:
    """Times of jobs on a device, "cpu" or "cuda"."""

    jobs: list[Job]
    rates: Rates
    device: str

    @cached_property
    def seconds(self) -> dict[str, float]:
        """run_id -> seconds of a seed, for runs to train that resemble a measured one. Shared rounds count once."""
        seconds_by_run: dict[str, float] = {}
        earlier_ids = set[str]()
        for job in self.training:
            seconds = self.rates.seconds(job.run["config"], self.device)
            if seconds is not None:
                forks = job.run.get("forks", ())
                trained_earlier = max((fork["round"] for fork in forks if earlier_ids & {*fork["runs"]}), default=0)
                seconds_by_run[job.run["run_id"]] = seconds * (1 - trained_earlier / job.run["config"]["rounds"])
            earlier_ids.add(job.run["run_id"])
        return seconds_by_run

    @cached_property
    def measuring(self) -> float:
        """Seconds of diagnostics on the models that trainings keep, as far as the time of those is known."""
        total = 0.0
        for job in self.training:
            for call, rounds in job.run.get("measures", {}).items():
                round_s = self.rates.measuring(job.run["config"], call, self.device) or 0.0
                total += len(rounds) * len(job.to_train) * round_s
        return total

    @property
    def training(self) -> list[Job]:
        """The jobs that have something to train."""
        return [job for job in self.jobs if job.to_train]

    @property
    def unknown(self) -> list[Job]:
        """The jobs of unknown length."""
        return [job for job in self.training if job.run["run_id"] not in self.seconds]

    def later(self) -> dict[str, float]:
        """Returns run_id -> the training time of all later runs, in multiples of one seed of this run; runs of unknown length
        count as 0."""
        seeds_after, seconds_after = {}, 0.0
        for job in reversed(self.training):
            seed_s = self.seconds.get(job.run["run_id"], 0.0)
            seeds_after[job.run["run_id"]] = seconds_after / seed_s if seed_s else 0.0
            seconds_after += seed_s * len(job.to_train)
        return seeds_after

    def lines(self, cores: int | None) -> list[str]:
        """Returns the settings that all runs share, and a line for each run, those that train first. Then how much is trained,
        how much is kept, and how long it takes on `cores` cores (default: all that this machine has)."""
        seeds, kept = (sum(len(getattr(job, key)) for job in self.jobs) for key in ("to_train", "kept"))
        total = f"{some(len(self.training), 'run')} to train with {some(seeds, 'seed')} in all, {some(kept, 'seed')} kept"
        lines = [*self._runs(sorted(self.jobs, key=lambda job: not job.to_train)), total]
        if self.seconds:
            lines.append(f"{self.sentence(cores or available_cores(), 'snakemake --cores ')}, {self._sources()}{self._then()}")
        if self.unknown:
            names = sorted({f"{job.run['config']['model']} on {job.run['config']['dataset']}" for job in self.unknown})
            reason = f"nothing like {', '.join(names)} with about as much work is published or trained here"
            lines.append(f"not counted: {some(len(self.unknown), 'run')}, since {reason}")
        return lines

    def announcement(self, cores: int | None) -> str:
        """Says what is about to be trained and how long it takes, as far as that is known; "" when nothing is trained. Without
        `cores` it gives core-hours only."""
        if not self.training:
            return ""
        seeds = sum(len(job.to_train) for job in self.training)
        text = f"training {some(len(self.training), 'run')} with {some(seeds, 'seed')} in all"
        if not self.seconds:
            return f"{text}; how long that takes the first ones will tell: nothing like them is published or trained here"
        text += f": {self.sentence(cores)}, {self._sources()}{self._then()}"
        return text + (f", and {some(len(self.unknown), 'run')} of unknown length" if self.unknown else "")

    @property
    def long(self) -> bool:
        """Whether a seed takes more than LONG_S, as far as that is known."""
        return max(self.seconds.values(), default=0.0) > LONG_S

    def spare(self, cores: int | None, workers: int) -> str:
        """Says how idle cores can share the work of the runs; "" without idle cores, or if no seed takes long."""
        cores_each = (cores or 0) // max(1, len(self.training))
        if self.device == "cuda" or cores_each <= workers or not self.long:
            return ""
        effect = f"shares out the clients of each among {cores_each} processes and changes no result"
        return f"{some(len(self.training), 'run')} for {cores} cores: `workers: {cores_each}` in params.yaml {effect}"

    def unpublishable(self) -> str:
        """Says why results that take long could not be published; "" if they could, or if no seed takes long."""
        why = checkout.objection() if self.long else None
        return f"what these sources train cannot be published: {why}" if why else ""

    def _sources(self) -> str:
        """`by published runs`, or by those of this folder; and how much longer these took than published ones."""
        configs = [job.run["config"] for job in self.training if job.run["run_id"] in self.seconds]
        published = [config for config in configs if self.rates.published(config, self.device)]
        sources = ["published runs"] * bool(published) + ["runs trained here"] * (len(published) < len(configs))
        factors = {config["model"]: f"{self.rates.slower(config['model'], self.device):.1f}" for config in published}
        slower_models = [f"{model} takes {factor} times as long" for model, factor in factors.items() if factor != "1.0"]
        return f"by {' and '.join(sources)}" + (f" ({', '.join(slower_models)} here)" if slower_models else "")

    def _then(self) -> str:
        return f", then about {duration(self.measuring)} to measure kept models" if self.measuring else ""

    def sentence(self, cores: int | None, command: str = "") -> str:
        """`about 3.2 core-hours, 1 h 40 min with 2 cores`; below an hour in minutes or seconds. `command` has the cores."""
        timed_jobs = [job for job in self.training if job.run["run_id"] in self.seconds]
        job_seconds = [START_S + self.seconds[job.run["run_id"]] * len(job.to_train) for job in timed_jobs]
        if self.device == "cuda":
            return f"about {duration(sum(job_seconds))} on the GPU, one run after another"
        hours = sum(job_seconds) / 3600
        total = f"{duration(sum(job_seconds))} on one core" if hours < 1 else f"{hours:.1f} core-hours"
        if hours >= 100:  # no more digits than the forecast is good for
            total = f"{float(f'{hours:.3g}'):,.0f} core-hours"
        if cores is None or (1 in (cores, len(job_seconds)) and sum(job_seconds) < 3600):
            return f"about {total}"
        with_ = f"{command}{cores}" if command else some(cores, "core")
        return f"about {total}, {duration(makespan(job_seconds, cores))} with {with_}"

    def _runs(self, jobs: list[Job]) -> list[str]:
        """Returns what the runs share, a heading, and a line for each run: the settings that differ, the seeds to train, how
        long each of them takes, those that have a checkpoint, and those that are kept."""
        if not jobs:
            return []
        configs = [job.run["config"] for job in jobs]
        times = {run_id: duration(seconds) for run_id, seconds in self.seconds.items()}
        work = {
            "train seeds": [", ".join(map(str, job.to_train)) for job in jobs],
            "each": [times.get(job.run["run_id"], "unknown time") if job.to_train else "" for job in jobs],
            "begun": [", ".join(map(str, job.begun)) for job in jobs],
            "kept seeds": [_kept(job.kept) for job in jobs],
        }
        table = columns(configs) | {heading: texts for heading, texts in work.items() if any(texts)}
        rows = [(*table,), *zip(*table.values(), strict=True)]
        return [f"all have {shared(configs)}", "", *aligned(rows, left=range(len(table))), ""]


def _kept(kept: dict[int, str]) -> str:
    """`8, 9 (evidence), 10 (receipt)`."""
    seeds_by_state = grouped((state, str(seed)) for seed, state in kept.items())
    return ", ".join(f"{', '.join(seeds)} ({state})" for state, seeds in seeds_by_state.items())


def available_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def makespan(seconds: list[float], slots: int) -> float:
    """Returns the seconds until all jobs are done, `slots` at a time, the longest first."""
    ends = [0.0] * max(1, slots)
    for job in sorted(seconds, reverse=True):
        heapq.heapreplace(ends, ends[0] + job)
    return max(ends)
