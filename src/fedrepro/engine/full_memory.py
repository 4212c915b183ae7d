"""Trains seeds again in smaller chunks of clients after the GPU ran out of memory."""

import contextlib
import gc
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from fedrepro.console import say
from fedrepro.engine import memory, vectorised
from fedrepro.engine.loop import Outcome, train_together
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.lazy import torch
from fedrepro.methods.compose import Method

ADVICE = "take a card with more, or set device: cpu in params.yaml"


def train_in_chunks(
    title: str, tasks: Sequence[Task], method: Method, smaller: dict[int, int], **per_task: Sequence[Any] | None
) -> Iterator[tuple[Task, Outcome]]:
    """`train_together`. If the clients do not fit into memory, it says so and continues from the last checkpoints with half as
    many clients at a time. That changes last digits, as another card does. `per_task`: checkpoints, reports and keepers, one of
    each per task.

    `smaller` receives seed -> clients at a time, for seeds that finished in smaller chunks. UserError if one client alone does
    not fit.
    """
    remaining, chunk_mib, clients = list(range(len(tasks))), None, 0
    while remaining:
        now, full = list(remaining), False
        arguments = {name: values and [values[i] for i in now] for name, values in per_task.items()}
        try:
            for place, outcome in train_together([tasks[i] for i in now], method, chunk_mib=chunk_mib, **arguments):
                remaining.remove(now[place])
                if clients:
                    smaller[tasks[now[place]].seed] = clients
                yield tasks[now[place]], outcome
        except torch.OutOfMemoryError as error:
            if not _of_clients(error):
                raise
            full = True
        if full:
            gc.collect()  # frees tensors of the failed step, which are in reference cycles
            torch.cuda.empty_cache()
            chunk_mib, clients = _half(title, chunk_mib, [tasks[i] for i in remaining])


@contextlib.contextmanager
def one_line(title: str) -> Iterator[None]:
    """Turns every other out-of-memory error into a UserError: in evaluation, the server's work, one client of the sequential
    engine."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise UserError(f"{title}: the GPU's memory is full; {ADVICE} ({' '.join(str(error).split())[:200]})") from error


def _of_clients(error: BaseException) -> bool:
    """Whether the error comes from the stacked training of clients."""
    codes = [method.__code__ for method in (vectorised._Chunk.__init__, vectorised._Chunk.train)]
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def _half(title: str, chunk_mib: float | None, tasks: Sequence[Task]) -> tuple[float, int]:
    """Returns a chunk's memory in MiB for at most half as many clients as before, and their number."""
    task = tasks[0]
    clients = min(memory.clients_per_chunk(chunk_mib, task), sum(seed_task.most_at_once for seed_task in tasks))
    if clients == 1:
        raise UserError(f"{title}: the GPU's memory is full with one client at a time; {ADVICE}, or make batch_size smaller")
    smaller = chunk_mib or memory.budget_mib(task.params.flat.device)
    while memory.clients_per_chunk(smaller, task) > clients // 2:
        smaller /= 2
    fewer = memory.clients_per_chunk(smaller, task)
    say(f"{title}: the GPU's memory is full with {clients} clients at once; going on with {fewer}")
    return smaller, fewer
