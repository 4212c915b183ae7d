"""The training loop: rounds, evaluation, checkpoints. It contains no code for a particular method."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch

from fedrepro import rng, stopping, tree
from fedrepro.console import say
from fedrepro.engine import checkpoint, live, lockstep
from fedrepro.engine.checkpoint import Progress
from fedrepro.engine.client_side import local_test_metrics
from fedrepro.engine.clock import Clock
from fedrepro.engine.cohort import Clients
from fedrepro.engine.evaluate import predict
from fedrepro.engine.fork_point import ForkPoint, Saved, remember
from fedrepro.engine.kept import Keeper
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.task import Task
from fedrepro.engine.vectorised import VectorisedEngine, run_together
from fedrepro.errors import UserError
from fedrepro.methods.compose import LOSES_MESSAGES, Method, ServerState
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import Cohort, GradientRequest, ServerContext, Start


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often to save; `key` ties a file to one run, seed and set of inputs."""

    path: Path
    key: str
    every_s: float = 20.0
    forks: tuple[ForkPoint, ...] = ()  # states that other runs continue from, or from which this one may continue


@dataclass(frozen=True)
class Outcome:
    """A finished seed. `status` is "diverged" if weights or loss stopped being finite. That is a result too, and recorded."""

    params: Tree
    buffers: Tree
    progress: Progress
    status: str
    workers_mib: float = 0.0  # most memory of the worker processes; memory that they share counts for each


def train(
    task: Task,
    method: Method,
    *,
    engine: str = "sequential",
    workers: int = 1,
    checkpoints: Checkpoints | None = None,
    report: Callable[[int, Progress], None] | None = None,
    keeper: Keeper | None = None,
) -> Outcome:
    """Runs all rounds of one seed, from the last checkpoint if there is one, and evaluates the global model in the rounds that
    the setting names.

    `workers` processes share a round's clients on the sequential engine. `keeper` keeps the models of some rounds. Neither
    changes a bit of the result.
    """
    check(task, method)
    runner = make_engine(engine, task, method, workers=workers)
    seed = SeedRun.begin(runner, checkpoints, report, keeper)
    try:
        while not seed.status:
            with stoppable([seed]):
                round_result = runner.run_cohort(seed.state, seed.progress.round)
            seed.advance(*round_result)
    finally:
        runner.close()
    return replace(seed.outcome, workers_mib=runner.workers_mib)


