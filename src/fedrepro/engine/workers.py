"""Worker processes inside one training: each takes some of a round's clients and images. For a run that has cores to itself.

The training's own process is the first of them. The others are forked from it once, after the data are loaded, and share them.
Weights, the bulk of what goes to and fro, lie in memory that all of them map; the rest goes through pipes by value.
"""

import contextlib
import ctypes
import dataclasses
import heapq
import mmap
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

from fedrepro.engine import environment
from fedrepro.engine.cohort import Trained
from fedrepro.engine.evaluate import Tally
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.methods.compose import ServerState
from fedrepro.tree import Tree

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux' prctl
_LOOK_S = 0.003  # longer than the server takes between two short rounds


class Engine(Protocol):
    """What a worker has done for it; a copy of it, with all data, is forked with each."""

    task: Task
    own: dict[int, Any]

    def train(self, ids: list[int], state: ServerState, round: int, into: Tensor, rows: list[int]) -> Trained:
        """Trains some clients and puts their weights into rows of `into`; reads what is kept of clients from `own`."""
        ...

    def tally(self, state: ServerState, positions: list[int]) -> list[Tally]:
        """Counts on some pieces of the evaluation set."""
        ...


class Workers:
    """`count` processes, this one among them, that do what `engine` does; what is kept of clients is sent to them each time."""

    def __init__(self, count: int, engine: Engine, first: ServerState) -> None:
        """`first` gives the layout and type of the weights."""
        size, dtype, cohort = first.params.flat.numel(), first.params.flat.dtype, engine.task.cohorts.shape[1]
        self._desk = _Desk(engine, first, _mapped(1, size, dtype)[0], _mapped(cohort, size, dtype))
        context = multiprocessing.get_context("fork")
        self.peak_mib = 0.0
        self._pipes: list[Any] = []
        self._processes = []
        for _ in range(count - 1):
            here, there = context.Pipe()
            inherited = [*self._pipes, here]  # a worker that held the parent's ends would not see it die
            process = context.Process(target=_serve, args=(there, inherited, self._desk), daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)

    @property
    def count(self) -> int:
        """Processes, this one among them."""
        return 1 + len(self._pipes)

    def train(self, sizes: dict[int, int], state: ServerState, round: int) -> Trained:
        """The round of the clients in `sizes` (id -> samples), in that order. UserError when a worker dies."""
        shares = [share for share in share_out(sizes, self.count) if share]
        place = {client: row for row, client in enumerate(sizes)}
        orders = [(ids, [place[client] for client in ids], round) for ids in shares]
        kept = self._desk.engine.own
        own = [{client: kept[client] for client in ids if client in kept} for ids in shares]
        answers = self._ask("train", state, orders, own)
        came = {client: position for position, client in enumerate(client for ids in shares for client in ids)}
        trained = Trained.joined(answers, [came[client] for client in sizes])
        return dataclasses.replace(trained, params=state.params.like(self._desk.trained[: len(sizes)]))

    def tally(self, pieces: int, state: ServerState) -> list[Tally]:
        """Counts on all `pieces` of the evaluation set, in their order. UserError when a worker dies."""
        count = min(self.count, pieces)
        found: list[Any] = [None] * pieces
        orders = [(list(range(first, pieces, count)),) for first in range(count)]
        for first, answer in enumerate(self._ask("tally", state, orders, [{}] * count)):
            found[first::count] = answer
        return found

    def _ask(self, what: str, state: ServerState, orders: list[tuple], own: list[dict[int, Any]]) -> list[Any]:
        """What as many processes as there are orders answer, this one first; `own`: what is kept of the clients of each."""
        self._desk.received.copy_(state.params.flat)
        pipes = self._pipes[: len(orders) - 1]
        with self._all_alive():
            for pipe, order, kept in zip(pipes, orders[1:], own[1:], strict=True):
                pipe.send_bytes(pickle.dumps((what, state.buffers, state.shared, kept, order)))
        mine = getattr(self._desk, what)(state, *orders[0])
        with self._all_alive():
            answers = [pickle.loads(_next_message(pipe)) for pipe in pipes]
        for answer, _ in answers:
            if isinstance(answer, Exception):
                raise answer
        self.peak_mib = max(self.peak_mib, sum(peak for _, peak in answers))
        return [mine, *(answer for answer, _ in answers)]

    @contextlib.contextmanager
    def _all_alive(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError) as error:
            self.close()
            raise UserError(
                "a worker process died (out of memory?); the same command goes on from the last checkpoint"
            ) from error

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

    engine: Engine
    first: ServerState
    received: Tensor  # global weights, [D]; mapped
    trained: Tensor  # the clients' weights, [K, D]; mapped

    def state(self, buffers: Tree, shared: Any) -> ServerState:
        """As much of the server's state as workers read."""
        params = self.first.params.like(self.received)
        return dataclasses.replace(self.first, params=params, buffers=buffers, shared=shared)

    def train(self, state: ServerState, ids: list[int], rows: list[int], round: int) -> Trained:
        """The results of these clients without their weights: those lie in memory that all processes have."""
        trained = self.engine.train(ids, state, round, self.trained, rows)
        return dataclasses.replace(trained, params=trained.params.like(trained.params.flat.new_zeros(len(ids), 0)))

    def tally(self, state: ServerState, positions: list[int]) -> list[Tally]:
        """Of these pieces of the evaluation set."""
        return self.engine.tally(state, positions)


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
            what, buffers, shared, own, order = pickle.loads(_next_message(pipe))
        except (EOFError, OSError):
            return
        desk.engine.own.clear()
        desk.engine.own.update(own)
        try:
            answer: Any = getattr(desk, what)(desk.state(buffers, shared), *order)
        except Exception as error:
            answer = error
        with contextlib.suppress(OSError):
            pipe.send_bytes(pickle.dumps((answer, environment.peak_rss_mib())))


def _next_message(pipe: Any) -> bytes:
    """The next message. EOFError, OSError: there will be none.

    Looks for it a while before it sleeps: a virtual processor that sleeps in every short round came back at half its speed, or
    beside another worker on the same one (AMD EPYC; a round of 100 tiny clients took 15 ms instead of 9).
    """
    until = time.perf_counter() + _LOOK_S
    while not pipe.poll() and time.perf_counter() < until:
        os.sched_yield()  # cores may be shared with somebody else after all
    return pipe.recv_bytes()


def _mapped(rows: int, size: int, dtype: torch.dtype) -> Tensor:
    """Zeros [rows, size] in anonymous memory that forked processes share (unlike /dev/shm, it has no quota of its own)."""
    return torch.frombuffer(mmap.mmap(-1, max(1, rows * size * dtype.itemsize)), dtype=dtype, count=rows * size).view(
        rows, size
    )
