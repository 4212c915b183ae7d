"""How long a run will take on this device, from rates measured here and now on random images: no data is needed, none is drawn.

A run's time is taken as rounds x (local training + server + evaluation). A local step costs an overhead and a share for each
image; a server's round costs a part that does not depend on its passes over the proxy set, and one for each pass. Both are
measured on the run's own model and method, by the sequential engine: an upper bound on a GPU, where the vectorised one trains
all seeds at once. Our choice; start-up, reading data and what clients do on held-out samples are left out.
"""

import dataclasses
import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedrepro import rng, tree
from fedrepro.data import participation
from fedrepro.data.arrays import ARRAYS, MANIFEST
from fedrepro.data.registry import Entry
from fedrepro.engine.batches import side_by_side
from fedrepro.engine.evaluate import BATCH, predict
from fedrepro.engine.local import FORMS, LocalResult, TrainingNetwork
from fedrepro.engine.spec import RunSpec
from fedrepro.files import read_json
from fedrepro.methods.compose import Method, ServerState, compose
from fedrepro.methods.parts import PARTS
from fedrepro.models import Model, build, initial
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Cohort, ServerContext, Solver

# Arguments of parts that count passes over the proxy set.
_PASSES = ("server_epochs", "passes")
# The fewest passes that are measured; more tell what one of them costs.
_FEW, _SOME = 2, 4


@dataclass(frozen=True)
class Affine:
    """Seconds of `amount` things: overhead + amount * each."""

    overhead: float
    each: float

    @classmethod
    def through(cls, small: tuple[int, float], large: tuple[int, float]) -> "Affine":
        """Through two measured points (amount, seconds); noise never makes either part negative."""
        each = max(0.0, (large[1] - small[1]) / (large[0] - small[0])) if large[0] > small[0] else large[1] / large[0]
        return cls(max(0.0, large[1] - large[0] * each), each)

    def seconds(self, amount: float) -> float:
        """overhead + amount * each."""
        return self.overhead + amount * self.each


