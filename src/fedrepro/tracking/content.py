"""What MLflow shows of a run at one seed, while it trains and when it has finished, and of the mean over its seeds. Pure.

`SeedContent`, `RunningContent` and `MeanContent` have the same properties; those that are only needed to write a run are
computed when asked for.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fedrepro.engine.fingerprints import Changed, comparable, listed
from fedrepro.engine.live import LiveState
from fedrepro.engine.records import Record
from fedrepro.engine.records import curves as curves_of
from fedrepro.exhibits.statistics import mean
from fedrepro.files import canonical_hash
from fedrepro.registry import named_arguments, parse
from fedrepro.tracking.planned_runs import FORMAT, PlannedRun

KEY, DIGEST, LIVE, PARENT = "fedrepro.run_key", "fedrepro.digest", "fedrepro.live", "mlflow.parentRunId"
COLOUR = "mlflow.runColor"
ORIGIN = "fedrepro.folder"  # in a shared store: the folder that wrote the run
ROUNDS = "fedrepro.rounds"  # rounds shown so far, of a run in training
REACHED = "fedrepro.reached"  # the time of the last of them, in ms
SCHEDULED = "client_lr"  # the same curve for every method: a setting, nothing to compare
# `accuracy/curve`; `accuracy/mean` is what a table shows, the mean over its last rounds, and `accuracy/std` the deviation over
# seeds. MLflow draws a section of charts for every prefix, by the alphabet, then other metrics, those of the system last.
CURVE, TABLE, SPREAD, COST = "curve", "mean", "std", "system/"
MEAN, ORDER, RETIRED = "mean of ", "order", "retired."  # before the order of a run that no table asks for any more
USUAL = "usual"  # the setting that needs no name
LEVEL = "level"  # of a run: `mean` over seeds, `seed`, or `trial`, a seed of a candidate that no table shows
TRIES = "tries"  # of a seed of any candidate: what it tries
NOTE = "mlflow.note.content"  # the description of a run or an experiment
# Keys of the tags that a sync writes: these, and what begins so.
OWN = {"paper", "scale", "tables", "method", "method_label", "setting", "seed", "status", "commit", "device", "code"}
OWN |= {LEVEL, ORDER, TRIES}
OWN_BEGINNINGS = ("fedrepro.", "mlflow.", "input.")

Point = tuple[str, float, int, int]  # metric, value, timestamp in ms, round (from 1)


@dataclass(frozen=True)
class SeedContent:
    """A run at one seed. `digest` changes when anything that is shown does."""

    wanted: PlannedRun
    path: Path  # of the receipt
    receipt: Record
    digest: str
    other: Changed  # parts whose code has changed since the training

    @property
    def key(self) -> str:
        return self.wanted.key

    @property
    def tags(self) -> dict[str, str]:
        """Every tag of a complete run but its parent."""
        environment, known = self.receipt["environment"], comparable(self.receipt.get("code"))
        code = f"other than today's: {listed(self.other.names)}" if self.other else "today's"
        tags = {
            "mlflow.source.git.commit": str(environment.get("commit")),
            "commit": str(environment.get("commit")) + (" (dirty)" if environment.get("dirty") else ""),
            "device": str(environment.get("device")),
            "code": code if known else "not recorded",
        }
        tags |= {TRIES: self.wanted.tried} if self.wanted.tried else {}
        tags |= {f"input.{kind}": value for kind, value in self.receipt["inputs"].items() if value}
        return _tags(self, self.wanted, self.receipt) | tags

    @property
    def parameters(self) -> dict[str, str]:
        """Every setting, and every argument of the method as `<part>.<argument>`."""
        return _parameters(self.receipt) | {"seed": str(self.wanted.seed)}

    @property
    def metrics(self) -> list[Point]:
        """Every finite value of every round, then what the tables show, then the cost."""
        return _points(curves([self.receipt]), _reported(self.wanted, self.receipt), _cost(self.receipt), self.span)

    @property
    def status(self) -> str:
        """The status as MLflow names it."""
        return "FINISHED" if self.receipt["status"] == "finished" else "FAILED"

    @property
    def span(self) -> tuple[int, int]:
        """Begin and end in ms."""
        return _milliseconds(self.receipt["cost"]["started_at"]), _milliseconds(self.receipt["cost"]["finished_at"])


@dataclass(frozen=True)
class MeanContent:
    """The mean over those seeds of a run that have finished; at least one. `planned`: how many seeds its table asks for."""

    seeds: tuple[SeedContent, ...]
    planned: int

    @property
    def key(self) -> str:
        return self.seeds[0].wanted.run_id

    @property
    def digest(self) -> str:
        return canonical_hash([FORMAT, self.planned, self.span, *(seed.digest for seed in self.seeds)], 32)

    @property
    def tags(self) -> dict[str, str]:
        """The tags of its seeds, without those of a single seed."""
        first, finished = self.seeds[0], len(self.seeds)
        share = f" ({finished} of {self.planned} seeds)" if finished < self.planned else ""
        tags = self._seed | {"mlflow.runName": f"{first.wanted.name}{share}", COLOUR: first.wanted.colour, LEVEL: "mean"}
        return _tags(self, first.wanted, first.receipt) | tags

    @property
    def parameters(self) -> dict[str, str]:
        return _parameters(self.seeds[0].receipt) | self._seed

    @property
    def metrics(self) -> list[Point]:
        """Means of rounds that every seed has; of what the tables show also the sample standard deviation."""
        receipts = [seed.receipt for seed in self.seeds]
        numbers = _of_all([_reported(seed.wanted, seed.receipt) for seed in self.seeds])
        reported = {name: mean(values) for name, values in numbers.items()}
        if len(receipts) > 1:
            spread = {name: statistics.stdev(values) for name, values in numbers.items()}
            reported |= {name.replace(f"/{TABLE}", f"/{SPREAD}"): value for name, value in spread.items()}
        cost = {name: mean(values) for name, values in _of_all([_cost(receipt) for receipt in receipts]).items()}
        return _points(curves(receipts), reported, cost, self.span)

    @property
    def status(self) -> str:
        """The status as MLflow names it."""
        return "FINISHED" if all(seed.status == "FINISHED" for seed in self.seeds) else "FAILED"

    @property
    def span(self) -> tuple[int, int]:
        """Ends with the last seed. The length, MLflow's Duration, is the mean of theirs: they may be days apart."""
        spans = [seed.span for seed in self.seeds]
        end = max(ended for _, ended in spans)
        return end - sum(ended - begun for begun, ended in spans) // len(spans), end

    @property
    def _seed(self) -> dict[str, str]:
        return {"seed": MEAN + ", ".join(str(seed.wanted.seed) for seed in self.seeds)}


