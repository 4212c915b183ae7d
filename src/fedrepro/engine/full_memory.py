"""A GPU whose memory is full: the same seeds once more, in smaller chunks of clients."""

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
    """`train_together`. Where clients do not fit it says so, and goes on from the last checkpoints with half as many at a time:
    last digits move, as on another card. `per_task`: checkpoints, reports and keepers, one of each for a task.

    `smaller`: takes how many clients at once a seed ended with, where they became fewer. UserError when one alone does not fit.
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
            gc.collect()  # what the failed step holds; parts of it refer to each other
            torch.cuda.empty_cache()
            chunk_mib, clients = _half(title, chunk_mib, [tasks[i] for i in remaining])


@contextlib.contextmanager
def one_line(title: str) -> Iterator[None]:
    """Makes a UserError of full memory in all else: evaluation, the server's work, one client of the sequential engine."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise UserError(f"{title}: the GPU's memory is full; {ADVICE} ({' '.join(str(error).split())[:200]})") from error


def _of_clients(error: BaseException) -> bool:
    """Whether it was raised while clients trained side by side."""
    code = vectorised._Chunk.train.__code__
    return any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))


def _half(title: str, chunk_mib: float | None, tasks: Sequence[Task]) -> tuple[float, int]:
    """Returns a chunk's memory, in MiB, for half as many clients as there were at most, and how many those are."""
    task = tasks[0]
    clients = min(memory.rows_in(chunk_mib, task), sum(seed_task.most_at_once for seed_task in tasks))
    if clients == 1:
        raise UserError(f"{title}: the GPU's memory is full with one client at a time; {ADVICE}, or make batch_size smaller")
    smaller = chunk_mib or memory.budget_mib(task.params.flat.device)
    while memory.rows_in(smaller, task) > clients // 2:
        smaller /= 2
    fewer = memory.rows_in(smaller, task)
    say(f"{title}: the GPU's memory is full with {clients} clients at once; going on with {fewer}")
    return smaller, fewer
