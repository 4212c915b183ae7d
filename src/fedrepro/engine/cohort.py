"""What the engines share: which clients train in a round, from what, and how their results become the server's cohort."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.task import Task
from fedrepro.methods.compose import Method, ServerState
from fedrepro.tree import Tree
from fedrepro.types import VELOCITY, ClientContext, Cohort, Solver


@dataclass(frozen=True)
class Trained:
    """The results of local training for K clients, in the order of their ids in the request."""

    params: Tree  # w_k, [K, D]
    buffers: Tree  # [K, D']
    num_steps: list[int]  # T_k
    messages: Tree | None = None  # [K, D]
    client_state: dict[str, Tree] = field(default_factory=dict)  # what clients keep, by name, each with a leading axis [K]
    probes: dict[str, Tree] = field(default_factory=dict)  # by part, with the same leading axis
    notes: dict[str, Tensor] = field(default_factory=dict)  # each [K]

    @classmethod
    def concatenate(cls, parts: list["Trained"], order: list[int] | None = None) -> "Trained":
        """Joins several groups of clients. `order` then picks rows from their concatenation."""

        def rows(tensors: list[Tensor]) -> Tensor:
            flat = tensors[0] if len(tensors) == 1 else torch.cat(tensors)
            return flat if order is None else flat[torch.tensor(order, device=flat.device)]

        def join(trees: list[Tree]) -> Tree:
            return trees[0].like(rows([part_tree.flat for part_tree in trees]))

        def by_name(key: str, join: Callable[[list], Any]) -> dict[str, Any]:
            return {name: join([getattr(part, key)[name] for part in parts]) for name in getattr(parts[0], key)}

        steps = [count for part in parts for count in part.num_steps]
        messages = [part.messages for part in parts if part.messages is not None]
        return cls(
            params=join([part.params for part in parts]),
            buffers=join([part.buffers for part in parts]),
            num_steps=steps if order is None else [steps[i] for i in order],
            messages=join(messages) if messages else None,
            client_state=by_name("client_state", join),
            probes=by_name("probes", join),
            notes=by_name("notes", rows),
        )


@dataclass
class Clients:
    """The clients of one seed under one method.

    `client_states` holds what a client keeps between its rounds, by client id and name: the client rule's state, and the
    solver's velocity (VELOCITY) if the setting keeps it.
    """

    task: Task
    method: Method
    client_states: dict[int, dict[str, Tree]] = field(default_factory=dict)

    def taking_part(self, round: int) -> list[int]:
        """Ids, ascending, of the cohort's clients that have enough data to train. The server takes their models."""
        return [client for client in self.task.cohorts[round].tolist() if self.task.trains(client)]

    def training(self, round: int) -> list[int]:
        """Ids, ascending, of the clients that train: those that take part, or all that can with cohorts = late."""
        if self.task.spec.cohorts != "late":
            return self.taking_part(round)
        return [client for client in range(len(self.task.client_index)) if self.task.trains(client)]

    def cohort_size(self, round: int) -> int:
        """K for the client rules. At least 1, since they divide by it even in a round from which the server takes nothing."""
        return max(1, len(self.taking_part(round)))

    @cached_property
    def solver(self) -> Solver:
        """The local solver of the setting, unless the method replaces it."""
        return self.method.client.solver(Solver(self.task.spec.client_momentum, self.task.spec.weight_decay))

    @property
    def keeps_momentum(self) -> bool:
        """Whether a client continues with its velocity in its next round."""
        return self.task.spec.keep_client_momentum and self.solver.momentum > 0

    def templates(self, params: Tree) -> dict[str, Tree]:
        """What a client keeps, with its values before the first round."""
        velocity = {VELOCITY: tree.zeros_like(params)} if self.keeps_momentum else {}
        return self.method.client.init_client_state(params) | velocity

    def without_unused_velocity(self, client_state: dict[str, Any]) -> dict[str, Any]:
        """`client_state` without the velocity if the next round does not use it."""
        return {name: value for name, value in client_state.items() if name != VELOCITY or self.keeps_momentum}

    def rule_state(self, client: int, state: ServerState) -> dict[str, Tree]:
        """The client rule's state of a client: from its last round, or a new one."""
        if client not in self.client_states:
            return self.method.client.init_client_state(state.params)
        return {name: value for name, value in self.client_states[client].items() if name != VELOCITY}

    def velocity(self, client: int) -> Tree | None:
        """The velocity that the solver kept for a client. None starts at zero."""
        return self.client_states.get(client, {}).get(VELOCITY)

    def samples(self, ids: list[int], round: int) -> int:
        """The number of training samples that these clients see in `round`."""
        passes = self.task.spec.local_epochs_at(round) * self.method.client.batches_per_step
        return sum(self.task.train_sizes[client] for client in ids) * passes

    def context(
        self, client: int, state: ServerState, round: int, network: TrainingNetwork, num_steps: int, cohort_size: int
    ) -> ClientContext:
        """The context that the rule of one client reads in `round`."""
        return ClientContext(
            network=network,
            anchor=state.params,
            client_lr=self.task.spec.client_lr_at(round),
            num_steps=num_steps,
            cohort_size=cohort_size,
            round=round,
            rounds=self.task.spec.rounds,
            local_epochs=self.task.spec.local_epochs_at(round),
            solver=self.solver,
            shared=state.shared,
            client_state=self.rule_state(client, state),
        )

    def arrive(self, ids: list[int], trained: Trained, state: ServerState, round: int) -> Cohort | None:
        """Stores what each client that trained keeps. Returns the cohort's results for the server, if there are any."""
        for k, client in enumerate(ids if trained.client_state else []):
            self.client_states[client] = {
                name: value.like(value.flat[k].clone()) for name, value in trained.client_state.items()
            }
        cohort_ids = self.taking_part(round)
        if not cohort_ids:
            return None
        if cohort_ids != ids:
            trained, ids = (
                Trained.concatenate([replace(trained, client_state={})], [ids.index(client) for client in cohort_ids]),
                cohort_ids,
            )
        sizes, spec = self.task.client_sizes[ids], self.task.spec
        spec_solver = Solver(spec.client_momentum, spec.weight_decay)
        effective_steps = self.method.client.effective_steps(spec_solver, spec.client_lr_at(round), trained.num_steps)
        return Cohort(
            clients=ids,
            updates=tree.sub(trained.params, state.params),
            weights=sizes / sizes.sum(),
            num_steps=torch.tensor(trained.num_steps, dtype=sizes.dtype, device=sizes.device),
            effective_steps=torch.tensor(effective_steps, dtype=sizes.dtype, device=sizes.device),
            fraction=len(ids) / self.task.training_clients,
            population=spec.clients,
            anchor=state.params,
            buffers=trained.buffers,
            messages=trained.messages,
            probes=trained.probes,
            notes=trained.notes,
        )
