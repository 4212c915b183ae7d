"""The sequential engine: the clients of a round one after another."""

from dataclasses import dataclass, field
from typing import Any

import torch

from fedrepro import tree
from fedrepro.engine.batches import local_batches
from fedrepro.engine.local import ENGINES, TrainingNetwork
from fedrepro.engine.task import Task
from fedrepro.methods.compose import Method, ServerState
from fedrepro.types import ClientContext, Cohort, Solver


@dataclass
class SequentialEngine:
    """`name` picks the form of a client's round: "sequential" (tuned) or "plain" (the reference).

    A vectorised engine will offer the same `run_cohort`. `own` holds what is kept of a client between its rounds, by client id:
    "rule" for the client rule's state, "velocity" for the solver's, when the setting keeps it.
    """

    task: Task
    method: Method
    name: str = "sequential"
    own: dict[int, dict[str, Any]] = field(default_factory=dict)

    def run_cohort(self, state: ServerState, round: int) -> tuple[Cohort | None, int]:
        """(what the clients of `round` send, training samples seen). None when nobody in the cohort has training data."""
        ids = [client for client in self.task.cohorts[round].tolist() if self.task.trains(client)]
        if not ids:
            return None, 0
        results = {client: self._train(client, state, round) for client in ids}
        for client, result in results.items():
            kept = {"rule": result.own, "velocity": result.velocity if self._keeps_momentum else None}
            kept = {key: value for key, value in kept.items() if value is not None}
            if kept:
                self.own[client] = kept
        sizes = self.task.client_sizes[ids]
        messages = [result.message for result in results.values()]
        cohort = Cohort(
            clients=ids,
            updates=tree.stack([tree.sub(result.params, state.params) for result in results.values()]),
            weights=sizes / sizes.sum(),
            num_steps=torch.tensor([result.num_steps for result in results.values()], dtype=sizes.dtype, device=sizes.device),
            fraction=len(ids) / self.task.training_clients,
            anchor=state.params,
            buffers=tree.stack([result.buffers for result in results.values()]),
            messages=None if messages[0] is None else tree.stack(messages),
        )
        return cohort, sum(len(self.task.client_index[client]) for client in ids) * self.task.spec.local_epochs

    @property
    def _solver(self) -> Solver:
        return self.method.client.solver(Solver(self.task.spec.client_momentum, self.task.spec.weight_decay))

    @property
    def _keeps_momentum(self) -> bool:
        return self.task.spec.keep_client_momentum and self._solver.momentum > 0

    def _train(self, client: int, state: ServerState, round: int):
        spec, rule = self.task.spec, self.method.client
        data = self.task.train.take(self.task.client_index[client])
        batches = local_batches(
            len(data),
            seed=self.task.seed,
            client=client,
            round=round,
            epochs=spec.local_epochs,
            batch_size=spec.batch_size,
            smallest=self.task.model.smallest_batch,
        )
        kept = self.own.get(client, {})
        ctx = ClientContext(
            network=TrainingNetwork(self.task.model, state.buffers),
            anchor=state.params,
            client_lr=spec.client_lr_at(round),
            num_steps=len(batches),
            shared=state.shared,
            own=kept["rule"] if "rule" in kept else rule.init_own(state.params),
        )
        on_device = [index_B.to(data.y.device) for index_B in batches]
        return ENGINES[self.name](rule, data, on_device, self._solver, ctx, kept.get("velocity"))
