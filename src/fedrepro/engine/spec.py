"""What a run is: every setting that decides its result, and nothing else. Plain values, so training needs no schema library."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from fedrepro.data import proxy as proxy_sets
from fedrepro.data.arrays import is_text
from fedrepro.data.artifact import floor_share
from fedrepro.data.participation import COHORTS
from fedrepro.engine import augment, schedule
from fedrepro.engine.schedule import DEFAULTS
from fedrepro.errors import UserError
from fedrepro.methods.proxy_sampling import SAMPLINGS
from fedrepro.registry import require

NORMALISATIONS = ("unit", "centred", "standard")
PRODUCTS = ("float32", "tf32", "bf16")


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One setting and one method, without seeds, device or number of workers. Fields are named as in params and tables."""

    dataset: str
    dataset_sha: str  # of the registry entry: another source of the data is another run
    input_shape: tuple[int, ...]  # C, H, W of the images as the model sees them, or T, the length of windows of text
    normalise: (
        str  # unit: a pixel in [0, 1], and text; centred: (x - 0.5) / 0.5; standard: by the training set's mean and deviation
    )
    classes: int
    model: str
    partition: str  # scheme with all its arguments
    clients: int  # n
    participation: float  # share of the clients that take part in a round, in (0, 1]
    local_validation: float  # share of each client's data held out from training, in [0, 1)
    proxy_per_class: int  # images of each class that the server holds, taken from the test set
    proxy_batch_size: int
    rounds: int
    local_epochs: int
    batch_size: int
    client_lr: float  # of round 0
    client_lr_decay: float  # factor per round of the schedule `exponential`
    client_momentum: float
    keep_client_momentum: bool  # a client continues with its momentum in its next round, instead of starting from zero
    weight_decay: float
    method: str  # canonical: every part with every argument
    # Later settings have a default. A default is left out of `as_dict` and of run_id, so that older results keep their names.
    channel_statistics: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # (mean, deviation) for normalise = standard
    # The precision of matmuls. Our choice: no paper says; reduced precision is faster and gives other results.
    # tf32: 10 bits, on a GPU, in everything that a run computes. bf16: 7 bits, in layers during training and in their outputs.
    products: str = "float32"
    cohorts: str = "drawn"  # for each round, or fixed: one for all rounds; late: drawn, and taken after all clients trained
    schedule: str = DEFAULTS["schedule"]  # of client_lr over the rounds, see `fedrepro.engine.schedule`
    augment: str = augment.NONE  # of training images, see `fedrepro.engine.augment`
    epochs: str = DEFAULTS["epochs"]  # the schedule of local_epochs over the rounds
    evaluate_every: int = 1  # rounds from one evaluation to the next; the last round is always evaluated
    evaluate_proxy: bool = False  # on the proxy set too; no client trains on it, and no test metric uses it

    evaluate_train: bool = False  # on the samples that clients train on too, without `augment`
    local_test: float = 0.0  # share of each client's held-out samples that are only used to test models on its data
    corrupted_clients: float = 0.0  # share of the clients that hold two classes with exchanged labels
    proxy: str = proxy_sets.BALANCED  # how many of proxy_per_class images the server holds; long_tailed: fewer of later classes
    proxy_sampling: str = SAMPLINGS[0]  # mini-batches of the proxy set: shuffled, or balanced over the classes

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_shape", tuple(self.input_shape))
        if self.channel_statistics is not None:
            object.__setattr__(self, "channel_statistics", tuple(map(tuple, self.channel_statistics)))
        for key in _AT_LEAST_ONE:
            require(getattr(self, key) >= 1, key, getattr(self, key), "must be at least 1")
        for key in ("client_lr", "client_lr_decay"):
            value = getattr(self, key)
            require(math.isfinite(value) and value > 0, key, value, "must be a number greater than 0")
        require(self.normalise in NORMALISATIONS, "normalise", self.normalise, f"must be one of {', '.join(NORMALISATIONS)}")
        require(self.products in PRODUCTS, "products", self.products, f"must be one of {', '.join(PRODUCTS)}")
        require(self.cohorts in COHORTS, "cohorts", self.cohorts, f"must be one of {', '.join(COHORTS)}")
        require(0 < self.participation <= 1, "participation", self.participation, "must be greater than 0 and at most 1")
        object.__setattr__(self, "augment", augment.canonical(self.augment))
        for key in ("schedule", "epochs"):
            text = schedule.canonical(schedule.of_method(getattr(self, key), key, self.method), key)
            schedule.phases(text, key, self.rounds)
            object.__setattr__(self, key, text)
        if is_text(self.input_shape):
            require(self.normalise == "unit", "normalise", self.normalise, "text has no pixels to be scaled; set it to unit")
            require(self.augment == augment.NONE, "augment", self.augment, "changes images, and this is text; set it to none")
        if self.participation == 1:  # every client in every round: one run, under one name
            object.__setattr__(self, "cohorts", COHORTS[0])
        require(0 <= self.local_validation < 1, "local_validation", self.local_validation, "must be at least 0 and below 1")
        require(0 <= self.client_momentum < 1, "client_momentum", self.client_momentum, "must be at least 0 and below 1")
        require(0 <= self.weight_decay < 1, "weight_decay", self.weight_decay, "must be at least 0 and below 1")
        require(self.proxy_per_class >= 0, "proxy_per_class", self.proxy_per_class, "must be at least 0")
        require(0 <= self.local_test <= 1, "local_test", self.local_test, "must be at least 0 and at most 1")
        self._check_proxy()
        self._check_corrupted()

    def _check_corrupted(self) -> None:
        key, share = "corrupted_clients", self.corrupted_clients
        require(0 <= share <= 1, key, share, "must be at least 0 and at most 1")
        require(not (share and is_text(self.input_shape)), key, share, "exchanges class labels, and this is text; set it to 0")
        require(not share or self.classes >= 2, key, share, "exchanges two classes, and there is one; set it to 0")
        rule = f"is less than one of {self.clients} clients; raise it, or set it to 0"
        require(not share or floor_share(share, self.clients) >= 1, key, share, rule)

    def _check_proxy(self) -> None:
        object.__setattr__(self, "proxy", proxy_sets.canonical(self.proxy))
        rule = f"must be one of {', '.join(SAMPLINGS)}"
        require(self.proxy_sampling in SAMPLINGS, "proxy_sampling", self.proxy_sampling, rule)
        for key in ("evaluate_proxy", "proxy", "proxy_sampling"):
            value = getattr(self, key)
            is_valid = self.proxy_per_class >= 1 or value == _defaults(type(self))[key]
            require(is_valid, key, value, "needs a proxy set; set proxy_per_class to at least 1")

    def client_lr_at(self, round: int) -> float:
        """The schedule's rate; by default client_lr * client_lr_decay^t, with round 0 undecayed (FedLAW, authors' code)."""
        return schedule.rate(self.schedule, self.client_lr, self.client_lr_decay, round, self.rounds)

    def local_epochs_at(self, round: int) -> int:
        """The number of epochs by the schedule `epochs`. By default local_epochs."""
        if self.epochs == DEFAULTS["epochs"]:
            return self.local_epochs
        return schedule.epochs(self.epochs, self.local_epochs, round, self.rounds)

    def evaluates(self, round: int) -> bool:
        """Whether the global model is evaluated after `round` (from 0)."""
        return (round + 1) % self.evaluate_every == 0 or round + 1 == self.rounds

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON, without settings at their default."""
        defaults = _defaults(type(self))
        return {key: _lists(value) for key, value in vars(self).items() if value != defaults[key]}

    @property
    def channel_scale(self) -> tuple[Sequence[float], Sequence[float]]:
        """(mean, deviation) that normalise pixels in [0, 1]: one value, or one per channel."""
        if self.normalise == "standard" and self.channel_statistics is None:
            raise UserError("normalise = 'standard': the run has no channel_statistics; they come from data/registry.yaml")
        return self.channel_statistics or (([0.0], [1.0]) if self.normalise == "unit" else ([0.5], [0.5]))


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, tuple) else value


@cache
def _defaults(spec: type[RunSpec]) -> dict[str, Any]:
    return {field.name: field.default for field in fields(spec)}


_AT_LEAST_ONE = ("classes", "clients", "rounds", "local_epochs", "batch_size", "proxy_batch_size", "evaluate_every")
