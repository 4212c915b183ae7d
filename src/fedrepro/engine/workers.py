"""Worker processes inside one training. Each takes some of a round's clients and images. For a run that has cores to itself.

The training's own process is the first worker. The others are forked from it once, after the data are loaded, and share the
data. Weights and what clients keep, most of what workers read, lie in memory that all of them map. The rest goes through pipes
by value. Work is cut into pieces, and a free worker takes the next one, since cores are seldom equally fast.
"""

import contextlib
import ctypes
import dataclasses
import mmap
import multiprocessing
import os
import pickle
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

from fedrepro.engine import environment
from fedrepro.engine.cohort import Trained
from fedrepro.engine.evaluate import Tally
from fedrepro.engine.local import LocalResult
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.methods.compose import ServerState
from fedrepro.tree import Tree

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux' prctl
_LAST_WORK_S = 5.0  # shorter than schedulers wait between SIGTERM and SIGKILL
_POLL_S = 0.003  # longer than the server takes between two short rounds
_TICKET = struct.Struct("i")  # the number of a piece of work
_Place = tuple[int, int, str]  # (client, row, name of what the client keeps)


class Engine(Protocol):
    """The work of an engine that workers do. Each worker has a forked copy of it, with all data."""

    task: Task
    client_states: dict[int, dict[str, Tree]]

    def train(self, ids: list[int], state: ServerState, round: int, weights_out: Tensor, rows: list[int]) -> list[LocalResult]:
        """Trains some clients and writes their weights into `rows` of `weights_out`. `client_states`: what clients keep."""
        ...

    def templates(self, params: Tree) -> dict[str, Tree]:
        """What a client keeps, by name. It gives layouts and types."""
        ...

    def collected(self, results: list[LocalResult], params: Tree) -> Trained:
        """Joins the results of K clients, with their weights `params` [K, D]."""
        ...

    def tally(self, state: ServerState, position: int) -> Tally:
        """Evaluates the global model on the piece at `position`."""
        ...


class Workers:
    """`count` processes, including this one, that do the engine's work."""

    def __init__(self, count: int, engine: Engine, initial_state: ServerState) -> None:
        """`initial_state` gives the layout and type of the weights."""
        size, dtype, max_clients = initial_state.params.flat.numel(), initial_state.params.flat.dtype, engine.task.most_at_once
        # Takes no memory until something is stored.
        kept_state = {
            name: template.like(_mapped(max_clients, template.flat.numel(), template.flat.dtype))
            for name, template in engine.templates(initial_state.params).items()
        }
        self._memory = _SharedMemory(
            engine, initial_state, _Tickets(), _mapped(1, size, dtype)[0], _mapped(max_clients, size, dtype), kept_state
        )
        context = multiprocessing.get_context("fork")
        self.peak_mib = 0.0
        self._pipes: list[Any] = []
        self._processes = []
        for _ in range(count - 1):
            parent_end, child_end = context.Pipe()
            inherited_ends = [*self._pipes, parent_end]  # a worker that held the parent's ends would not notice its death
            process = context.Process(target=_serve, args=(child_end, inherited_ends, self._memory), daemon=True)
            process.start()
            child_end.close()
            self._pipes.append(parent_end)
            self._processes.append(process)

    @property
    def count(self) -> int:
        """The number of processes, including this one."""
        return 1 + len(self._pipes)

    def train(self, sizes: dict[int, int], state: ServerState, round: int) -> Trained:
        """Trains the clients in `sizes` (id -> samples) for a round. Returns them in that order. UserError if a worker dies."""
        row_by_client = {client: row for row, client in enumerate(sizes)}
        orders = [(ids, [row_by_client[client] for client in ids]) for ids in group_clients(sizes, self.count)]
        answers = self._ask("train", state, len(orders), self._memory.lay_out(row_by_client), orders, round)
        answers = [answer for answer in answers if answer[0]]
        position_by_client = {
            client: position for position, client in enumerate(client for ids, _ in answers for client in ids)
        }
        trained = Trained.concatenate([part for _, part in answers], [position_by_client[client] for client in sizes])
        return dataclasses.replace(trained, params=state.params.like(self._memory.trained[: len(sizes)]))

    def tally(self, pieces: int, state: ServerState) -> list[Tally]:
        """Counts on all `pieces` of the evaluation sets, in their order. UserError if a worker dies."""
        tallies = {number: tally for answer in self._ask("tally", state, pieces, []) for number, tally in answer.items()}
        return [tallies[number] for number in range(pieces)]

    def _ask(self, task_name: str, state: ServerState, tickets: int, kept: list[_Place], *order: Any) -> list[Any]:
        """Asks every process and returns the answers, this one's first. `kept` says where the clients' kept state lies."""
        self._memory.received.copy_(state.params.flat)
        self._memory.tickets.lay_out(tickets)
        message = pickle.dumps((task_name, state.buffers, state.shared, kept, order))
        with self._all_alive():
            for pipe in self._pipes:
                pipe.send_bytes(message)
        own_answer = getattr(self._memory, task_name)(state, *order)
        with self._all_alive():
            replies = [pickle.loads(_next_message(pipe)) for pipe in self._pipes]
        for answer, _ in replies:
            if isinstance(answer, Exception):
                raise answer
        self.peak_mib = max(self.peak_mib, sum(peak for _, peak in replies))
        return [own_answer, *(answer for answer, _ in replies)]

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
        """Ends the processes. Each finishes its current piece of work, unless that takes long."""
        self._memory.tickets.withdraw()
        for pipe in self._pipes:
            pipe.close()
        deadline = time.monotonic() + _LAST_WORK_S
        for process in self._processes:
            process.join(timeout=max(0.0, deadline - time.monotonic()))
            process.kill()
        self._memory.tickets.close()
        self._pipes, self._processes = [], []


