"""The work items that contenders are timed on. Each is one file with images, clients, cohorts and settings.

    python -m benchmarks.works A benchmarks/.cache/A.npz

The project's schemes draw the partitions. Images come from data/arrays if the data set is prepared there
(`fedrepro data mnist`); otherwise they are random ones of the same number and shape, on which arithmetic takes as long.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro import rng
from fedrepro.data import participation, partition
from fedrepro.data.arrays import ARRAYS, load_arrays

SEED = 8
# Test images of a work without evaluation. Every contender evaluates them once at the end; our loop does so in each round.
FEW_TESTS = 100
# Number of channels -> (mean, deviation) that published code uses to normalise MNIST and CIFAR-10.
SCALE = {1: ([0.1307], [0.3081]), 3: ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616])}


@dataclass(frozen=True)
class Work:
    """A federated task. `partition` is a scheme of fedrepro; `evaluate` says whether each round ends with a test."""

    title: str
    dataset: str
    model: str
    partition: str
    clients: int
    participation: float
    rounds: int
    local_epochs: int
    batch_size: int
    client_lr: float
    client_momentum: float
    weight_decay: float
    evaluate: bool
    images: int  # of the training set
    shape: tuple[int, int, int]
    repeats: int = 5  # at most; fewer where one repeat takes minutes


# A, B, C: MNIST with a perceptron, with a CNN, and with many tiny clients. The last two are FedLAW's networks on a part of
# CIFAR-10.
_MNIST = {"dataset": "mnist", "images": 60_000, "shape": (1, 28, 28), "client_momentum": 0.0, "weight_decay": 0.0}
_CIFAR = {"dataset": "cifar10-jpeg", "shape": (3, 32, 32), "partition": "dirichlet_per_class(alpha=0.5)", "clients": 20}
_CIFAR |= {"participation": 1.0, "local_epochs": 1, "batch_size": 64, "client_lr": 0.08, "client_momentum": 0.9}
_CIFAR |= {"weight_decay": 5e-4, "evaluate": False}
WORKS = {
    "A": Work(
        title="2NN, 20 clients",
        model="two_nn",
        partition="dirichlet_per_class(alpha=0.5)",
        clients=20,
        participation=1.0,
        rounds=5,
        local_epochs=1,
        batch_size=128,
        client_lr=0.01,
        evaluate=True,
        **_MNIST,
    ),
    "B": Work(
        title="CNN, 20 clients",
        model="mnist_cnn",
        partition="dirichlet_per_class(alpha=0.5)",
        clients=20,
        participation=1.0,
        rounds=2,
        repeats=2,
        local_epochs=1,
        batch_size=64,
        client_lr=0.01,
        evaluate=False,
        **_MNIST,
    ),
    "C": Work(
        title="logistic regression, 100 of 1,000 clients",
        model="logistic",
        partition="iid",
        clients=1000,
        participation=0.1,
        rounds=20,
        local_epochs=1,
        batch_size=100,
        client_lr=0.1,
        evaluate=False,
        **_MNIST,
    ),
    "simple_cnn": Work(title="SimpleCNN, 20 clients", model="simple_cnn", rounds=2, images=20_000, repeats=2, **_CIFAR),
    "resnet20": Work(title="ResNet-20, 20 clients", model="resnet20", rounds=2, images=5_000, repeats=2, **_CIFAR),
}


def write(work: Work, path: Path, root: Path = Path()) -> str:
    """Writes the file of a work item. Returns where its images come from."""
    folder = root / ARRAYS / work.dataset / "x".join(map(str, work.shape))
    source = work.dataset if folder.is_dir() else f"random images in the shape of {work.dataset}"
    train_x, train_y, test_x, test_y = _images(work, folder if folder.is_dir() else None)
    offsets, index = _clients(work, train_y)
    cohort = participation.cohort_size({"ratio": work.participation, "clients": work.clients})
    generator = rng.stream(SEED, "benchmark/cohorts")
    cohorts = np.stack([np.sort(generator.choice(work.clients, cohort, replace=False)) for _ in range(work.rounds)])
    mean, std = SCALE[work.shape[0]]
    spec = asdict(work) | {"work": path.stem, "classes": 10, "source": source, "mean": mean, "std": std}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        train_x=train_x,
        train_y=train_y,
        test_x=test_x,
        test_y=test_y,
        offsets=offsets,
        index=index,
        cohorts=cohorts,
        spec=np.array(json.dumps(spec)),
    )
    return source


def _clients(work: Work, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(offsets [clients + 1], positions): client i holds positions[offsets[i]:offsets[i + 1]]."""
    scheme = partition.make_scheme(work.partition)
    parts = scheme(labels, 10, work.clients, rng.stream(SEED, "benchmark/partition")).parts
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64), np.concatenate(parts)


def _images(work: Work, folder: Path | None) -> tuple[np.ndarray, ...]:
    tests = 10_000 if work.evaluate else FEW_TESTS
    if folder is not None:
        data = load_arrays(folder)
        train = _some(data.train_images, data.train_labels, work.images)
        return *train, *_some(data.test_images, data.test_labels, tests)
    generator = rng.stream(SEED, "benchmark/images")
    draw = lambda count: (  # noqa: E731
        generator.integers(0, 256, (count, *work.shape), dtype=np.uint8),
        generator.integers(0, 10, count, dtype=np.int64),
    )
    return *draw(work.images), *draw(tests)


def _some(images: np.ndarray, labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws `count` images at random, since files are often sorted by class."""
    chosen = rng.stream(SEED, "benchmark/some").permutation(len(images))[:count]
    return images[chosen], labels[chosen].astype(np.int64)


def make_task(model: Any, train: Any, test: Any, index: list, held_out: list, cohorts: np.ndarray, seed: int = 8, **more: Any):
    """A task of our engine: client i trains on the samples `index[i]` and holds out `held_out[i]`. `more`: settings."""
    import torch

    from fedrepro.engine.spec import RunSpec
    from fedrepro.engine.task import Task
    from fedrepro.models import initial

    settings = {"dataset": "benchmark", "dataset_sha": "", "normalise": "unit", "partition": "", "local_validation": 0.0}
    settings |= {"proxy_per_class": 0, "proxy_batch_size": 64, "client_lr_decay": 1.0, "keep_client_momentum": False}
    settings |= {"input_shape": train.x.shape[1:], "classes": 10, "model": model.name}
    settings |= {"clients": len(index), "rounds": len(cohorts)}
    params, buffers = (one.like(one.flat.to(train.x.device)) for one in (initial.draw(model, seed), model.first_buffers()))
    sizes = [float(len(part) + len(held)) for part, held in zip(index, held_out, strict=True)]
    return Task(
        spec=RunSpec(**settings, **more),
        seed=seed,
        model=model,
        train=train,
        client_index=index,
        held_out=held_out,
        client_sizes=torch.tensor(sizes, device=train.x.device),
        cohorts=torch.from_numpy(cohorts),
        evaluation=test,
        proxy=None,
        params=params,
        buffers=buffers,
        inputs={},
    )


def main() -> None:
    """`python -m benchmarks.works WORK OUT.npz`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    print(options.out, write(WORKS[options.work], options.out))


if __name__ == "__main__":
    main()
