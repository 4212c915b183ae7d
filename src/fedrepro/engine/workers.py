"""Worker processes inside one training: each takes some of a round's clients. For a run that has cores to itself.

They are forked once, after the data are loaded, and share them. Weights, the bulk of what goes to and fro, lie in memory that
all of them map; the rest goes through pipes by value.
"""

import contextlib
import ctypes
import dataclasses
import heapq
import mmap
import multiprocessing
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fedrepro.engine import environment
from fedrepro.engine.cohort import Trained
from fedrepro.errors import UserError
from fedrepro.methods.compose import ServerState

# Trains some clients: (ids, server state, round) -> their results, in that order.
Train = Callable[[list[int], ServerState, int], Trained]


_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux' prctl


class Workers:
    """`count` processes that call `train`, which reads what is kept of clients from `own`: it is sent each time."""

    def __init__(self, count: int, train: Train, own: dict[int, Any], first: ServerState, cohort: int) -> None:
        """`first` gives the layout and type of the weights; `cohort`: the most clients of a round."""
        size, dtype = first.params.flat.numel(), first.params.flat.dtype
        self._own, self._received, self._trained = own, _mapped(1, size, dtype)[0], _mapped(cohort, size, dtype)
        context = multiprocessing.get_context("fork")
        self.peak_mib = 0.0
        self._pipes: list[Any] = []
        self._processes = []
        for _ in range(count):
            here, there = context.Pipe()
            inherited = [*self._pipes, here]  # a worker that held the parent's ends would not see it die
            desk = _Desk(train, own, first, self._received, self._trained)
            process = context.Process(target=_serve, args=(there, inherited, desk), daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)

    def train(self, sizes: dict[int, int], state: ServerState, round: int) -> Trained:
        """The round of the clients in `sizes` (id -> samples), in that order. UserError when a worker dies."""
        self._received.copy_(state.params.flat)
        shares = [share for share in share_out(sizes, len(self._pipes)) if share]
        pipes, place = self._pipes[: len(shares)], {client: row for row, client in enumerate(sizes)}
        try:
            for pipe, ids in zip(pipes, shares, strict=True):
                own = {client: self._own[client] for client in ids if client in self._own}
                pipe.send_bytes(pickle.dumps((ids, [place[client] for client in ids], state.buffers, state.shared, round, own)))
            answers = [pickle.loads(pipe.recv_bytes()) for pipe in pipes]
        except (EOFError, OSError) as error:
            self.close()
            raise UserError(
                "a worker process died (out of memory?); the same command goes on from the last checkpoint"
            ) from error
        for answer, _ in answers:
            if isinstance(answer, Exception):
                raise answer
        self.peak_mib = max(self.peak_mib, sum(peak for _, peak in answers))
        came = {client: position for position, client in enumerate(client for ids in shares for client in ids)}
        trained = Trained.joined([answer for answer, _ in answers], [came[client] for client in sizes])
        return dataclasses.replace(trained, params=state.params.like(self._trained[: len(sizes)]))

    def close(self) -> None:
        """Ends the processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(timeout=5)
        self._pipes, self._processes = [], []


@dataclasses.dataclass(frozen=True)
class _Desk:
    """What a worker works on."""

    train: Train
    own: dict[int, Any]
    first: ServerState
    received: Tensor  # global weights of this round, [D]; mapped
    trained: Tensor  # the clients' weights, [K, D]; mapped


def share_out(sizes: dict[int, int], count: int) -> list[list[int]]:
    """Ids in `count` groups of about as many samples each: the largest first, to whoever has least."""
    loads = [(0, group) for group in range(count)]
    shares: list[list[int]] = [[] for _ in range(count)]
    for client in sorted(sizes, key=lambda client: -sizes[client]):
        load, group = loads[0]
        shares[group].append(client)
        heapq.heapreplace(loads, (load + sizes[client], group))
    return shares


def _serve(pipe: Any, inherited: list[Any], desk: _Desk) -> None:
    """A worker's life: until its parent is gone, even in the middle of work: it holds the run's lock as the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, who closes the pipe
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    environment.forget_peak()
    for other in inherited:
        other.close()
    while True:
        try:
            ids, rows, buffers, shared, round, own = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        try:
            desk.own.clear()
            desk.own.update(own)
            params = desk.first.params.like(desk.received)
            trained = desk.train(ids, dataclasses.replace(desk.first, params=params, buffers=buffers, shared=shared), round)
            desk.trained[torch.tensor(rows)] = trained.params.flat
            answer: Any = dataclasses.replace(trained, params=trained.params.like(trained.params.flat.new_zeros(len(ids), 0)))
        except Exception as error:
            answer = error
        with contextlib.suppress(OSError):
            pipe.send_bytes(pickle.dumps((answer, environment.peak_rss_mib())))


def _mapped(rows: int, size: int, dtype: torch.dtype) -> Tensor:
    """Zeros [rows, size] in anonymous memory that forked processes share (unlike /dev/shm, it has no quota of its own)."""
    return torch.frombuffer(mmap.mmap(-1, max(1, rows * size * dtype.itemsize)), dtype=dtype, count=rows * size).view(
        rows, size
    )
