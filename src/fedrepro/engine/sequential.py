"""The sequential engine: it trains the clients of a round one after another, or shares them among worker processes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.engine.batches import dropout_key, local_batches, on_device, side_by_side, stream_of
from fedrepro.engine.client_side import probes
from fedrepro.engine.cohort import Clients, Trained
from fedrepro.engine.evaluate import Piece, Tally, evaluate_all, pieces, summary, tally
from fedrepro.engine.local import FORMS, LocalResult, TrainingNetwork
from fedrepro.engine.task import Task
from fedrepro.engine.workers import Workers
from fedrepro.methods.compose import Method, ServerState
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import Batch, Cohort


@dataclass
class SequentialEngine:
    """`name` picks the form of a client's round: "sequential" (tuned) or "plain" (the reference).

    A client's round does not depend on other clients, so with `workers` > 1 the result is the same to the bit.
    """

    task: Task
    method: Method
    name: str = "sequential"
    client_states: dict[int, dict[str, Tree]] = field(default_factory=dict)  # see `Clients.client_states`
    workers: int = 1
    workers_mib: float = 0.0  # most memory of the worker processes; memory that they share counts for each
    _pool: Workers | None = None

    def run_cohort(self, state: ServerState, round: int) -> tuple[Cohort | None, int]:
        """(the results of the clients of `round`, training samples seen). None if no client of the cohort has training data."""
        clients = Clients(self.task, self.method, self.client_states)
        ids = clients.training(round)
        if not ids:
            return None, 0
        if self.workers > 1:
            trained = self._train_by_workers(ids, state, round)
        else:
            weights = state.params.flat.new_empty(len(ids), state.params.flat.numel())
            trained = self.collected(self.train(ids, state, round, weights, list(range(len(ids)))), state.params.like(weights))
        return clients.arrive(ids, trained, state, round), clients.samples(ids, round)

    def evaluate(self, state: ServerState) -> dict[str, float]:
        """`evaluate_all` of the global model. Worker processes, if there are any, share the images."""
        task, all_pieces = self.task, [piece for set_pieces in self._parts for piece in set_pieces]
        if self._pool is None or task.model.metrics is not None or len(all_pieces) == 1:
            return evaluate_all(task.model, state.params, state.buffers, task.evaluated)
        tallies, metrics = iter(self._pool.tally(len(all_pieces), state)), {}
        for evaluation_set, set_pieces in zip(task.evaluated, self._parts, strict=True):
            metrics |= evaluation_set.rename_metrics(
                summary([next(tallies) for _ in set_pieces], evaluation_set.groups.names if evaluation_set.groups else ())
            )
        return metrics

    def tally(self, state: ServerState, position: int) -> Tally:
        """Evaluates the global model on the piece at `position`."""
        all_pieces = [piece for set_pieces in self._parts for piece in set_pieces]
        return tally(self.task.model, state.params, state.buffers, all_pieces[position])

    @property
    def _parts(self) -> list[list[Piece]]:
        """The pieces of each set that the global model is evaluated on."""
        return [pieces(evaluation_set.data, evaluation_set.groups) for evaluation_set in self.task.evaluated]

    def train(self, ids: list[int], state: ServerState, round: int, weights_out: Tensor, rows: list[int]) -> list[LocalResult]:
        """Trains these clients for a round, one after another. Writes their weights to `rows` of `weights_out` [K, D]."""
        clients = Clients(self.task, self.method, self.client_states)
        cohort_size = clients.cohort_size(round)
        # All orders first: alternating between NumPy and torch costs a fifth of a small client's time.
        batches = [self._batches(client, round) for client in ids]
        jobs = zip(ids, batches, [weights_out[row] for row in rows], strict=True)
        return [self._train(*job, clients, state, round, cohort_size) for job in jobs]

    def collected(self, results: list[LocalResult], params: Tree) -> Trained:
        """Joins the results of K clients, with their weights `params` [K, D]."""
        clients, first_result = Clients(self.task, self.method), results[0]
        messages = [result.message for result in results if result.message is not None]
        return Trained(
            params=params,
            buffers=tree.stack([result.buffers for result in results]),
            num_steps=[result.num_steps for result in results],
            messages=tree.stack(messages) if messages else None,
            client_state={
                name: tree.stack([result.client_state[name] for result in results])
                for name in clients.without_unused_velocity(first_result.client_state)
            },
            probes={name: tree.stack([result.probes[name] for result in results]) for name in first_result.probes},
            notes={name: torch.stack([result.notes[name] for result in results]) for name in first_result.notes},
        )

    def templates(self, params: Tree) -> dict[str, Tree]:
        """What a client keeps, by name."""
        return Clients(self.task, self.method).templates(params)

    def close(self) -> None:
        """Ends the worker processes, if there are any."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _train_by_workers(self, ids: list[int], state: ServerState, round: int) -> Trained:
        if self._pool is None:
            self._pool = Workers(self.workers, self, state)
        sizes = {client: self.task.train_sizes[client] for client in ids}
        trained = self._pool.train(sizes, state, round)
        self.workers_mib = self._pool.peak_mib
        return trained

    def _batches(self, client: int, round: int, number: int = 1) -> list[Tensor]:
        """Positions within the client's samples for one batch of each step: the first, second, ... as `number` says."""
        spec = self.task.spec
        return local_batches(
            self.task.train_sizes[client],
            seed=self.task.seed,
            client=client,
            round=round,
            epochs=spec.local_epochs_at(round),
            batch_size=spec.batch_size,
            smallest=self.task.model.smallest_batch,
            purpose=stream_of("batches", number),
        )

    def _training_batches(self, client: int, batches: list[Tensor], round: int, number: int = 1) -> Iterator[Batch]:
        """The samples of each batch, taken directly from the training set in memory."""
        task, rows = self.task, self.task.client_index[client]
        device_batches = on_device(batches, rows.device)
        if task.augmentation is None:
            return (task.train.take(rows.index_select(0, index_B)) for index_B in device_batches)
        epochs, pipeline = task.spec.local_epochs_at(round), task.augmentation
        arguments = {"seed": task.seed, "client": client, "round": round, "purpose": stream_of("augment", number)}
        sample_choices = torch.from_numpy(pipeline.draw(**arguments, epochs=epochs, samples=len(rows)))
        choices = [sample_choices[step * epochs // len(batches), index_B] for step, index_B in enumerate(batches)]
        pairs = zip(device_batches, on_device(choices, rows.device), strict=True)
        return (pipeline.take(task.train, rows[index_B] * pipeline.choices + choice_B) for index_B, choice_B in pairs)

    def _keys(self, client: int, round: int) -> Keys | None:
        if not self.task.model.dropout:
            return None
        return Keys(torch.tensor(dropout_key(self.task.seed, client, round), device=self.task.params.flat.device))

    def _train(
        self,
        client: int,
        batches: list[Tensor],
        weights_out: Tensor,
        clients: Clients,
        state: ServerState,
        round: int,
        cohort_size: int,
    ) -> LocalResult:
        network = TrainingNetwork(
            self.task.model, state.buffers, closed_form=self.name != "plain", keys=self._keys(client, round)
        )
        ctx = clients.context(client, state, round, network, len(batches), cohort_size)
        rule, data_batches = self.method.client, self._training_batches(client, batches, round)
        if rule.batches_per_step > 1:
            numbers = range(2, rule.batches_per_step + 1)
            other_batches = (
                self._training_batches(client, self._batches(client, round, number), round, number) for number in numbers
            )
            data_batches = side_by_side(data_batches, *other_batches)
        result = FORMS[self.name](rule, data_batches, ctx, weights_out, clients.velocity(client))
        if not self.method.probing:
            return result
        return replace(result, probes=probes(clients, client, ctx, state, closed_form=self.name != "plain"))
