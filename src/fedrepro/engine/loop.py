"""The training loop: rounds, evaluation, checkpoints. It knows no method by name."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch

from fedrepro import rng, tree
from fedrepro.engine import checkpoint
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.evaluate import evaluate, predict
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.methods.compose import Method, ServerState
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often to save; `key` ties a file to one run, seed and set of inputs."""

    path: Path
    key: str
    every_s: float = 20.0


@dataclass(frozen=True)
class Outcome:
    """A finished seed. `status` is "diverged" when weights or loss stopped being finite: recorded as a result, not hidden."""

    params: Tree
    buffers: Tree
    progress: Progress
    status: str


def train(
    task: Task,
    method: Method,
    *,
    engine: str = "sequential",
    checkpoints: Checkpoints | None = None,
    report: Callable[[int, Progress], None] | None = None,
) -> Outcome:
    """Runs all rounds, from the last checkpoint if there is one, and evaluates the global model after each."""
    if "proxy" in method.needs and task.proxy is None:
        raise UserError(f"method {method}: needs a proxy set, but proxy_per_class = 0; set it to at least 1")
    for key in ("batch_size", *(["proxy_batch_size"] if "proxy" in method.needs else [])):
        if getattr(task.spec, key) < task.model.smallest_batch:
            raise UserError(
                f"{key} = 1: {task.model.name} has BatchNorm, which needs batches of at least 2; set it to 2 or more"
            )
    runner = SequentialEngine(task, method, engine)
    state = method.init(task.params, task.buffers)
    progress = Progress(0, [], 0.0, 0, datetime.now(UTC).isoformat(timespec="seconds"))
    saved = checkpoint.load(checkpoints.path, checkpoints.key) if checkpoints else None
    if saved:
        state, runner.own, progress = saved
    status, clock = "finished", _Clock(progress.wall_s)
    for round in range(progress.round, task.spec.rounds):
        state, notes, samples = _round(runner, state, round)
        notes |= evaluate(task.model, state.params, state.buffers, task.evaluation)
        progress.rows += [(round, name, value) for name, value in sorted(notes.items())]
        progress.round, progress.samples, progress.wall_s = round + 1, progress.samples + samples, clock.total()
        if report:
            report(round, progress)
        if not (math.isfinite(notes["test_loss"]) and torch.isfinite(state.params.flat).all()):
            status = "diverged"
            break
        if checkpoints and round + 1 < task.spec.rounds and clock.save_is_due(checkpoints.every_s):
            with clock.saving():
                checkpoint.save(checkpoints.path, checkpoints.key, state, runner.own, progress)
    return Outcome(state.params, state.buffers, progress, status)


def _round(runner: SequentialEngine, state: ServerState, round: int) -> tuple[ServerState, dict[str, float], int]:
    task = runner.task
    notes = {"client_lr": task.spec.client_lr_at(round)}
    cohort, samples = runner.run_cohort(state, round)
    if cohort is None:  # nobody in this cohort has training data: the global model stays
        return state, notes, 0
    ctx = ServerContext(
        network=TrainingNetwork(task.model, state.buffers),
        predict=partial(predict, task.model),
        proxy=task.proxy,
        rng=lambda purpose: rng.stream(task.seed, f"server/{purpose}", round),
        round=round,
        rounds=task.spec.rounds,
        proxy_batch_size=task.spec.proxy_batch_size,
        smallest_batch=task.model.smallest_batch,
        notes=notes,
    )
    notes["update_norm"] = float(tree.norm(tree.weighted_sum(cohort.weights, cohort.updates)))
    return runner.method.apply(state, cohort, ctx), notes, samples


class _Clock:
    """Seconds spent over all attempts, and when to save: saving takes a twentieth of the time at most."""

    def __init__(self, before: float) -> None:
        self._before, self._start = before, time.monotonic()
        self._saved, self._took = self._start, 0.0

    def total(self) -> float:
        return self._before + time.monotonic() - self._start

    def save_is_due(self, every_s: float) -> bool:
        share = 20 * self._took if every_s else 0.0
        return time.monotonic() - self._saved >= max(every_s, share)

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self._saved = time.monotonic()
        self._took = self._saved - begun
