"""Memory and time that a cluster is asked for, from what published runs took. On one machine nothing is limited by it.

Of published seeds those with the same data set and model count; of these those on the same kind of device, with the same
method, and with about as much local work in a round, as far as there are any. Time goes with the rounds, and with more local
work too. All that is left out, such as another processor, is covered by a margin, and each further attempt is given more: a
seed goes on from its checkpoint.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fedrepro.files import read_json
from fedrepro.store import PUBLISHED

MARGIN_TIME, MARGIN_MEMORY = 2.0, 1.3
START_MINUTES, START_MIB = 10, 500  # to load the libraries and the data, on a node that has not done it before
# Seconds of a seed and MiB, where no run with that data set and model is published; and where a library brings its data.
UNKNOWN, EMBEDDED = (3600.0, 2000.0), (120.0, 1000.0)
SHORT_S = 600.0  # trainings below share a job


@dataclass(frozen=True)
class Needs:
    """What one attempt is given."""

    mem_mb: int
    minutes: int

    def at(self, attempt: int) -> "Needs":
        """What the attempt is given, counted from 1: each time as much again as the first."""
        return Needs(self.mem_mb * attempt, self.minutes * attempt)


@dataclass(frozen=True)
class Took:
    """What one published seed took."""

    method: str
    device: str
    work: float  # of a round, see `work`
    round_s: float
    mib: float


def of(seconds: float, mib: float, seeds: int, workers: int = 1) -> Needs:
    """What the first attempt at `seeds` seeds needs, one after another, where one takes `seconds` and `mib`. `workers`: its
    processes, each of which may have as much memory as the first, and may help less than hoped."""
    minutes = START_MINUTES + MARGIN_TIME * seconds * seeds / 60
    return Needs(math.ceil(START_MIB + MARGIN_MEMORY * mib * workers), math.ceil(minutes))


def seed(config: Mapping[str, Any], device: str = "cpu", root: Path = Path()) -> tuple[float, float] | None:
    """(seconds, MiB) of one seed, without margins: the most that a published one of its kind took; None where there is none."""
    found = published(root, config["dataset"], config["model"])
    if not found:
        return None
    for alike in (lambda took: took.device == device, lambda took: took.method == config["method"]):
        found = [took for took in found if alike(took)] or found
    own = work(config)
    nearest = min(abs(math.log(took.work / own)) for took in found)
    found = [took for took in found if abs(math.log(took.work / own)) <= nearest + 1e-9]
    return max(took.round_s * max(1.0, own / took.work) for took in found) * config["rounds"], max(took.mib for took in found)


def work(config: Mapping[str, Any]) -> float:
    """Passes over all training data in one round."""
    return config["local_epochs"] * config["participation"]


@cache
def published(root: Path, dataset: str, model: str) -> list[Took]:
    """What the published seeds with this data set and model took. Their folders' names begin with both: others stay unread."""
    found: list[Took] = []
    for scale in PUBLISHED:
        paths = Path(root).glob(f"reports/{scale}/*/evidence/{dataset}-{model}-*/seed*.json")
        found += [took for path in sorted(paths) for took in _read(path, dataset, model)]
    return found


def _read(path: Path, dataset: str, model: str) -> list[Took]:
    """Nothing where the file is damaged: reading it for its results says what is wrong."""
    try:
        record = read_json(path)
        config, cost = record["config"], record["cost"]
        if (config["dataset"], config["model"]) != (dataset, model):
            return []
        device, rounds = record["environment"]["device"], len(record["curves"]["round"])
        return [Took(config["method"], device, work(config), cost["wall_s"] / rounds, cost["peak_rss_mib"])]
    except Exception:
        return []