class _Tickets:
    """Numbers of pieces of work, each for one process. They lie in a pipe, and the system hands out each record once."""

    def __init__(self) -> None:
        self._ends: tuple[int, ...] = os.pipe()
        self._take, self._give = self._ends
        os.set_blocking(self._take, False)

    def lay_out(self, count: int) -> None:
        """Puts the numbers 0 to `count` - 1 into the pipe, in that order."""
        os.write(self._give, b"".join(map(_TICKET.pack, range(count))))

    def __iter__(self) -> Iterator[int]:
        """The numbers that this process gets, until none is left."""
        with contextlib.suppress(BlockingIOError):
            while self._ends:
                yield _TICKET.unpack(os.read(self._take, _TICKET.size))[0]

    def withdraw(self) -> None:
        """Takes all remaining numbers, so that nothing is left to do."""
        for _ in self:
            pass

    def close(self) -> None:
        """Closes both ends, once: afterwards their file descriptors may belong to another file."""
        for end in self._ends:
            os.close(end)
        self._ends = ()


@dataclasses.dataclass(frozen=True)
class _SharedMemory:
    """The data that a worker works with."""

    engine: Engine
    first: ServerState
    tickets: _Tickets
    received: Tensor  # global weights, [D]; mapped
    trained: Tensor  # the clients' weights, [K, D]; mapped
    kept: dict[str, Tree]  # what `engine.client_states` holds of clients, by name, with a leading axis [K]; mapped

    def lay_out(self, rows: dict[int, int]) -> list[_Place]:
        """Copies what clients keep into those rows, where all processes can read it."""
        places = [(client, row, name) for client, row in rows.items() for name in self.engine.client_states.get(client, {})]
        for client, row, name in places:
            self.kept[name].flat[row].copy_(self.engine.client_states[client][name].flat)
        return places

    def take_up(self, places: list[_Place]) -> None:
        """In a worker: fills `engine.client_states` from the rows that `lay_out` wrote."""
        self.engine.client_states.clear()
        for client, row, name in places:
            self.engine.client_states.setdefault(client, {})[name] = self.kept[name].like(self.kept[name].flat[row])

    def state(self, buffers: Tree, shared: Any) -> ServerState:
        """The part of the server's state that workers read."""
        params = self.first.params.like(self.received)
        return dataclasses.replace(self.first, params=params, buffers=buffers, shared=shared)

    def train(self, state: ServerState, orders: list[tuple], round: int) -> tuple[list[int], Trained | None]:
        """(ids, results) of the `orders` (ids, rows) that this process gets. Without weights, since all processes map those."""
        all_ids, results = [], []
        for number in self.tickets:
            ids, rows = orders[number]
            results += self.engine.train(ids, state, round, self.trained, rows)
            all_ids += ids
        return all_ids, self.engine.collected(results, state.params.like(self.trained[: len(all_ids), :0])) if all_ids else None

    def tally(self, state: ServerState) -> dict[int, Tally]:
        """Counts on the pieces that this process gets, by their numbers."""
        return {number: self.engine.tally(state, number) for number in self.tickets}


def group_clients(sizes: dict[int, int], count: int) -> list[list[int]]:
    """Ids in groups, largest clients first, groups ever smaller. Each of `count` processes takes the next one when it is free.

    A group holds about half of each process's share of the rest. The first groups are few and large, since each has a cost. The
    last ones are single clients, so that all processes finish at almost the same time.
    """
    waiting_ids = deque(sorted(sizes, key=lambda client: -sizes[client]))
    remaining, groups = sum(sizes.values()), []
    while waiting_ids:
        goal, load, group = remaining / (2 * count), 0, []
        while waiting_ids and (not group or load + sizes[waiting_ids[0]] <= goal):
            group.append(waiting_ids.popleft())
            load += sizes[group[-1]]
        remaining -= load
        groups.append(group)
    return groups


def _serve(pipe: Any, inherited: list[Any], memory: _SharedMemory) -> None:
    """Runs a worker until its parent is gone. It ends even during work, since it holds the run's lock like the parent."""
    for signal_number in (signal.SIGINT, signal.SIGTERM):  # the parent handles them and closes the pipe
        signal.signal(signal_number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    environment.forget_peak()
    for pipe_end in inherited:
        pipe_end.close()
    while True:
        try:
            method_name, buffers, shared, places, arguments = pickle.loads(_next_message(pipe))
        except (EOFError, OSError):
            return
        memory.take_up(places)
        try:
            answer: Any = getattr(memory, method_name)(memory.state(buffers, shared), *arguments)
        except Exception as error:
            memory.tickets.withdraw()
            answer = error
        with contextlib.suppress(OSError):
            pipe.send_bytes(pickle.dumps((answer, environment.peak_rss_mib())))


def _next_message(pipe: Any) -> bytes:
    """The next message. EOFError or OSError if there will be none.

    It polls for a while before it sleeps. A virtual processor that slept in every short round came back at half its speed, or
    beside another worker on the same one (AMD EPYC; a round of 100 tiny clients took 15 ms instead of 9).
    """
    deadline = time.perf_counter() + _POLL_S
    while not pipe.poll() and time.perf_counter() < deadline:
        os.sched_yield()  # in case other processes use these cores after all
    return pipe.recv_bytes()


def _mapped(rows: int, size: int, dtype: torch.dtype) -> Tensor:
    """Zeros [rows, size] in anonymous memory that forked processes share. Unlike /dev/shm it has no separate quota."""
    return torch.frombuffer(mmap.mmap(-1, max(1, rows * size * dtype.itemsize)), dtype=dtype, count=rows * size).view(
        rows, size
    )
