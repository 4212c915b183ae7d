"""The vectorised engine: one batched computation for all clients of a round, of all seeds of a run. Made for a GPU.

Weights are rows of one matrix [K, D]. Clients are sorted by how many full batches they have. So a step runs on the clients that
still have one: a prefix of the rows, without a copy or padding. The last batch of an epoch is smaller, and its size differs
between clients. Clients whose sizes are within a factor of two take it together, padded to the largest. So there is never more
padding than samples in those batches, hence less than one batch per client and epoch. Chunks of rows bound the memory that
training needs beside the cohort's own matrices. Batches, rules and steps are those of the sequential engine. In float64 both
engines agree up to rounding, which is tested for every method.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.engine import memory
from fedrepro.engine.batches import dropout_key, local_orders, stream_of
from fedrepro.engine.client_side import probes
from fedrepro.engine.cohort import Clients, Trained
from fedrepro.engine.evaluate import evaluate_all
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.task import Task
from fedrepro.methods.compose import Method, ServerState
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import VELOCITY, Batch, ClientContext, Cohort


@dataclass
class VectorisedEngine:
    """The clients of one seed. `run_together` takes several seeds of the same run at once."""

    task: Task
    method: Method
    name: str = "vectorised"
    client_states: dict[int, dict[str, Tree]] = field(default_factory=dict)  # see `Clients.client_states`
    chunk_mib: float | None = None  # memory of one chunk; None: the device's budget, see `memory.budget_mib`
    workers_mib: float = 0.0  # it has no worker processes

    def run_cohort(self, state: ServerState, round: int) -> tuple[Cohort | None, int]:
        """(the results of the clients of `round`, training samples seen). None if no client of the cohort has training data."""
        return run_together([self], [state], [round])[0]

    def evaluate(self, state: ServerState) -> dict[str, float]:
        """`evaluate_all` of the global model."""
        return evaluate_all(self.task.model, state.params, state.buffers, self.task.evaluated)

    def close(self) -> None:
        """Does nothing, since the engine holds nothing."""


@dataclass(frozen=True)
class _Row:
    """One client of one seed, and the order of its samples."""

    seed: int  # position among the seeds that run together
    client: int
    orders: np.ndarray  # [P, E, n], positions in the training set for P batches per step; augmented if images are changed
    full: int  # full batches per epoch
    rest: int  # samples of the last, smaller batch; 0: there is none that counts

    @property
    def epochs(self) -> int:
        return self.orders.shape[1]

    @property
    def num_steps(self) -> int:
        return self.epochs * (self.full + (self.rest > 0))


def run_together(
    engines: Sequence[VectorisedEngine], states: Sequence[ServerState], rounds: Sequence[int]
) -> list[tuple[Cohort | None, int]]:
    """`run_cohort` of several seeds. Their rounds may differ (one may have been resumed)."""
    seeds = [
        _Seed(Clients(engine.task, engine.method, engine.client_states), state, t)
        for engine, state, t in zip(engines, states, rounds, strict=True)
    ]
    rows = [row for number, seed in enumerate(seeds) for row in seed.rows(number)]
    # Seeds with different labels for the same samples (corrupted clients) do not train in one chunk, since a chunk has one
    # training set.
    label_sets = [number if seed.clients.task.spec.corrupted_clients else 0 for number, seed in enumerate(seeds)]
    rows.sort(key=lambda row: (rounds[row.seed], label_sets[row.seed], -row.epochs, -row.full, -row.rest))
    chunk_size = memory.clients_per_chunk(engines[0].chunk_mib, engines[0].task) if rows else 1
    groups = [list(group) for _, group in groupby(rows, key=lambda row: (rounds[row.seed], label_sets[row.seed], row.epochs))]
    chunks = [
        _Chunk(seeds, group[start : start + chunk_size]).train()
        for group in groups
        for start in range(0, len(group), chunk_size)
    ]
    row_of_client = {(row.seed, row.client): index for index, row in enumerate(rows)}
    results: list[tuple[Cohort | None, int]] = []
    for number, seed in enumerate(seeds):
        indices = [row_of_client[number, client] for client in seed.ids]
        cohort = (
            seed.clients.arrive(seed.ids, Trained.concatenate(chunks, indices), seed.state, seed.round) if indices else None
        )
        results.append((cohort, seed.clients.samples(seed.ids, seed.round)))
    return results


class _Seed:
    """The clients of one seed in a round."""

    def __init__(self, clients: Clients, state: ServerState, round: int) -> None:
        self.clients, self.state, self.round = clients, state, round
        self.ids = clients.training(round)
        self.cohort_size = clients.cohort_size(round)

    def rows(self, number: int) -> list[_Row]:
        """One row for each client that trains."""
        task, rows = self.clients.task, []
        for client in self.ids:
            full, rest = divmod(task.train_sizes[client], task.spec.batch_size)
            orders = np.stack([self._orders(client, 1 + index) for index in range(self.clients.method.client.batches_per_step)])
            rows.append(_Row(number, client, orders, full, rest if rest >= task.model.smallest_batch else 0))
        return rows

    def _orders(self, client: int, number: int) -> np.ndarray:
        """[E, n]: a client's samples, ordered for one batch of each step: the first, second, ... as `number` says."""
        task, positions = self.clients.task, self.clients.task.client_positions[client]
        arguments = {"seed": task.seed, "client": client, "round": self.round, "epochs": task.spec.local_epochs_at(self.round)}
        order = local_orders(len(positions), **arguments, purpose=stream_of("batches", number))
        if task.augmentation is None:
            return positions[order]
        choices = task.augmentation.draw(**arguments, samples=len(positions), purpose=stream_of("augment", number))
        return positions[order] * task.augmentation.choices + np.take_along_axis(choices, order, axis=1)


