"""What engines share: who trains in a round, from what, and how their results become the cohort that the server sees."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from fedrepro import tree
from fedrepro.engine.task import Task
from fedrepro.methods.compose import Method, ServerState
from fedrepro.tree import Tree
from fedrepro.types import Cohort, Solver


@dataclass(frozen=True)
class Trained:
    """What local training leaves of K clients, in the order in which they were asked for."""

    params: Tree  # w_k, [K, D]
    buffers: Tree  # [K, D']
    num_steps: list[int]  # T_k
    velocity: Tree | None = None  # of the solver, [K, D]; kept only when the setting says so
    messages: Tree | None = None  # [K, D]
    own: Tree | None = None  # of the client rule, [K, D]

    @classmethod
    def joined(cls, parts: list["Trained"], order: list[int] | None = None) -> "Trained":
        """Several groups of clients as one; `order` then picks from their concatenation."""

        def join(trees: list[Any]) -> Tree | None:
            if trees[0] is None:
                return None
            flat = trees[0].flat if len(trees) == 1 else torch.cat([one.flat for one in trees])
            return trees[0].like(flat if order is None else flat[torch.tensor(order, device=flat.device)])

        steps = [count for part in parts for count in part.num_steps]
        found = {key: join([getattr(part, key) for part in parts]) for key in ("velocity", "messages", "own")}
        params, buffers = join([part.params for part in parts]), join([part.buffers for part in parts])
        assert params is not None
        assert buffers is not None
        return cls(params, buffers, steps if order is None else [steps[i] for i in order], **found)


@dataclass
class Clients:
    """The clients of one seed under one method. `own` holds what is kept of a client between its rounds, by client id:

    "rule" for the client rule's state, "velocity" for the solver's, when the setting keeps it.
    """

    task: Task
    method: Method
    own: dict[int, dict[str, Any]] = field(default_factory=dict)

    def taking_part(self, round: int) -> list[int]:
        """Ids of the cohort's clients that have something to train on, ascending."""
        return [client for client in self.task.cohorts[round].tolist() if self.task.trains(client)]

    @cached_property
    def solver(self) -> Solver:
        """The local solver: the setting's, unless the method brings its own."""
        return self.method.client.solver(Solver(self.task.spec.client_momentum, self.task.spec.weight_decay))

    @property
    def keeps_momentum(self) -> bool:
        """Whether a client's velocity goes on in its next round."""
        return self.task.spec.keep_client_momentum and self.solver.momentum > 0

    def rule_state(self, client: int, state: ServerState) -> Tree | None:
        """The client rule's state of a client, from its last round or new."""
        kept = self.own.get(client, {})
        return kept["rule"] if "rule" in kept else self.method.client.init_own(state.params)

    def velocity(self, client: int) -> Tree | None:
        """What the solver kept of a client; None starts at zero."""
        return self.own.get(client, {}).get("velocity")

    def samples(self, ids: list[int]) -> int:
        """Training samples that these clients see in a round."""
        return sum(self.task.train_sizes[client] for client in ids) * self.task.spec.local_epochs

    def arrive(self, ids: list[int], trained: Trained, state: ServerState, round: int) -> Cohort:
        """Keeps what is each client's own, and hands the rest to the server."""
        found = {"rule": trained.own, "velocity": trained.velocity if self.keeps_momentum else None}
        kept = {key: value for key, value in found.items() if value is not None}
        for k, client in enumerate(ids if kept else []):
            self.own[client] = {key: value.like(value.flat[k].clone()) for key, value in kept.items()}
        sizes, spec = self.task.client_sizes[ids], self.task.spec
        setting = Solver(spec.client_momentum, spec.weight_decay)
        worth = self.method.client.effective_steps(setting, spec.client_lr_at(round), trained.num_steps)
        return Cohort(
            clients=ids,
            updates=tree.sub(trained.params, state.params),
            weights=sizes / sizes.sum(),
            num_steps=torch.tensor(trained.num_steps, dtype=sizes.dtype, device=sizes.device),
            effective_steps=torch.tensor(worth, dtype=sizes.dtype, device=sizes.device),
            fraction=len(ids) / self.task.training_clients,
            population=spec.clients,
            anchor=state.params,
            buffers=trained.buffers,
            messages=trained.messages,
        )
