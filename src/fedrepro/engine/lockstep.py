"""Runs the server steps of several seeds side by side. Each seed's server runs in its own thread as if it were alone. When it
requests a gradient of the network, it waits for the others, and one stacked pass computes all gradients. Parts of methods need
no change: they call `ServerContext.gradient`.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from fedrepro import tree
from fedrepro.engine.local import TrainingNetwork
from fedrepro.models.dropout import JoinedKeys
from fedrepro.tree import Tree
from fedrepro.types import GradientRequest

T = TypeVar("T")


def run(jobs: Sequence[Callable[[Callable[[GradientRequest], Tree]], T]]) -> list[T]:
    """Runs the jobs and returns their results in order. Each job gets a function that answers its requests. The first error is
    raised again."""
    barrier = _Barrier(len(jobs))
    results: list[Any] = [None] * len(jobs)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            results[number] = jobs[number](lambda request: barrier.ask(number, request))
        except BaseException as error:
            errors.append(error)
        finally:
            barrier.leave()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def answer(requests: Sequence[GradientRequest]) -> list[Tree]:
    """The gradients: from one stacked pass if networks and batches are alike, otherwise one by one."""
    networks = [
        request.network
        for request in requests
        if isinstance(request.network, TrainingNetwork) and request.network.model.stackable
    ]
    alike = len({request.x.shape for request in requests}) == 1 and len(networks) == len(requests)
    if len(requests) == 1 or not alike:
        return [request.compute() for request in requests]
    keys = [network.keys for network in networks if network.keys is not None]
    buffers = tree.stack([network.buffers for network in networks])
    stacked_network = TrainingNetwork(networks[0].model, buffers, keys=JoinedKeys(keys) if keys else None)
    params, x = tree.stack([request.params for request in requests]), torch.stack([request.x for request in requests])

    def loss(p: Tree) -> torch.Tensor:
        pairs = zip(requests, stacked_network(p, x), strict=True)
        return torch.stack([request.loss(logits) for request, logits in pairs]).sum()

    gradients = tree.gradient(loss, params)
    for network, statistics in zip(networks, stacked_network.buffers.flat, strict=True):
        network.buffers = network.buffers.like(statistics)
    return [params.like(flat) for flat in gradients.flat]


class _Barrier:
    """A barrier: each thread waits until all running threads have requested a gradient."""

    def __init__(self, running: int) -> None:
        self._running, self._changed = running, threading.Condition()
        self._requests: dict[int, GradientRequest] = {}
        self._answers: dict[int, Tree | BaseException] = {}

    def ask(self, number: int, request: GradientRequest) -> Tree:
        with self._changed:
            self._requests[number] = request
            self._answer_if_all_have_asked()
            self._changed.wait_for(lambda: number in self._answers)
            reply = self._answers.pop(number)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    def leave(self) -> None:
        with self._changed:
            self._running -= 1
            self._answer_if_all_have_asked()

    def _answer_if_all_have_asked(self) -> None:
        if not self._requests or len(self._requests) < self._running:
            return
        numbers = sorted(self._requests)  # by position: it does not matter which thread came last
        try:
            answers: list[Any] = answer([self._requests[number] for number in numbers])
        except BaseException as error:
            answers = [error] * len(numbers)
        self._answers |= dict(zip(numbers, answers, strict=True))
        self._requests.clear()
        self._changed.notify_all()
