"""A GPU whose memory is full: the same seeds once more, in smaller chunks of clients."""

from collections.abc import Iterator, Sequence
from typing import Any

from fedrepro.console import say
from fedrepro.engine import memory
from fedrepro.engine.loop import Outcome, train_together
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.lazy import torch
from fedrepro.methods.compose import Method


def train_in_chunks(
    title: str, tasks: Sequence[Task], method: Method, **each: Sequence[Any] | None
) -> Iterator[tuple[Task, Outcome]]:
    """`train_together`. Where memory is full it says so, and goes on from the last checkpoints with half as many clients at a
    time: last digits move, as on another card. `each`: checkpoints, reports and keepers, one of each for a task.

    UserError when one client alone does not fit.
    """
    left, chunk_mib = list(range(len(tasks))), None
    while left:
        now, full = list(left), False
        how = {name: of and [of[i] for i in now] for name, of in each.items()}
        try:
            for place, outcome in train_together([tasks[i] for i in now], method, chunk_mib=chunk_mib, **how):
                left.remove(now[place])
                yield tasks[now[place]], outcome
        except torch.OutOfMemoryError:  # what it holds of the failed step goes with it
            full = True
        if full:
            torch.cuda.empty_cache()
            chunk_mib = _smaller(title, chunk_mib, [tasks[i] for i in left])


def _smaller(title: str, chunk_mib: float | None, tasks: Sequence[Task]) -> float:
    """Memory of a chunk, in MiB, with half as many clients as there were at most."""
    task = tasks[0]
    clients = min(memory.rows_in(chunk_mib, task), sum(one.most_at_once for one in tasks))
    if clients == 1:
        raise UserError(
            f"{title}: the GPU's memory is full with one client at a time; take a card with more, or a smaller batch_size, or "
            "set device: cpu in params.yaml"
        )
    smaller = chunk_mib or memory.budget_mib(task.params.flat.device)
    while memory.rows_in(smaller, task) > clients // 2:
        smaller /= 2
    say(f"{title}: the GPU's memory is full with {clients} clients at once; going on with {memory.rows_in(smaller, task)}")
    return smaller
