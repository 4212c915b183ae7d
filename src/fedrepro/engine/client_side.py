"""Clients' work beside training: they measure the model they receive, make their own, and evaluate both on their data.

Every engine does this one client after another, so engines and worker processes agree to the bit.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch

from fedrepro import rng
from fedrepro.engine.batches import local_batches, on_device
from fedrepro.engine.cohort import Clients
from fedrepro.engine.evaluate import Tally, pieces, sum_tallies, summary, tally
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.task import Task
from fedrepro.methods.compose import ServerState
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext

PURPOSE = "personalise"  # names the random streams


def probes(clients: Clients, client: int, ctx: ClientContext, state: ServerState, closed_form: bool = True) -> dict[str, Tree]:
    """What each part of the method measures on the client's held-out samples, by the part's name."""
    measurements = {}
    for part in clients.method.probing:
        network = TrainingNetwork(clients.task.model, state.buffers, closed_form=closed_form, train=False)
        measurements[part.name] = part.probe(_held_out(clients.task, client), replace(ctx, network=network))
    return measurements


def local_test_metrics(clients: Clients, state: ServerState, round: int) -> dict[str, float]:
    """`spread_of` the clients' accuracies on their own test samples, see `Task.local_test`. With their own models
    (personal_...) if the method makes them, and with the global model (local_...) if local_test keeps samples."""
    task, metrics = clients.task, {}
    client_ids = [client for client, index in enumerate(task.local_test) if len(index) and task.trains(client)]
    if task.spec.local_test and client_ids:
        tallies = [_tally(task, client, state.params, state.buffers) for client in client_ids]
        metrics |= spread_of(tallies, "local")
    if clients.method.personalises and client_ids:
        metrics |= spread_of(
            [_tally(task, client, *_own_model(clients, client, state, round)) for client in client_ids], "personal"
        )
    return metrics


def spread_of(tallies: list[Tally], name: str) -> dict[str, float]:
    """{name}_accuracy (percent) and {name}_loss over all samples. Over clients, each counted once: the mean, the standard
    deviation and the mean of the worst tenth (at least one client) of their accuracies, as {name}_client_mean, _std, _worst."""
    metrics = summary(tallies)
    by_client = torch.tensor([100 * part.correct / part.samples for part in tallies], dtype=torch.float64)
    worst = by_client.sort().values[: -(-len(tallies) // 10)]
    return {
        f"{name}_accuracy": metrics["test_accuracy"],
        f"{name}_loss": metrics["test_loss"],
        f"{name}_client_mean": float(by_client.mean()),
        f"{name}_client_std": float(by_client.std(correction=0)),
        f"{name}_client_worst": float(worst.mean()),
    }


def _own_model(clients: Clients, client: int, state: ServerState, round: int) -> tuple[Tree, Tree]:
    """(weights, running statistics) of a client's own model, made from one epoch of its training samples."""
    task, cohort_size = clients.task, clients.cohort_size(round)
    network = TrainingNetwork(task.model, state.buffers, closed_form=True, keys=_keys(task, client, round))
    batches = _batches(task, client, round)
    ctx = clients.context(client, state, round, network, len(batches), cohort_size)
    return clients.method.client.personalise(_training_batches(task, client, batches, network), ctx), network.buffers


def _tally(task: Task, client: int, params: Tree, buffers: Tree) -> Tally:
    """Evaluates a model on a client's own test samples."""
    parts = pieces(task.train.take(task.local_test[client]))
    return sum_tallies([tally(task.model, params, buffers, part) for part in parts])


def _held_out(task: Task, client: int) -> Iterator[Batch]:
    return (task.train.take(index_B) for index_B in task.held_out[client].split(task.spec.batch_size) if len(index_B))


def _batches(task: Task, client: int, round: int) -> list[torch.Tensor]:
    """One epoch of the client's training samples, in an order that training does not use."""
    arguments = {"seed": task.seed, "client": client, "round": round, "epochs": 1, "purpose": PURPOSE}
    return local_batches(
        task.train_sizes[client], batch_size=task.spec.batch_size, smallest=task.model.smallest_batch, **arguments
    )


def _training_batches(task: Task, client: int, batches: list[torch.Tensor], network: TrainingNetwork) -> Iterator[Batch]:
    rows = task.client_index[client]
    for step, index_B in enumerate(on_device(batches, rows.device)):
        network.begin_step(step)
        yield task.train.take(rows.index_select(0, index_B))


def _keys(task: Task, client: int, round: int) -> Keys | None:
    if not task.model.dropout:
        return None
    key = int(rng.stream(task.seed, f"{PURPOSE}/dropout", client, round).integers(2**63))
    return Keys(torch.tensor(key, device=task.params.flat.device))
