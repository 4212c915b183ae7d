"""What a real deployment of a run would send. Nothing is sent here: clients are simulated in one process."""

from fedrepro.engine.local import TrainingNetwork
from fedrepro.engine.task import Task
from fedrepro.methods.compose import Method

BYTES = 4  # of a float32; integers, counts and identifiers are left out, and nothing is compressed


def traffic(task: Task, method: Method, rounds: int) -> dict[str, int]:
    """Of the first `rounds` rounds of a seed: bytes that all clients send and receive, and how many client-rounds that takes.

    A client-round is one client in one round, counted where it has data to train on; `bytes_up / client_rounds` is its share.
    """
    cohorts = task.cohorts[:rounds].tolist()
    client_rounds = sum(task.trains(client) for cohort in cohorts for client in cohort)
    up, down = method.traffic(task.params.flat.numel(), task.buffers.flat.numel(), TrainingNetwork(task.model, task.buffers))
    return {
        "client_rounds": client_rounds,
        "bytes_up": client_rounds * up * BYTES,
        "bytes_down": client_rounds * down * BYTES,
    }