def train_together(
    tasks: Sequence[Task],
    method: Method,
    *,
    checkpoints: Sequence[Checkpoints | None] | None = None,
    reports: Sequence[Callable[[int, Progress], None] | None] | None = None,
    keepers: Sequence[Keeper | None] | None = None,
    chunk_mib: float | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Trains several seeds of a run at once on the vectorised engine, like `train`. Yields (position in `tasks`, outcome) as
    they finish.

    The last bits of a seed depend on which seeds it trains with, and in which order. So all continue from the same round, or
    all start over. A seed's `wall_s` is its share of the time of the rounds in which it took part.
    """
    for task in tasks:
        check(task, method)
    defaults = [None] * len(tasks)
    options = checkpoints or defaults, reports or defaults, keepers or defaults
    engines, seeds = _begin_together(lambda: [VectorisedEngine(task, method, chunk_mib=chunk_mib) for task in tasks], *options)
    active_indices = list(range(len(tasks)))
    while True:
        for i in [i for i in active_indices if seeds[i].status]:
            active_indices.remove(i)
            yield i, seeds[i].outcome
        if not active_indices:
            return
        states, rounds = [seeds[i].state for i in active_indices], [seeds[i].progress.round for i in active_indices]
        with stoppable([seeds[i] for i in active_indices]):
            round_results = run_together([engines[i] for i in active_indices], states, rounds)
        jobs = [partial(seeds[i].serve, cohort) for i, (cohort, _) in zip(active_indices, round_results, strict=True)]
        without_lockstep = len(active_indices) == 1 or "proxy" not in method.needs
        notes = [job() for job in jobs] if without_lockstep else lockstep.run(jobs)
        for i in active_indices:
            seeds[i].clock.at_once = len(active_indices)
        for i, (_, samples), seed_notes in zip(active_indices, round_results, notes, strict=True):
            seeds[i].close_round(seed_notes, samples)
        save_due([seeds[i] for i in active_indices])


def _begin_together(
    make_engines: Callable[[], list[VectorisedEngine]], *options: Sequence
) -> tuple[list[VectorisedEngine], list["SeedRun"]]:
    """Makes the engines, which hold what clients keep, and the seeds. They start at the round of the checkpoints if all have
    the same one, otherwise at round 0."""
    engines = make_engines()
    seeds = [SeedRun.begin(*arguments) for arguments in zip(engines, *options, strict=True)]
    if len({seed.progress.round for seed in seeds}) > 1:
        seed_numbers = ", ".join(str(engine.task.seed) for engine in engines)
        say(f"seeds {seed_numbers} train together, and their checkpoints are of different rounds: all start over from round 0")
        engines = make_engines()
        seeds = [SeedRun.begin(*arguments, resume=False) for arguments in zip(engines, *options, strict=True)]
    return engines, seeds


def make_engine(name: str, task: Task, method: Method, workers: int = 1) -> SequentialEngine | VectorisedEngine:
    """The engine called `name`, for one seed."""
    if name == "vectorised":
        return VectorisedEngine(task, method)
    return SequentialEngine(task, method, name, workers=workers)


def check(task: Task, method: Method) -> None:
    """Raises a UserError if the setting lacks what the method or the model needs."""
    if "held_out" in method.needs and not any(map(len, task.held_out)):
        raise UserError(f"method {method}: needs held-out samples of clients, and they have none; raise local_validation")
    tests_locally = "local_test" in method.needs or task.spec.local_test > 0
    if tests_locally and not any(map(len, task.local_test)):
        source = f"local_test = {task.spec.local_test}" if task.spec.local_test else f"method {method}"
        raise UserError(f"{source}: tests models on held-out samples of clients, and there are none; raise local_validation")
    if tests_locally and task.model.detects:
        raise UserError(
            f"method {method}: evaluates models on clients' own samples by accuracy; {task.model.name} detects boxes"
        )
    if task.augmentation is not None and task.model.detects:
        raise UserError(f"augment = {task.spec.augment!r}: moves images and not the boxes in them; set it to none")
    if "proxy" in method.needs and task.proxy is None:
        raise UserError(f"method {method}: needs a proxy set, but proxy_per_class = 0; set it to at least 1")
    if "proxy" in method.needs and task.model.detects:
        raise UserError(
            f"method {method}: learns on a proxy set of class labels, but {task.model.name} detects boxes; leave it out"
        )
    if task.spec.cohorts == "late" and method.sends_own_changes:
        raise UserError(f"cohorts = 'late': {LOSES_MESSAGES.format(method.client.name)}")
    for key in ("batch_size", *(["proxy_batch_size"] if "proxy" in method.needs else [])):
        if getattr(task.spec, key) < task.model.smallest_batch:
            raise UserError(
                f"{key} = 1: {task.model.name} has BatchNorm, which needs batches of at least 2; set it to 2 or more"
            )


@dataclass
class SeedRun:
    """One seed and the state of its training."""

    runner: SequentialEngine | VectorisedEngine
    checkpoints: Checkpoints | None
    report: Callable[[int, Progress], None] | None
    keeper: Keeper | None
    state: ServerState
    progress: Progress
    clock: Clock
    status: str = ""  # finished or diverged, at the end

    @classmethod
    def begin(
        cls,
        runner: SequentialEngine | VectorisedEngine,
        checkpoints: Checkpoints | None,
        report: Callable[[int, Progress], None] | None,
        keeper: Keeper | None,
        resume: bool = True,
    ) -> "SeedRun":
        """Starts from the last checkpoint. Starts from round 0 if there is none or `resume` is False."""
        task = runner.task
        state = runner.method.init(task.params, task.buffers, start_of(task))
        progress = Progress(0, [], 0.0, 0, datetime.now(UTC).isoformat(timespec="seconds"))
        saved = _saved_state(runner, checkpoints, keeper) if checkpoints and resume else None
        if saved:
            state, runner.client_states, progress = saved
        seed_run = cls(runner, checkpoints, report, keeper, state, progress, Clock(progress.wall_s))
        seed_run.status = "finished" if progress.round == seed_run.rounds else ""
        return seed_run

    @property
    def rounds(self) -> int:
        """All rounds of the run, or fewer if the training only makes some models."""
        return (self.keeper and self.keeper.until) or self.runner.task.spec.rounds

    @property
    def forks(self) -> tuple[ForkPoint, ...]:
        """The points up to which other runs share rounds with this one."""
        return self.checkpoints.forks if self.checkpoints else ()

    @property
    def outcome(self) -> Outcome:
        """The result so far; `status` says whether it is complete."""
        return Outcome(self.state.params, self.state.buffers, self.progress, self.status)

    def advance(self, cohort: Cohort | None, samples: int) -> None:
        """Finishes a round after local training."""
        self.close_round(self.serve(cohort), samples)
        save_due([self])

    def serve(
        self, cohort: Cohort | None, answer_request: Callable[[GradientRequest], Tree] = GradientRequest.compute
    ) -> dict[str, float]:
        """Does the server's work and returns the notes on it."""
        task, round = self.runner.task, self.progress.round
        if self.keeper:
            self.keeper.meet(round, self.state, cohort)
        notes = {"client_lr": task.spec.client_lr_at(round)}
        if cohort is not None:  # otherwise no client has training data, and the global model stays
            notes["update_norm"] = float(tree.norm(tree.weighted_sum(cohort.weights, cohort.updates)))
            ctx = server_context(task, self.state, cohort, round, notes, answer_request)
            self.state = remember(self.forks, round, self.state.past, self.runner.method.apply(self.state, ctx))
            if self.keeper:
                self.keeper.add(ctx.diagnostics)
            for name, values_K in cohort.notes.items():
                for key, value in ((name, values_K.mean()), (f"{name}_min", values_K.min()), (f"{name}_max", values_K.max())):
                    notes[key] = float(value)
        return notes

    def close_round(self, notes: dict[str, float], samples: int) -> None:
        """Evaluates and records the round."""
        task, progress, round = self.runner.task, self.progress, self.progress.round
        finite = bool(torch.isfinite(self.state.params.flat).all())
        if task.spec.evaluates(round) or not finite:
            notes |= self.runner.evaluate(self.state)
            if self.runner.method.personalises or task.spec.local_test:
                notes |= local_test_metrics(Clients(task, self.runner.method, self.runner.client_states), self.state, round)
        progress.rows += [(round, name, value) for name, value in sorted(notes.items())]
        progress.round, progress.wall_s = round + 1, self.clock.total()
        progress.samples += samples
        if self.report:
            self.report(round, progress)
        if self.keeper:
            self.keeper.keep(round, self.state, progress.rows)
        if not (finite and math.isfinite(notes.get("test_loss", 0.0))):
            self.status = "diverged"
        elif progress.round == self.rounds:
            self.status = "finished"
        for point in self.forks:
            if point.round == progress.round and not self.status:
                point.save(self.runner.method, task.spec.rounds, self.state, self.runner.client_states, progress)


def _saved_state(runner: SequentialEngine | VectorisedEngine, checkpoints: Checkpoints, keeper: Keeper | None) -> Saved | None:
    """Where a seed continues: at its checkpoint, or at the end of the rounds that it shares with another run, whichever is
    later. Shared rounds count only if they end before the first round whose models it must keep."""
    device, rounds = runner.task.params.flat.device, runner.task.spec.rounds
    saved = checkpoint.load(checkpoints.path, checkpoints.key, device)
    start, limit = saved[2].round if saved else 0, min(keeper.rounds, default=rounds) if keeper else rounds
    for point in sorted(checkpoints.forks, key=lambda point: -point.round):
        if start < point.round < limit and point.path.exists() and (fork := point.load(runner.method, rounds, device)):
            return fork
    return saved


@contextlib.contextmanager
def stoppable(seeds: Sequence[SeedRun]) -> Iterator[None]:
    """Surrounds local training, which SIGTERM interrupts: saves the state before the round and raises `Stopped`."""
    states_before = [dict(seed.runner.client_states) for seed in seeds]  # values are replaced, never changed in place
    try:
        with stopping.at_once():
            yield
    except stopping.Stopped as error:
        for seed, client_states in zip(seeds, states_before, strict=True):
            seed.runner.client_states = client_states
        saved = save(seeds)
        reached_rounds = ", ".join(
            f"round {seed.progress.round} of {seed.rounds} (seed {seed.runner.task.seed})" for seed in seeds
        )
        raise stopping.Stopped(f"after {reached_rounds}", resumes=saved) from error


def save_due(seeds: Sequence[SeedRun]) -> None:
    """Saves if one of the seeds is due. All seeds save the same round, so that all can continue from it."""
    if any(seed.checkpoints and not seed.status and seed.clock.save_is_due(seed.checkpoints.every_s) for seed in seeds):
        save(seeds)


def save(seeds: Sequence[SeedRun]) -> bool:
    """Writes checkpoints of all seeds that have begun and are not finished. Returns whether there are any."""
    running_seeds = [seed for seed in seeds if seed.progress.round and not seed.status]
    seed_checkpoints = [(seed, seed.checkpoints) for seed in running_seeds if seed.checkpoints]
    if not seed_checkpoints:
        return False
    with contextlib.ExitStack() as clocks:
        for seed, _ in seed_checkpoints:
            clocks.enter_context(seed.clock.saving())
        first, *others = [
            (checkpoints.path, checkpoints.key, seed.state, seed.runner.client_states, seed.progress)
            for seed, checkpoints in seed_checkpoints
        ]
        checkpoint.save(*first, other_checkpoints=others)
        for seed, checkpoints in seed_checkpoints:
            live.write(checkpoints.path, seed.progress, checkpoints.every_s)
    return True


def start_of(task: Task) -> Start:
    """What a client rule reads before round 0."""
    return Start(TrainingNetwork(task.model, task.buffers), lambda purpose: rng.stream(task.seed, f"start/{purpose}"))


def server_context(
    task: Task,
    state: ServerState,
    cohort: Cohort,
    round: int,
    notes: dict[str, float],
    answer_request: Callable[[GradientRequest], Tree] = GradientRequest.compute,
) -> ServerContext:
    """The context that the server's parts read in `round`. They write into `notes`."""
    return ServerContext(
        cohort=cohort,
        network=TrainingNetwork(task.model, state.buffers, keys=_server_keys(task, round)),
        predict=partial(predict, task.model),
        proxy=task.proxy,
        rng=lambda purpose: rng.stream(task.seed, f"server/{purpose}", round),
        round=round,
        rounds=task.spec.rounds,
        proxy_batch_size=task.spec.proxy_batch_size,
        proxy_sampling=task.spec.proxy_sampling,
        smallest_batch=task.model.smallest_batch,
        notes=notes,
        answer_request=answer_request,
    )


def _server_keys(task: Task, round: int) -> Keys | None:
    """Keys of the dropout masks for the server's training. Each pass has its own mask."""
    if not task.model.dropout:
        return None
    base = int(rng.stream(task.seed, "server/dropout", round).integers(2**63))
    return Keys(torch.tensor(base, device=task.params.flat.device))
