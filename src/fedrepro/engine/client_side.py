"""What clients do beside training: measure the model they receive, and make and evaluate models of their own.

One client after another on every engine, so that engines and worker processes agree to the bit.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch

from fedrepro import rng
from fedrepro.engine.batches import local_batches
from fedrepro.engine.cohort import Clients
from fedrepro.engine.evaluate import pieces, summary, tally
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.task import Task
from fedrepro.methods.compose import ServerState
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext

PURPOSE = "personalise"  # of the random streams


def probes(clients: Clients, client: int, ctx: ClientContext, state: ServerState) -> dict[str, Tree]:
    """What each part of the method measures on the client's held-out samples, by part."""
    found = {}
    for part in clients.method.probing:
        network = TrainingNetwork(clients.task.model, state.buffers, train=False)
        found[part.name] = part.probe(_held_out(clients.task, client), replace(ctx, network=network))
    return found


def personal(clients: Clients, state: ServerState, round: int) -> dict[str, float]:
    """personal_accuracy (percent) and personal_loss: every client's own model, on all of its held-out samples."""
    task, tallies, cohort_size = clients.task, [], len(clients.taking_part(round))
    for client, held_out in enumerate(task.held_out):
        if not len(held_out) or not task.trains(client):
            continue
        network = TrainingNetwork(task.model, state.buffers, closed_form=True, keys=_keys(task, client, round))
        batches = _batches(task, client, round)
        ctx = clients.context(client, state, round, network, len(batches), cohort_size)
        params = clients.method.client.personalise(_taken(task, client, batches, network), ctx)
        tallies += [tally(task.model, params, network.buffers, piece) for piece in pieces(task.train.take(held_out))]
    if not tallies:
        return {}
    found = summary(tallies)
    return {"personal_accuracy": found["test_accuracy"], "personal_loss": found["test_loss"]}


def _held_out(task: Task, client: int) -> Iterator[Batch]:
    return (task.train.take(index_B) for index_B in task.held_out[client].split(task.spec.batch_size) if len(index_B))


def _batches(task: Task, client: int, round: int) -> list[torch.Tensor]:
    """One epoch of the client's training samples, in an order that training does not use."""
    where = {"seed": task.seed, "client": client, "round": round, "epochs": 1, "purpose": PURPOSE}
    return local_batches(task.train_sizes[client], batch_size=task.spec.batch_size, smallest=task.model.smallest_batch, **where)


def _taken(task: Task, client: int, batches: list[torch.Tensor], network: TrainingNetwork) -> Iterator[Batch]:
    rows = task.client_index[client]
    for step, index_B in enumerate(batches):
        network.begin_step(step)
        yield task.train.take(rows.index_select(0, index_B.to(rows.device)))


def _keys(task: Task, client: int, round: int) -> Keys | None:
    if not task.model.dropout:
        return None
    key = int(rng.stream(task.seed, f"{PURPOSE}/dropout", client, round).integers(2**63))
    return Keys(torch.tensor(key, device=task.params.flat.device))
