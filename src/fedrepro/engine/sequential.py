"""The sequential engine: the clients of a round one after another, or shared out among worker processes."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.engine.batches import dropout_key, local_batches
from fedrepro.engine.cohort import Clients, Trained
from fedrepro.engine.evaluate import Tally, evaluate, pieces, summary, tally
from fedrepro.engine.local import FORMS, LocalResult, TrainingNetwork
from fedrepro.engine.task import Task
from fedrepro.engine.workers import Workers
from fedrepro.methods.compose import Method, ServerState
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import ClientContext, Cohort


@dataclass
class SequentialEngine:
    """`name` picks the form of a client's round: "sequential" (tuned) or "plain" (the reference).

    A client's round depends on nobody else's, so with `workers` > 1 the result is the same to the bit.
    """

    task: Task
    method: Method
    name: str = "sequential"
    own: dict[int, dict[str, Any]] = field(default_factory=dict)  # see `Clients.own`
    workers: int = 1
    workers_mib: float = 0.0  # most memory of the worker processes, each counted whole
    _pool: Workers | None = None

    def run_cohort(self, state: ServerState, round: int) -> tuple[Cohort | None, int]:
        """(what the clients of `round` send, training samples seen). None when nobody in the cohort has training data."""
        clients = Clients(self.task, self.method, self.own)
        ids = clients.taking_part(round)
        if not ids:
            return None, 0
        if self.workers > 1:
            trained = self._by_workers(ids, state, round)
        else:
            into = state.params.flat.new_empty(len(ids), state.params.flat.numel())
            trained = self.collected(self.train(ids, state, round, into, list(range(len(ids)))), state.params.like(into))
        return clients.arrive(ids, trained, state, round), clients.samples(ids)

    def evaluate(self, state: ServerState) -> dict[str, float]:
        """`evaluate` of the global model; worker processes, if there are any, share out the images."""
        task, parts = self.task, pieces(self.task.evaluation)
        if self._pool is None or task.model.metrics is not None or len(parts) == 1:
            return evaluate(task.model, state.params, state.buffers, task.evaluation)
        return summary(self._pool.tally(len(parts), state))

    def tally(self, state: ServerState, position: int) -> Tally:
        """Of this piece of the evaluation set."""
        return tally(self.task.model, state.params, state.buffers, pieces(self.task.evaluation)[position])

    def train(self, ids: list[int], state: ServerState, round: int, into: Tensor, rows: list[int]) -> list[LocalResult]:
        """The round of these clients, one after another; their weights go to `rows` of `into` [K, D]."""
        clients = Clients(self.task, self.method, self.own)
        # All orders first: NumPy and torch by turns cost each other a fifth of a small client's time.
        batches = [self._batches(client, round) for client in ids]
        each = zip(ids, batches, [into[row] for row in rows], strict=True)
        return [self._train(*one, clients, state, round) for one in each]

    def collected(self, results: list[LocalResult], params: Tree) -> Trained:
        """The results of K clients as one, with their weights `params` [K, D]."""
        stack = lambda trees: None if trees[0] is None else tree.stack(trees)  # noqa: E731
        keeps_momentum = Clients(self.task, self.method).keeps_momentum
        return Trained(
            params=params,
            buffers=tree.stack([result.buffers for result in results]),
            num_steps=[result.num_steps for result in results],
            velocity=stack([result.velocity for result in results]) if keeps_momentum else None,
            messages=stack([result.message for result in results]),
            own=stack([result.own for result in results]),
        )

    def close(self) -> None:
        """Ends the worker processes, if there are any."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _by_workers(self, ids: list[int], state: ServerState, round: int) -> Trained:
        if self._pool is None:
            self._pool = Workers(self.workers, self, state)
        sizes = {client: self.task.train_sizes[client] for client in ids}
        trained = self._pool.train(sizes, state, round)
        self.workers_mib = self._pool.peak_mib
        return trained

    def _batches(self, client: int, round: int) -> list[Tensor]:
        """Positions within the client's samples."""
        spec = self.task.spec
        return local_batches(
            self.task.train_sizes[client],
            seed=self.task.seed,
            client=client,
            round=round,
            epochs=spec.local_epochs,
            batch_size=spec.batch_size,
            smallest=self.task.model.smallest_batch,
        )

    def _keys(self, client: int, round: int) -> Keys | None:
        if not self.task.model.dropout:
            return None
        return Keys(torch.tensor(dropout_key(self.task.seed, client, round), device=self.task.params.flat.device))

    def _train(
        self, client: int, batches: list[Tensor], into: Tensor, clients: Clients, state: ServerState, round: int
    ) -> LocalResult:
        spec, rule = self.task.spec, self.method.client
        rows = self.task.client_index[client]  # batches are taken straight from the resident training set
        ctx = ClientContext(
            network=TrainingNetwork(
                self.task.model, state.buffers, closed_form=self.name != "plain", keys=self._keys(client, round)
            ),
            anchor=state.params,
            client_lr=spec.client_lr_at(round),
            num_steps=len(batches),
            shared=state.shared,
            own=clients.rule_state(client, state),
        )
        taken = [rows.index_select(0, index_B.to(rows.device)) for index_B in batches]
        return FORMS[self.name](rule, self.task.train, taken, clients.solver, ctx, into, clients.velocity(client))
