"""What a round costs by clients that take part and by clients that are registered: `python -m benchmarks.scaling`.

Logistic regression on MNIST-sized images, 60 samples a client in batches of 20, FedAvg; every setting is a separate process,
so that memory can be told apart. Seconds are the median over rounds of processor time, after the first.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np

from benchmarks.run import RESULTS

ROUNDS, SAMPLES, BATCH = 11, 60, 20
# (registered, taking part)
SETTINGS = [(1_000, 25), (1_000, 50), (1_000, 100), (1_000, 200), (1_000, 400), (100, 100), (10_000, 100)]


def one(registered: int, taking_part: int) -> dict[str, float]:
    """A setting, in this process."""
    import torch

    from fedrepro import rng
    from fedrepro.engine import environment
    from fedrepro.engine.loop import train
    from fedrepro.engine.spec import RunSpec
    from fedrepro.engine.task import Task
    from fedrepro.methods.compose import compose
    from fedrepro.models import build, initial
    from fedrepro.types import Batch

    environment.prepare("cpu")
    generator, shape = rng.stream(8, "scaling"), (1, 28, 28)
    images = lambda count: Batch(  # noqa: E731
        torch.from_numpy(generator.random((count, *shape), np.float32)), torch.from_numpy(generator.integers(0, 10, count))
    )
    data, model = images(10_000), build("logistic", shape, 10)
    settings = {"dataset": "random", "dataset_sha": "", "input_shape": shape, "normalise": "unit", "classes": 10}
    settings |= {"model": "logistic", "partition": "", "clients": registered, "participation": taking_part / registered}
    settings |= {"local_validation": 0.0, "proxy_per_class": 0, "proxy_batch_size": 64, "rounds": ROUNDS, "local_epochs": 1}
    settings |= {"batch_size": BATCH, "client_lr": 0.1, "client_lr_decay": 1.0, "client_momentum": 0.0}
    settings |= {"keep_client_momentum": False, "weight_decay": 0.0, "method": "fedavg"}
    cohorts = [np.sort(generator.choice(registered, taking_part, replace=False)) for _ in range(ROUNDS)]
    index = [torch.from_numpy(generator.integers(0, 10_000, SAMPLES)) for _ in range(registered)]
    task = Task(
        spec=RunSpec(**settings),
        seed=8,
        model=model,
        train=data,
        client_index=index,
        held_out=[part[:0] for part in index],
        client_sizes=torch.full((registered,), float(SAMPLES)),
        cohorts=torch.from_numpy(np.stack(cohorts)),
        evaluation=images(100),
        proxy=None,
        params=initial.draw(model, 8),
        buffers=model.first_buffers(),
        inputs={},
    )
    environment.forget_peak()
    before, ends = environment.peak_rss_mib(), [time.process_time()]
    train(task, compose("fedavg"), report=lambda *_: ends.append(time.process_time()))
    taken = [b - a for a, b in pairwise(ends)]
    return {
        "round_ms": round(1000 * statistics.median(taken[1:]), 2),
        "more_mib": round(environment.peak_rss_mib() - before, 1),
    }


def main() -> None:
    """Each setting three times in turn; prints and writes results/scaling.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*options.one)))
        return
    found: dict[tuple[int, int], list[dict[str, float]]] = {setting: [] for setting in SETTINGS}
    for _ in range(3):
        for setting in SETTINGS:
            command = [sys.executable, "-m", "benchmarks.scaling", "--one", *map(str, setting)]
            found[setting].append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    rows = [
        {"registered": n, "taking_part": k} | {key: statistics.median(one[key] for one in runs) for key in runs[0]}
        for (n, k), runs in found.items()
    ]
    content = {"measured": f"{datetime.now(UTC):%Y-%m-%d}", "samples_a_client": SAMPLES, "settings": rows}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scaling.json").write_text(json.dumps(content, indent=1) + "\n")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