class _Chunk:
    """Rows of one round that train together. They have the same number of epochs and are sorted by full batches, most first."""

    def __init__(self, seeds: list[_Seed], rows: list[_Row]) -> None:
        self.seeds, self.rows, first_seed = seeds, rows, seeds[rows[0].seed]
        self.task, self.rule, self.solver = first_seed.clients.task, first_seed.clients.method.client, first_seed.clients.solver
        self.device = first_seed.state.params.flat.device
        states = [seed.state for seed in seeds]
        self.anchor = self._of_seeds([state.params for state in states])
        self.shared = None if first_seed.state.shared is None else self._of_seeds([state.shared for state in states])
        own_states = [seeds[row.seed].clients.rule_state(row.client, states[row.seed]) for row in rows]
        self.client_state = {name: tree.stack([own_state[name] for own_state in own_states]) for name in own_states[0]}
        self.params = self.anchor.like(self.anchor.flat.clone(memory_format=torch.contiguous_format))
        self.buffers = self._of_seeds([state.buffers for state in states])
        self.buffers = self.buffers.like(self.buffers.flat.clone(memory_format=torch.contiguous_format))
        self.keys_K = torch.tensor([self._key(row) for row in rows], device=self.device) if self.task.model.dropout else None
        self.num_steps = torch.tensor([row.num_steps for row in rows], device=self.device)
        rates = [seeds[row.seed].clients.task.spec.client_lr_at(seeds[row.seed].round) for row in rows]
        self.client_lr = torch.tensor(rates, dtype=self.params.flat.dtype, device=self.device)
        self.cohort_size = self.client_lr.new_tensor([seeds[row.seed].cohort_size for row in rows])
        self.local = self._begin()
        self.velocity = self.local.get(VELOCITY)

    def train(self) -> Trained:
        """Runs every step of every row."""
        full_batches = self._full_batches()  # [E, T, P, K, B]
        active_counts = [sum(row.full > t for row in self.rows) for t in range(full_batches.shape[1])]
        groups = self._last_batches()
        for epoch in range(len(full_batches)):
            for t, count in enumerate(active_counts):
                self._step(slice(0, count), full_batches[epoch, t, :, :count], epoch, t)
            for members, index, valid in groups:
                self._step(members, index[epoch], epoch, None, valid)
        ctx = self._context(slice(None), self._network(slice(None), None))
        messages, own_state = self.rule.finish(self.params, self.local, ctx)
        if self.velocity is not None:
            own_state = self.seeds[0].clients.without_unused_velocity(own_state | {VELOCITY: self.velocity})
        notes = self.rule.notes(self.params, self.local, ctx)
        steps = [row.num_steps for row in self.rows]
        return Trained(self.params, self.buffers, steps, messages, own_state, self._probes(), notes)

    def _step(self, row_index: slice | Tensor, index: Tensor, epoch: int, t: int | None, valid: Tensor | None = None) -> None:
        """One step of the rows `row_index` on the samples `index` [P, k, B]. Only the first `valid` [k] of each row are real.

        `t` is the step within the epoch; None means each row's last step.
        """
        params = _take(self.params, row_index)
        first_batch, *other_batches = (self._samples(index_kB, valid) for index_kB in index)
        batch = replace(first_batch, others=tuple(other_batches)) if other_batches else first_batch
        network = self._network(row_index, valid)
        if network.keys is not None:
            steps_per_epoch = self.num_steps[row_index] // self.rows[0].epochs
            network.keys.begin(epoch * steps_per_epoch + (steps_per_epoch - 1 if t is None else t))
        self._update_weights(row_index, params, batch, self._context(row_index, network))
        if self.buffers.layout.names:
            self.buffers.flat[row_index] = network.buffers.flat

    def _samples(self, index: Tensor, valid: Tensor | None) -> Batch:
        """The samples at [k, B], augmented as the setting says. Targets of padding are -100."""
        data = self.task.train
        if self.task.augmentation is not None:
            batch = self.task.augmentation.take(data, index)
        else:
            batch = Batch(data.x.index_select(0, index.flatten()).unflatten(0, index.shape), data.y[index])
        if valid is None:
            return batch
        padding = torch.arange(index.shape[1], device=self.device) >= valid.unsqueeze(1)
        return Batch(batch.x, batch.y.masked_fill(padding.view(*padding.shape, *[1] * (batch.y.dim() - 2)), -100))

    def _update_weights(self, row_index: slice | Tensor, params: Tree, batch: Batch, ctx: ClientContext) -> None:
        """Updates the weights: in place, unless the rule has its own step."""
        if self.rule.steps_alone:
            params, local = self.rule.step(
                params, batch, {name: _take(value, row_index) for name, value in self.local.items()}, ctx
            )
            self.params.flat[row_index] = params.flat
            for name, value in local.items():
                self.local[name].flat[row_index] = value.flat
            return
        g = self.rule.direction(params, batch, ctx).flat
        w, client_lr, decay = params.flat, self.client_lr[row_index].unsqueeze(1), self.solver.weight_decay
        if self.velocity is None:
            g = g + decay * w if decay else g
            w.addcmul_(g, client_lr, value=-1)
        else:
            velocity = _take(self.velocity, row_index)
            velocity.flat.mul_(self.solver.momentum).add_(g)
            if decay:
                velocity.flat.add_(w, alpha=decay)
            w.addcmul_(velocity.flat, client_lr, value=-1)
            self._put(self.velocity, row_index, velocity)
        self._put(self.params, row_index, params)

    def _network(self, row_index: slice | Tensor, valid: Tensor | None) -> TrainingNetwork:
        keys = None if self.keys_K is None else Keys(self.keys_K[row_index])
        return TrainingNetwork(self.task.model, _take(self.buffers, row_index), valid=valid, keys=keys)

    def _key(self, row: "_Row") -> int:
        seed = self.seeds[row.seed]
        return dropout_key(seed.clients.task.seed, row.client, seed.round)

    def _context(self, row_index: slice | Tensor, network: TrainingNetwork) -> ClientContext:
        return ClientContext(
            network=network,
            anchor=_take(self.anchor, row_index),
            client_lr=self.client_lr[row_index],
            num_steps=self.num_steps[row_index].to(self.client_lr.dtype),  # rules divide by it
            cohort_size=self.cohort_size[row_index],
            round=self.seeds[self.rows[0].seed].round,
            rounds=self.task.spec.rounds,
            local_epochs=self.rows[0].epochs,
            solver=self.solver,
            shared=None if self.shared is None else _take(self.shared, row_index),
            client_state={name: _take(value, row_index) for name, value in self.client_state.items()},
        )

    def _begin(self) -> dict[str, Tree]:
        """The local state before the first step, in memory that nothing else uses."""
        local = self.rule.begin(self._context(slice(None), self._network(slice(None), None)))
        local = {name: value.like(value.flat.clone(memory_format=torch.contiguous_format)) for name, value in local.items()}
        return local | ({VELOCITY: self._velocity()} if self.solver.momentum else {})

    def _probes(self) -> dict[str, Tree]:
        """What parts measure on held-out samples, for one client after another."""
        if not self.seeds[0].clients.method.probing:
            return {}
        measurements = []
        for row in self.rows:
            seed = self.seeds[row.seed]
            network = TrainingNetwork(self.task.model, seed.state.buffers)  # `probes` replaces it
            ctx = seed.clients.context(row.client, seed.state, seed.round, network, row.num_steps, seed.cohort_size)
            measurements.append(probes(seed.clients, row.client, ctx, seed.state))
        return {name: tree.stack([measurement[name] for measurement in measurements]) for name in measurements[0]}

    @staticmethod
    def _put(all_rows: Tree, row_index: slice | Tensor, new_rows: Tree) -> None:
        """Writes rows back. Rows of a slice are a view that has already changed in place."""
        if not isinstance(row_index, slice):
            all_rows.flat[row_index] = new_rows.flat

    def _of_seeds(self, trees: list[Tree]) -> Tree:
        """The tree of each row's seed, [K, D]. For a single seed it makes no copy."""
        if len(trees) == 1:
            return trees[0].like(trees[0].flat.expand(len(self.rows), -1))
        flat_by_seed = torch.stack([seed_tree.flat for seed_tree in trees])
        return trees[0].like(flat_by_seed[torch.tensor([row.seed for row in self.rows], device=self.device)])

    def _velocity(self) -> Tree:
        velocities = [self.seeds[row.seed].clients.velocity(row.client) for row in self.rows]
        zero = torch.zeros_like(self.params.flat[0])
        return self.params.like(torch.stack([zero if velocity is None else velocity.flat for velocity in velocities]))

    def _full_batches(self) -> Tensor:
        """Positions [E, T, P, K, B] of all full batches. Step t only reads the rows that have one."""
        batch_size, (batches_per_step, epochs, _) = self.task.spec.batch_size, self.rows[0].orders.shape
        positions = np.zeros((epochs, self.rows[0].full, batches_per_step, len(self.rows), batch_size), np.int64)
        for k, row in enumerate(self.rows):
            steps = row.orders[..., : row.full * batch_size].reshape(batches_per_step, epochs, row.full, batch_size)
            positions[:, : row.full, :, k] = steps.transpose(1, 2, 0, 3)
        return torch.from_numpy(positions).to(self.device, non_blocking=True)

    def _last_batches(self) -> list[tuple[Tensor, Tensor, Tensor | None]]:
        """(rows, positions [E, P, k, B], real samples [k]) of the smaller last batches, grouped by size."""
        remaining = sorted((k for k, row in enumerate(self.rows) if row.rest), key=lambda k: -self.rows[k].rest)
        groups, (batches_per_step, epochs, _) = [], self.rows[0].orders.shape
        while remaining:
            largest_rest = self.rows[remaining[0]].rest
            group = [k for k in remaining if 2 * self.rows[k].rest > largest_rest]
            remaining = remaining[len(group) :]
            index = np.zeros((epochs, batches_per_step, len(group), largest_rest), np.int64)
            for position, k in enumerate(group):
                row = self.rows[k]
                index[:, :, position, : row.rest] = row.orders[..., row.orders.shape[-1] - row.rest :].transpose(1, 0, 2)
            rests = [self.rows[k].rest for k in group]
            valid = None if min(rests) == largest_rest else torch.tensor(rests, device=self.device)
            members = torch.tensor(group, device=self.device)
            groups.append((members, torch.from_numpy(index).to(self.device, non_blocking=True), valid))
        return groups


def _take(rows: Tree, row_index: slice | Tensor) -> Tree:
    """Some rows: a view for a slice, a copy otherwise."""
    return rows.like(rows.flat[row_index])