@dataclass(frozen=True)
class RunningContent:
    """A run at one seed that trains: the rounds of its last checkpoint."""

    wanted: PlannedRun
    reached: LiveState

    status = "RUNNING"
    digest = ""  # none before it is complete

    @property
    def key(self) -> str:
        return self.wanted.key

    @property
    def tags(self) -> dict[str, str]:
        """The tags of the finished seed, as far as they are known."""
        tags = {ROUNDS: str(self.reached.rounds), REACHED: str(self.span[1])}
        return _tags(self, self.wanted, {"method": self.wanted.run.method}) | tags

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the finished seed."""
        run = self.wanted.run
        return _parameters({"config": run.config, "method": run.method}) | {"seed": str(self.wanted.seed)}

    @property
    def metrics(self) -> list[Point]:
        """Every finite value of every round so far."""
        record = {"curves": curves_of(self.reached.rows, self.reached.rounds)}
        return _points(curves([record]), {}, {}, self.span)

    @property
    def span(self) -> tuple[int, int]:
        """Begin, and the last checkpoint, in ms."""
        return _milliseconds(self.reached.started_at), _milliseconds(self.reached.written_at)


RunContent = SeedContent | MeanContent | RunningContent


def curves(receipts: list[Record]) -> dict[str, list[tuple[int, float]]]:
    """Metric -> (round from 1, mean over the receipts) wherever all of them have a value."""
    mean_curves: dict[str, list[tuple[int, float]]] = {}
    rounds = min((receipt["curves"]["round"] for receipt in receipts), key=len)
    for name in receipts[0]["curves"]:
        if name in ("round", SCHEDULED) or any(name not in receipt["curves"] for receipt in receipts):
            continue
        columns = zip(rounds, *(receipt["curves"][name] for receipt in receipts), strict=False)
        label = f"{name.removeprefix('test_')}/{CURVE}" if name.startswith("test_") else name
        mean_curves[label] = [(number + 1, mean(values)) for number, *values in columns if None not in values]
    return mean_curves


def by_people(tags: Mapping[str, str]) -> dict[str, str]:
    """Returns the tags of a run that people wrote: its description, and keys that no sync writes."""
    return {key: value for key, value in tags.items() if key == NOTE or not (key in OWN or key.startswith(OWN_BEGINNINGS))}


def _tags(run: "RunContent", planned: PlannedRun, receipt: Record) -> dict[str, str]:
    name = (str(planned.name), planned.tried if planned.trial else "", f"seed {planned.seed}")
    return {
        KEY: run.key,
        DIGEST: run.digest,
        LIVE: "true",
        "mlflow.source.name": "fedrepro",
        "paper": planned.paper,
        "scale": planned.scale or "none",
        "tables": ", ".join(sorted(planned.tables)) or "none",
        "method": receipt["method"],
        "method_label": planned.name.method,
        "setting": planned.name.setting or USUAL,
        "mlflow.runName": " · ".join(filter(None, name)),
        "seed": str(planned.seed),
        LEVEL: "trial" if planned.trial else "seed",
        COLOUR: planned.colour,
        ORDER: ".".join(f"{number:03}" for number in planned.place),
        "status": {"FINISHED": "finished", "FAILED": "diverged"}.get(run.status, "running"),
    }


def _parameters(receipt: Record) -> dict[str, str]:
    """Every setting, the arguments of the partition as `partition.alpha`, and those of the method as `fedprox.mu`."""
    (scheme,) = parse(receipt["config"]["partition"])
    partition_arguments = {f"partition.{key}": value for key, value in scheme.arguments.items()}
    settings = receipt["config"] | partition_arguments | named_arguments(receipt["method"])
    return {key: str(value) for key, value in settings.items()}


def _reported(planned: PlannedRun, receipt: Record) -> dict[str, float]:
    """Under the metric's own name, the number that the tables show; nothing of a run that diverged before it was read.

    Where tables read a metric at several rounds or average over different numbers of them, the first table's has the plain
    name, the others say where they end and how long they are. So do rounds to a target and jumps, always.
    """
    numbers: dict[str, float | None] = {}
    for reading in planned.reported:
        name = f"{reading.metric.removeprefix('test_')}/{TABLE}"
        if name in numbers or reading.derived:
            name += f"_{reading.short}"
        numbers[name] = reading.of(receipt)
    return {name: value for name, value in numbers.items() if value is not None}


def _of_all(numbers: list[dict[str, float]]) -> dict[str, list[float]]:
    """Name -> the values of all seeds, of the names that every seed has."""
    return {name: [own[name] for own in numbers] for name in numbers[0] if all(name in own for own in numbers)}


def _cost(receipt: Record) -> dict[str, float]:
    """The costs that people compare: time, memory, and bytes between server and clients."""
    cost = receipt["cost"]
    costs = {"wall_s": cost.get("wall_s"), "peak_mib": cost.get("peak_rss_mib")}
    if None not in (cost.get("bytes_up"), cost.get("bytes_down")):
        costs["mb_sent"] = (cost["bytes_up"] + cost["bytes_down"]) / 1e6
    return {name: float(value) for name, value in costs.items() if value is not None}


def _points(
    by_round: dict[str, list[tuple[int, float]]], reported: dict[str, float], cost: dict[str, float], span: tuple[int, int]
) -> list[Point]:
    """Timestamps assume that all rounds took equally long. A metric with one value has round 0, for which MLflow draws a bar
    instead of a line."""
    started, ended = span
    last = max((number for curve in by_round.values() for number, _ in curve), default=0)

    def time(number: int) -> int:
        return started + (ended - started) * number // last

    points = [(name, value, time(number), number) for name, curve in by_round.items() for number, value in curve]
    once = reported | {f"{COST}{name}": value for name, value in cost.items()}
    return points + [(name, round(value, 4), ended, 0) for name, value in once.items()]


def _milliseconds(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp).timestamp() * 1000)
