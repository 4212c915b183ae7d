"""Draws FedGH's partitions again and compares them with the numbers in its deviations: classes per client, clients without
data.

The class sizes are MNIST's. Nothing else of the images influences which classes a client gets.
"""

import re
from pathlib import Path

import numpy as np

from fedrepro.config.project import load_project
from fedrepro.data.partition import draw
from fedrepro.data.partition.dirichlet_per_class import deal

ROOT = Path(__file__).parents[3]
SIZES = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
LABELS = np.repeat(np.arange(10), SIZES)
SEEDS = (8, 9, 10)


def classes_held(scheme: str, clients: int) -> list[np.ndarray]:
    """The number of classes that each client holds, int [clients], one array per seed."""
    drawn = [draw(scheme, LABELS, 10, clients, seed).parts for seed in SEEDS]
    return [np.array([len(np.unique(LABELS[part])) for part in parts]) for parts in drawn]


def mean_range(held: list[np.ndarray]) -> str:
    """The smallest and largest mean over clients, for example `3.7 to 4.4`."""
    means = [one.mean() for one in held]
    return f"{min(means):.1f} to {max(means):.1f}"


def test_dealing() -> None:
    """Deviation C-D11: the mean number of classes a client holds."""
    deviation = next(item.text for item in load_project(ROOT).paper("fedgh").deviations if item.id == "C-D11")
    in_turns, five = (classes_held("dirichlet_per_client(beta=0.01)", clients) for clients in (20, 5))
    first_come = classes_held("dirichlet_first_come(beta=0.01)", 20)
    expected = [f"twenty clients then hold {mean_range(in_turns)}", f"five clients {mean_range(five)}"]
    expected += [f"twenty clients hold {mean_range(first_come)}"]
    assert all(text in " ".join(deviation.split()) for text in expected), expected


def test_clients_without_data() -> None:
    """Deviation C-D1: a Dirichlet over the clients of each class leaves clients empty. The text has the rounded mean of 200,000
    draws. The 2,000 draws here may differ by four standard errors."""
    rng = np.random.default_rng(8)
    empty = []
    for _ in range(2000):
        held = np.zeros(20, dtype=int)
        for size in SIZES:
            held += [len(part) for part in deal(np.arange(size), rng.dirichlet(np.full(20, 0.01)))]
        empty.append((held == 0).sum())
    deviation = next(item.text for item in load_project(ROOT).paper("fedgh").deviations if item.id == "C-D1")
    (said,) = re.findall(r"leaves (\d\.\d) of twenty clients", " ".join(deviation.split()))
    assert abs(np.mean(empty) - float(said)) < 0.05 + 4 * np.std(empty) / 2000**0.5