@dataclass
class Rates:
    """Measures what runs need, each thing once. `limit_s`: after so many seconds of measuring the rest is derived from steps.

    Measures with the threads of this process: `environment.prepare` comes first.
    """

    device: str = "cpu"
    engine: str = "sequential"
    limit_s: float = 30.0
    spent_s: float = 0.0
    _steps: dict[tuple, Affine] = field(default_factory=dict)
    _forwards: dict[tuple, float] = field(default_factory=dict)
    _servers: dict[tuple, Affine] = field(default_factory=dict)

    def seconds(self, spec: RunSpec, train_images: int, test_images: int) -> float:
        """Seconds that one seed of `spec` will train, for a data set with so many images."""
        bench = _Bench.of(spec, compose(spec.method), self.device, self.engine)
        proxy = spec.proxy_per_class * spec.classes
        cohort = participation.cohort_size({"ratio": spec.participation, "clients": spec.clients})
        epochs = sum(map(spec.local_epochs_at, range(spec.rounds))) / spec.rounds
        images = train_images * (1 - spec.local_validation) * cohort / spec.clients * epochs
        steps = images / spec.batch_size + cohort * epochs / 2  # each epoch of a client ends with a part of a batch
        step = self._step(bench)
        local = steps * step.overhead + images * step.each
        evaluations = math.ceil(spec.rounds / spec.evaluate_every)
        evaluated = evaluations * (test_images - proxy) * self._forward(bench)
        return spec.rounds * (local + self._server(bench, cohort, proxy, step)) + evaluated

    def _step(self, bench: "_Bench") -> Affine:
        """Seconds of a local step by its images. What an image costs is the model's, the overhead is the client rule's.

        Once time is up, another rule's overhead serves.
        """
        alike = (*bench.model_key, bench.spec.batch_size)
        key = (*alike, str(PARTS.canonical(bench.method.client)))
        if key not in self._steps:
            other = next((step for known, step in self._steps.items() if known[:-1] == alike), None)
            if other and self.spent_s >= self.limit_s:
                return other
            large = bench.spec.batch_size
            small = min(large, max(bench.model.smallest_batch, large // 8))
            small_s = self._one_step(bench, small)
            large_s = small_s + (large - small) * other.each if other else self._one_step(bench, large)
            self._steps[key] = Affine.through((small, small_s), (large, large_s))
        return self._steps[key]

    def _one_step(self, bench: "_Bench", size: int) -> float:
        alone = self._timed(bench.steps(size, 1))
        return alone if alone > 0.05 else self._timed(bench.steps(size, 4)) / 4  # as a client takes several a round

    def _forward(self, bench: "_Bench") -> float:
        """Seconds an image in evaluation mode, in batches as large as they will be, or as a tenth of a second allows."""
        if bench.model_key not in self._forwards:
            few = self._timed(bench.forward(64)) / 64
            count = min(BATCH, max(64, int(0.1 / max(few, 1e-9))))
            self._forwards[bench.model_key] = self._timed(bench.forward(count)) / count
        return self._forwards[bench.model_key]

    def _server(self, bench: "_Bench", cohort: int, proxy: int, step: Affine) -> float:
        """Seconds of the server in one round; once time is up, those of its passes alone, each like local training."""
        passes = max((getattr(part, key, 0) for part in bench.method.parts for key in _PASSES), default=0)
        key = (*bench.model_key, cohort, proxy, bench.spec.proxy_batch_size, str(bench.method))
        if key not in self._servers:
            one = -(-proxy // bench.spec.proxy_batch_size) * step.overhead + proxy * step.each
            if self.spent_s >= self.limit_s:
                return passes * one
            few = self._timed(bench.server(cohort, proxy, _FEW))
            if passes > _FEW and few < self.limit_s / 20:
                some = self._timed(bench.server(cohort, proxy, _SOME))
                self._servers[key] = Affine.through((_FEW, few), (_SOME, some))
            else:
                self._servers[key] = Affine(max(0.0, few - min(passes, _FEW) * one), one)
        return self._servers[key].seconds(passes)

    def _timed(self, once: Callable[[], object]) -> float:
        began = time.perf_counter()
        seconds = fastest_seconds(once, self.device, self.limit_s / 100)
        self.spent_s += time.perf_counter() - began
        return seconds


def image_counts(root: Path, entry: Entry) -> tuple[int, int] | None:
    """(training, test) images of a data set, from the registry or else from arrays that are prepared; None: neither says."""
    if entry.images is not None:
        return entry.images
    for path in sorted((Path(root) / ARRAYS / entry.name).glob(f"*/{MANIFEST}")):
        counts = read_json(path)["counts"]
        return counts["train"], counts["test"]
    return None


def makespan(seconds: list[float], slots: int) -> float:
    """Seconds until all jobs are done, `slots` at a time, the longest first."""
    ends = [0.0] * max(1, slots)
    for job in sorted(seconds, reverse=True):
        heapq.heapreplace(ends, ends[0] + job)
    return max(ends)


def fastest_seconds(once: Callable[[], object], device: str, enough_s: float) -> float:
    """Seconds of the fastest call, after one that warms up: what disturbs a measurement only ever adds to it.

    On a CPU it is the processor's time, which other processes do not stretch. Calls of a second or more are not repeated.
    """
    taken: list[float] = []
    while len(taken) < 3 or sum(taken[1:]) < enough_s:
        began = _clock(device)
        once()
        taken.append(_clock(device) - began)
        if taken[0] >= 1:
            return taken[0]
    return min(taken[1:])


def _clock(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


@dataclass(frozen=True)
class _Bench:
    """The model and the method of a run on random images."""

    spec: RunSpec
    method: Method
    model: Model
    device: str
    engine: str

    @classmethod
    def of(cls, spec: RunSpec, method: Method, device: str, engine: str) -> "_Bench":
        return cls(spec, method, build(spec.model, spec.input_shape, spec.classes, spec.products), device, engine)

    @property
    def model_key(self) -> tuple:
        return self.spec.model, self.spec.input_shape, self.spec.classes, self.spec.products

    def steps(self, size: int, count: int) -> Callable[[], LocalResult]:
        """`count` local steps on a batch of `size` images, at a learning rate that moves nothing far."""
        if self.model.detects:
            import torchvision.ops  # noqa: F401  the seconds that this takes are no part of a step
        (params, buffers), data, rule = self._weights(), self._images(size), self.method.client
        ctx = ClientContext(
            network=TrainingNetwork(self.model, buffers, closed_form=self.engine != "plain", keys=Keys(torch.tensor(0))),
            anchor=params,
            client_lr=1e-6,
            num_steps=count,
            solver=rule.solver(Solver(self.spec.client_momentum, self.spec.weight_decay)),
            shared=rule.init_shared(params),
            own=rule.init_own(params),
        )
        index_B, into = torch.arange(size, device=self.device), torch.empty_like(params.flat)
        taken = lambda: (data.take(index_B) for _ in range(count))  # noqa: E731
        each = lambda: side_by_side(*(taken() for _ in range(rule.batches_per_step)))  # noqa: E731
        return lambda: FORMS[self.engine](rule, each() if rule.batches_per_step > 1 else taken(), ctx, into)

    def forward(self, count: int) -> Callable[[], Tensor]:
        """Evaluation of `count` images."""
        (params, buffers), data = self._weights(), self._images(count)
        return lambda: predict(self.model, params, buffers, data.x)

    def server(self, cohort: int, proxy: int, passes: int) -> Callable[[], ServerState]:
        """The server's part of one round, with at most `passes` over the proxy set."""
        method = _with_passes(self.method, passes)
        (params, buffers), message = self._weights(), self.steps(self.model.smallest_batch, 1)().message
        measuring = ClientContext(TrainingNetwork(self.model, buffers, train=False), params, 1e-6, 1)
        repeat = lambda one: tree.stack([one] * cohort)  # noqa: E731
        noise = torch.randn((cohort, params.layout.size), generator=torch.Generator().manual_seed(0)).to(self.device)
        share = torch.full((cohort,), 1 / cohort, device=self.device)
        arrived = Cohort(
            clients=list(range(cohort)),
            updates=params.like(noise * 1e-3),
            weights=share,
            num_steps=torch.ones_like(share),
            effective_steps=torch.ones_like(share),
            fraction=cohort / self.spec.clients,
            population=self.spec.clients,
            anchor=params,
            buffers=repeat(buffers),
            messages=None if message is None else repeat(message),
            probes={part.name: repeat(part.probe([], measuring)) for part in method.probing},
        )
        ctx = ServerContext(
            cohort=arrived,
            network=TrainingNetwork(self.model, buffers),
            predict=partial(predict, self.model),
            proxy=self._images(proxy) if proxy else None,
            rng=lambda purpose: rng.stream(0, purpose),
            round=0,
            rounds=self.spec.rounds,
            proxy_batch_size=self.spec.proxy_batch_size,
            smallest_batch=self.model.smallest_batch,
        )
        state = method.init(params, buffers)
        return lambda: method.apply(state, ctx)

    def _weights(self) -> tuple[Tree, Tree]:
        """(parameters, running statistics) as before round 0."""
        move = lambda flat: flat.to(self.device)  # noqa: E731
        return tree.map(move, initial.draw(self.model, 0)), tree.map(move, self.model.first_buffers())

    def _images(self, count: int) -> Batch:
        found = self.model.random(count, torch.Generator().manual_seed(0))
        return Batch(found.x.to(self.device), found.y.to(self.device))


def _with_passes(method: Method, passes: int) -> Method:
    """The method with at most so many passes over the proxy set, whatever its parts are."""

    def shorten(part: Any) -> Any:
        found = {key: min(passes, getattr(part, key)) for key in _PASSES if hasattr(part, key)}
        return dataclasses.replace(part, **found) if found else part

    slots: dict[str, Any] = {one.name: getattr(method, one.name) for one in dataclasses.fields(method)}
    short = {slot: tuple(map(shorten, part)) if isinstance(part, tuple) else shorten(part) for slot, part in slots.items()}
    return dataclasses.replace(method, **short)
