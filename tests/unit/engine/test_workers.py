"""Worker processes inside a training: real processes, the same bits, real kills."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from fedrepro.engine import evaluate
from fedrepro.engine.local import LocalResult
from fedrepro.engine.loop import train
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.workers import group_clients
from fedrepro.errors import UserError
from fedrepro.methods.compose import ServerState, compose
from tests import toy
from tests.contract.test_engines import real_task

ROOT = Path(__file__).parents[3]


def test_images_are_shared_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers share an evaluation set in eight pieces of at most four images. Each image counts once, and the bits and their
    order are the same, also with more workers than clients."""
    monkeypatch.setattr(evaluate, "BATCH", 4)
    task = toy.make_task()
    assert len(evaluate.pieces(task.evaluation)) == 8
    alone = train(task, compose("fedavg"))
    for workers in (2, 7):
        assert train(task, compose("fedavg"), workers=workers).progress.rows == alone.progress.rows
    engine = SequentialEngine(task, compose("fedavg"), workers=2)
    state = engine.method.init(task.params, task.buffers)
    engine.run_cohort(state, 0)
    assert engine._pool is not None
    answers = engine._pool.tally(8, state)
    engine.close()
    assert answers == [engine.tally(state, position) for position in range(8)]
    assert sum(one.samples for one in answers) == len(task.evaluation)


def test_a_dead_worker_is_one_line() -> None:
    """A worker is killed between two rounds. The error says how to resume, and nothing hangs."""
    task = toy.make_task()
    method = compose("fedavg")
    engine = SequentialEngine(task, method, workers=2)
    state = method.init(task.params, task.buffers)
    engine.run_cohort(state, 0)
    assert engine._pool is not None
    os.kill(engine._pool._processes[0].pid or 0, signal.SIGKILL)
    with pytest.raises(UserError, match="worker process died"):
        engine.run_cohort(state, 1)
    engine.close()


def engine_of_two(**trains: Callable[[], object]) -> tuple[SequentialEngine, ServerState]:
    """An engine with one worker. `here` and `there` run before each piece of work, in this process and in the worker."""
    engine, process = SequentialEngine(toy.make_task(), compose("fedavg"), workers=2), os.getpid()
    train_really = engine.train

    def train(*order: Any) -> list[LocalResult]:
        trains["here" if os.getpid() == process else "there"]()
        return train_really(*order)

    engine.train = train  # type: ignore[method-assign]
    return engine, engine.method.init(engine.task.params, engine.task.buffers)


def failing() -> None:
    raise ValueError("while it trained")


def test_an_error_in_a_worker_comes_through() -> None:
    """An error of the worker is raised unchanged in this process, although its own clients train without error."""
    engine, state = engine_of_two(here=lambda: time.sleep(0.3), there=failing)
    with pytest.raises(ValueError, match="while it trained"):
        engine.run_cohort(state, 0)
    engine.close()


def test_after_an_error_nobody_goes_on(tmp_path: Path) -> None:
    """This process fails at once. The worker finishes its current piece and leaves the others."""

    def slowly() -> None:
        (tmp_path / f"{time.monotonic_ns()}").touch()
        time.sleep(0.5)

    engine, state = engine_of_two(here=failing, there=slowly)
    with pytest.raises(ValueError, match="while it trained"):
        engine.run_cohort(state, 0)
    engine.close()
    assert len(list(tmp_path.iterdir())) <= 1


KILLED_AT_WORK = """
import os, time
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.engine.workers import Workers
from fedrepro.methods.compose import compose
from tests import toy

task, method = toy.make_task(), compose("fedavg")
engine, state = SequentialEngine(task, method), method.init(task.params, task.buffers)
engine.train = lambda *_: time.sleep(300)
workers = Workers(3, engine, state)
print(*(process.pid for process in workers._processes), flush=True)
workers.train({0: 1, 1: 1, 2: 1}, state, 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process together with its parent")
def test_workers_die_with_their_parent() -> None:
    """kill -9 ends a training while its workers train. They inherit its lock, so they must end at once."""
    parent = subprocess.Popen([sys.executable, "-c", KILLED_AT_WORK], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    workers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2
    time.sleep(0.2)
    parent.kill()
    parent.communicate()
    gone, left = psutil.wait_procs(workers, timeout=10)
    assert not left
    assert len(gone) == 2


def test_shares_get_smaller() -> None:
    """The largest pieces come first. For two processes a piece has at most a quarter of the remaining samples or one client: 9
    of 20, 5 of 11, 4 of 6, then 1 and 1."""
    assert group_clients({1: 4, 2: 9, 3: 5, 4: 1, 5: 1}, 2) == [[2], [3], [1], [4], [5]]
    assert group_clients({1: 4}, 3) == [[1]]
    equal = group_clients(dict.fromkeys(range(100), 60), 2)
    assert [len(group) for group in equal] == [25, 18, 14, 10, 8, 6, 4, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1]
    assert [client for group in equal for client in group] == list(range(100))


def test_whoever_is_free_takes_the_next() -> None:
    """The worker sleeps over its first piece. This process does nearly all the others, and every client is trained once."""
    mine: list[None] = []
    engine, state = engine_of_two(here=lambda: mine.append(None), there=lambda: time.sleep(1))
    found, _ = engine.run_cohort(state, 0)
    engine.close()
    expected, _ = SequentialEngine(engine.task, engine.method).run_cohort(state, 0)
    assert found is not None
    assert expected is not None
    assert torch.equal(found.updates.flat, expected.updates.flat)
    pieces = group_clients({client: engine.task.train_sizes[client] for client in found.clients}, 2)
    assert len(pieces) - 1 <= len(mine) <= len(pieces)


@pytest.mark.parametrize("name", ["mlp", "resnet8"])
def test_no_bit_in_float32_either(name: str) -> None:
    """A perceptron with its gradient in closed form and a network with BatchNorm give the same bits with two workers."""
    task = real_task(name, 8, torch.float32)
    alone, found = (train(task, compose("fedavg"), workers=workers) for workers in (1, 2))
    assert torch.equal(found.params.flat, alone.params.flat)
    assert torch.equal(found.buffers.flat, alone.buffers.flat)
    assert found.workers_mib > 10
    assert alone.workers_mib == 0
