"""The time and memory of one seed of a run, estimated from published seeds, or else from seeds trained in this folder.

Only seeds count that trained the same network on samples of the same shape. Among them the estimate prefers, in this order: the
same kind of device, precision, data set and batch size; all parts of the method, with any arguments and perhaps more parts; the
nearest amount of client work in a round; the same processor. A preference that no seed meets is skipped. Time is proportional
to work and rounds (our choice). This folder's own trainings correct for another processor.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.data.arrays import ARRAYS, MANIFEST
from fedrepro.data.participation import cohort_size
from fedrepro.diagnostics.diagnostic import make
from fedrepro.engine import schedule
from fedrepro.engine.receipts import RUNS
from fedrepro.files import read_json
from fedrepro.methods.presets import DEFAULTS
from fedrepro.registry import named_arguments, parse
from fedrepro.store import published_folders

if TYPE_CHECKING:
    from fedrepro.data.registry import Entry

FARTHEST = 20.0  # times as much work, or as little: beyond, costs that do not grow with the work decide
EVALUATED = 1 / 3  # of the training time of a sample: an evaluation has no backward pass
LONG_S = 30.0  # shorter trainings measure their start and other load on the machine, not the processor

ALIKE = ("products", "dataset", "batch_size")  # settings in order of preference; the method follows


@dataclass(frozen=True)
class Took:
    """What one seed took."""

    config: dict[str, Any]
    device: str
    work: float  # of a round, see `Rates.work`
    round_s: float  # seconds of one core, at most: wall time times workers
    mib: float  # of one process, in the mean over its workers
    processor: str | None = None


class Rates:
    """Rates by the evidence below `root`. `registry`: the data sets, which tell how many samples there are. `processor`: that
    of the machine that will train, spelt as in evidence; None if any machine may train."""

    def __init__(self, root: Path, registry: "Mapping[str, Entry]", processor: str | None = None) -> None:
        self.root, self.registry, self.processor = Path(root), registry, processor
        self._by_network: dict[tuple[str, bool], list[Took]] = {}
        self._nearest: dict[tuple, list[Took]] = {}
        self._slower: dict[tuple[str, str], float] = {}

    def seconds(self, config: Mapping[str, Any], device: str = "cpu") -> float | None:
        """Returns how long a seed of a run with this `config` trains: see `published`, and `slower`; by this folder's own
        trainings where nothing like it is published for such a device. None where nothing like it was trained here either."""
        if published_s := self.published(config, device):
            return published_s * self.slower(config["model"], device)
        return self._fast(config, device, local=True)

    def slower(self, model: str, device: str = "cpu") -> float:
        """Returns the ratio of a network's training time in this folder to `published`: the smallest ratio of the trainings for
        which `published` gives LONG_S or more; 1 without any."""
        key = (model, device)
        if key not in self._slower:
            local_seeds = [took for took in self._seeds_of(model, local=True) if took.device == device]
            with_published = [(took, self.published(took.config, device)) for took in local_seeds]
            ratios = (took.round_s * took.config["rounds"] / s for took, s in with_published if s and s >= LONG_S)
            self._slower[key] = min(ratios, default=1.0)
        return self._slower[key]

    def published(self, config: Mapping[str, Any], device: str) -> float | None:
        """Returns the seconds of a seed by the lower quartile of similar published seeds, since other load on a machine only
        adds time. None without such seeds."""
        return self._fast(config, device, local=False)

    def _fast(self, config: Mapping[str, Any], device: str, local: bool) -> float | None:
        work = self.work(config)
        alike = [took for took in self.alike(config, device, local) if took.device == device]
        if not alike or not work:
            return None
        round_times = sorted(took.round_s * work / took.work for took in alike)
        return round_times[len(round_times) // 4] * config["rounds"]

    def measuring(self, config: Mapping[str, Any], call: str, device: str = "cpu") -> float | None:
        """Seconds that a diagnostic takes on one kept round of a seed: evaluations alone. None where nothing like the run is
        known."""
        training_s, work = self.seconds(config, device), self.work(config)
        if training_s is None or not work:
            return None
        train, test = image_counts(self.root, self.registry[config["dataset"]]) or (0, 0)
        proxy = config.get("proxy_per_class", 0) * config.get("classes", 0)
        counts = {"train": int(train * (1 - config["local_validation"])), "test": test - proxy}
        clients = cohort_size({"ratio": config["participation"], "clients": config["clients"]})
        samples = 0
        for evaluation in make(call).passes(clients):
            count = counts[evaluation.on]
            samples += evaluation.models * min(evaluation.samples or count, count)
        return samples * EVALUATED * training_s / (work * config["rounds"])

    def at_most(self, config: Mapping[str, Any], device: str = "cpu") -> tuple[float, float] | None:
        """Returns (seconds, MiB) of a seed: the maximum over similar seeds, not reduced if this seed has less work."""
        work = self.work(config)
        if not work or not (alike := self.alike(config, device)):
            return None
        round_s = max(took.round_s * max(1.0, work / took.work) for took in alike)
        return round_s * config["rounds"], max(took.mib for took in alike)

    def alike(self, config: Mapping[str, Any], device: str, local: bool = False) -> list[Took]:
        """Returns the published seeds that are nearest to a run; with `local` those of this folder."""
        work, shape = self.work(config), [*config["input_shape"]]
        key = (local, device, work, config["model"], config["method"], *shape, *(config.get(name) for name in ALIKE))

        def far(took: Took) -> float:
            return abs(math.log((took.work - _served(took.config)) / ((work or 1) - _served(config))))

        if key not in self._nearest:
            nearest_seeds = self._seeds_of(config["model"], local) if work else []
            nearest_seeds = [took for took in nearest_seeds if took.config["input_shape"] == shape]
            nearest_seeds = [took for took in nearest_seeds if far(took) <= math.log(FARTHEST)]
            nearest_seeds = [took for took in nearest_seeds if took.device == device] or nearest_seeds
            for name in ALIKE:
                nearest_seeds = [took for took in nearest_seeds if took.config.get(name) == config.get(name)] or nearest_seeds
            nearest_seeds = [took for took in nearest_seeds if _parts(config) <= _parts(took.config)] or nearest_seeds
            nearest = min(map(far, nearest_seeds), default=0.0)
            nearest_seeds = [took for took in nearest_seeds if far(took) <= nearest + 1e-9]
            same_processor = [took for took in nearest_seeds if self.processor and took.processor == self.processor]
            self._nearest[key] = same_processor or nearest_seeds
        return self._nearest[key]

    def work(self, config: Mapping[str, Any]) -> float | None:
        """Returns how many samples clients and server train on in a round, plus a third of those that it evaluates. None where
        their number is unknown."""
        entry = self.registry.get(config["dataset"])
        if not entry or not (counts := image_counts(self.root, entry)):
            return None
        train, test = counts[0] * (1 - config["local_validation"]), counts[1]
        evaluated = test + (train if config.get("evaluate_train") else 0)
        late = config.get("cohorts") == "late"  # then all clients train
        trained = train * (1 if late else config["participation"]) * _epochs(config)
        return trained + _served(config) + EVALUATED * evaluated / config.get("evaluate_every", 1)

    def _seeds_of(self, model: str, local: bool) -> list[Took]:
        if (model, local) not in self._by_network:
            folders = [self.root / RUNS] if local else published_folders(self.root)
            # The names of folders include the model: folders of other models are not read.
            paths = [path for folder in folders for path in folder.glob(f"*-{model}-*/seed*.json")]
            self._by_network[model, local] = [took for path in sorted(paths) for took in self._read(path, model)]
        return self._by_network[model, local]

    def _read(self, path: Path, model: str) -> list[Took]:
        """Returns [] for the run of another network, for a data set of unknown size, and for a damaged file, which the commands
        that read its results report."""
        try:
            record = read_json(path)
            config, cost, environment = record["config"], record["cost"], record["environment"]
            work = self.work(config) if config["model"] == model else None
            if not work:
                return []
            workers = environment.get("workers", 1)
            round_s = cost["wall_s"] * workers / len(record["curves"]["round"])
            mib, processor = cost["peak_rss_mib"] / workers, environment.get("processor")
            return [Took(config, environment["device"], work, round_s, mib, processor)]
        except Exception:
            return []


def _parts(config: Mapping[str, Any]) -> set[str]:
    """Returns the parts of a method beside FedAvg's: a run that has all of them, and maybe more, does at least as much."""
    return {call.name for call in parse(config["method"])} - {*DEFAULTS.values()}


def _served(config: Mapping[str, Any]) -> float:
    """Returns how many proxy samples the server trains on in a round, plus a third of those that it only evaluates."""
    proxy = config.get("proxy_per_class", 0) * config.get("classes", 0)
    cost = {"server_epochs": 1.0, "passes": EVALUATED}
    arguments = named_arguments(config["method"]).items()
    return proxy * sum(cost[name] * value for key, value in arguments if (name := key.rpartition(".")[2]) in cost)


def _epochs(config: Mapping[str, Any]) -> float:
    """Returns the local epochs of a round, in the mean over all rounds."""
    local, rounds = config["local_epochs"], config["rounds"]
    if "epochs" not in config:
        return local
    return sum(schedule.epochs(config["epochs"], local, round, rounds) for round in range(rounds)) / rounds


def image_counts(root: Path, entry: "Entry") -> tuple[int, int] | None:
    """Returns (training, test) samples of a data set, from the registry or from prepared arrays, or None."""
    if entry.images is not None:
        return entry.images
    for path in sorted((Path(root) / ARRAYS / entry.name).glob(f"*/{MANIFEST}")):
        counts = read_json(path)["counts"]
        return counts["train"], counts["test"]
    return None
