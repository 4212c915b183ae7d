"""The bytes that a real deployment of a run would send. Here nothing is sent: clients are simulated in one process."""

from fedrepro.engine.cohort import Clients
from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.task import Task
from fedrepro.methods.compose import Method

BYTES = 4  # of a float32; integers, counts and identifiers are left out, and nothing is compressed


def traffic(task: Task, method: Method, rounds: int) -> dict[str, int]:
    """Of the first `rounds` rounds of a seed: bytes that all clients send and receive, and how many client-rounds that takes.

    A client-round is one client in one round, counted where it has data to train on; `bytes_up / client_rounds` is its share.
    Where the cohort is taken late all clients receive the model, and the cohort alone sends.
    """
    clients = Clients(task, method)
    client_rounds, sent = (sum(len(of(round)) for round in range(rounds)) for of in (clients.training, clients.taking_part))
    up, down = method.traffic(task.params.flat.numel(), task.buffers.flat.numel(), TrainingNetwork(task.model, task.buffers))
    return {
        "client_rounds": client_rounds,
        "bytes_up": sent * up * BYTES,
        "bytes_down": client_rounds * down * BYTES,
    }
