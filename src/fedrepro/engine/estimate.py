"""How long a run will take on this device, from rates measured here and now on random images: no data is needed, none is drawn.

A run's time is taken as rounds x (local training + server + evaluation). A local step costs an overhead and a share for each
image; a server's round costs a part that does not depend on its passes over the proxy set, and one for each pass. Both are
measured on the run's own model and method, by the sequential engine: an upper bound on a GPU, where the vectorised one trains
all seeds at once. What clients do on held-out samples, as `probe` and `personalise` have it, costs an overhead a batch and a
share for each sample likewise. Our choice; start-up and reading data are left out.
"""

import heapq
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from fedrepro.data import participation
from fedrepro.data.arrays import ARRAYS, MANIFEST
from fedrepro.data.registry import Entry
from fedrepro.engine.bench import PASSES, Bench
from fedrepro.engine.evaluate import BATCH
from fedrepro.engine.spec import RunSpec
from fedrepro.files import read_json
from fedrepro.methods.compose import compose
from fedrepro.methods.parts import PARTS

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
    _gradients: dict[tuple, int] = field(default_factory=dict)  # of a local step, by the keys of `_steps`
    _forwards: dict[tuple, float] = field(default_factory=dict)
    _servers: dict[tuple, Affine] = field(default_factory=dict)

    def seconds(self, spec: RunSpec, train_images: int, test_images: int) -> float:
        """Seconds that one seed of `spec` will train, for a data set with so many images."""
        bench = Bench.of(spec, compose(spec.method), self.device, self.engine)
        proxy = spec.proxy_per_class * spec.classes
        cohort = participation.cohort_size({"ratio": spec.participation, "clients": spec.clients})
        epochs = sum(map(spec.local_epochs_at, range(spec.rounds))) / spec.rounds
        images = train_images * (1 - spec.local_validation) * cohort / spec.clients * epochs
        steps = images / spec.batch_size + cohort * epochs / 2  # each epoch of a client ends with a part of a batch
        step = self._step(bench)
        local = steps * step.overhead + images * step.each
        evaluations = math.ceil(spec.rounds / spec.evaluate_every)
        each_time = test_images - (0 if spec.evaluate_proxy else proxy)
        each_time += train_images * (1 - spec.local_validation) if spec.evaluate_train else 0
        evaluated = evaluations * each_time * self._forward(bench)
        round_s = local + self._server(bench, cohort, proxy, step) + self._probed(bench, cohort, train_images, step)
        return spec.rounds * round_s + evaluated + evaluations * self._personalised(bench, train_images, step)

    def measuring(self, spec: RunSpec, calls: Iterable[str], rounds: int, train_images: int, test_images: int) -> float:
        """Seconds that diagnostics take on the models of so many kept `rounds` of one seed: forward passes alone."""
        import fedrepro.diagnostics  # noqa: F401  (registers them)
        from fedrepro.diagnostics.diagnostic import make

        cohort = participation.cohort_size({"ratio": spec.participation, "clients": spec.clients})
        counts = {"test": test_images - spec.proxy_per_class * spec.classes}
        counts["train"] = int(train_images * (1 - spec.local_validation))
        passes = [one for call in calls for one in make(call).passes(cohort)]
        images = sum(one.models * min(one.samples or counts[one.on], counts[one.on]) for one in passes)
        if not images:
            return 0.0
        return rounds * images * self._forward(Bench.of(spec, compose(spec.method), self.device, self.engine))

    def _probed(self, bench: "Bench", cohort: int, train_images: int, step: Affine) -> float:
        """Seconds of what a cohort measures on its held-out samples."""
        if not bench.method.probing:
            return 0.0
        images = train_images * bench.spec.local_validation * (1 - bench.spec.local_test) * cohort / bench.spec.clients
        each = self._of_batches(bench, "probes", step)
        return (images / bench.spec.batch_size + cohort / 2) * each.overhead + images * each.each

    def _personalised(self, bench: "Bench", train_images: int, step: Affine) -> float:
        """Seconds until every client has its own model, from one epoch, and that and the global one are evaluated on its own
        test samples."""
        held_out = train_images * bench.spec.local_validation
        tested = held_out * (bench.spec.local_test or 1.0) * self._forward(bench)
        globally = tested if bench.spec.local_test else 0.0
        if not bench.method.personalises:
            return globally
        images, each = train_images - held_out, self._of_batches(bench, "personal", step)
        batches = images / bench.spec.batch_size + bench.spec.clients / 2
        return globally + batches * each.overhead + images * each.each + tested

    def _of_batches(self, bench: "Bench", what: str, step: Affine) -> Affine:
        """Seconds of what a client does with a batch besides training; once time is up, those of a local step."""
        key = (what, *bench.model_key, bench.spec.batch_size, str(bench.method))
        if key not in self._steps and self.spent_s >= self.limit_s:
            return step
        if key not in self._steps:
            large = bench.spec.batch_size
            small = min(large, max(bench.model.smallest_batch, large // 8))
            few, all_s = (self._timed(getattr(bench, what)(size)) for size in (small, large))
            self._steps[key] = Affine.through((small, few), (large, all_s))
        return self._steps[key]

    def _step(self, bench: "Bench") -> Affine:
        """Seconds of a local step by its images. What an image costs in a gradient is the model's, the overhead is the client
        rule's, and so is the number of gradients.

        Once time is up, another rule's overhead serves.
        """
        alike = (*bench.model_key, bench.spec.batch_size)
        key = (*alike, str(PARTS.canonical(bench.method.client)))
        if key not in self._steps:
            other = next((self._with(known, bench) for known in self._steps if known[:-1] == alike), None)
            if other and self.spent_s >= self.limit_s:
                return other
            large = bench.spec.batch_size
            small = min(large, max(bench.model.smallest_batch, large // 8))
            small_s = self._one_step(bench, small)
            large_s = small_s + (large - small) * other.each if other else self._one_step(bench, large)
            self._steps[key] = Affine.through((small, small_s), (large, large_s))
            self._gradients[key] = bench.method.client.gradients_per_step
        return self._steps[key]

    def _with(self, known: tuple, bench: "Bench") -> Affine:
        """The step of another rule, with as many gradients as this method's rule takes."""
        step, times = self._steps[known], bench.method.client.gradients_per_step / self._gradients[known]
        return Affine(step.overhead * times, step.each * times)

    def _one_step(self, bench: "Bench", size: int) -> float:
        alone = self._timed(bench.steps(size, 1))
        return alone if alone > 0.05 else self._timed(bench.steps(size, 4)) / 4  # as a client takes several a round

    def _forward(self, bench: "Bench") -> float:
        """Seconds an image in evaluation mode, in batches as large as they will be, or as a tenth of a second allows."""
        if bench.model_key not in self._forwards:
            few = self._timed(bench.forward(64)) / 64
            count = min(BATCH, max(64, int(0.1 / max(few, 1e-9))))
            self._forwards[bench.model_key] = self._timed(bench.forward(count)) / count
        return self._forwards[bench.model_key]

    def _server(self, bench: "Bench", cohort: int, proxy: int, step: Affine) -> float:
        """Seconds of the server in one round; once time is up, those of its passes alone, each like local training."""
        passes = max((getattr(part, key, 0) for part in bench.method.parts for key in PASSES), default=0)
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
