"""Time and memory of a round by number of clients, in the cohort and registered: `python -m benchmarks.scaling`.

The runs train logistic regression on MNIST-sized images in batches of 20. FedAvg has 60 samples per client. FedAvg with and
without elastic aggregation has clients of 10 to 100 samples. Each holds out a tenth of them, at least one. Every setting is a
separate process, so that its memory can be measured. Seconds are the median over rounds of processor time, without the first.
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
from benchmarks.works import make_task

ROUNDS, BATCH = 11, 20
EQUAL, UNEQUAL = (60, 60), (10, 100)  # fewest and most samples of a client
# (registered, taking part, method). METHODS run on the clients of unequal size.
SETTINGS = [(1_000, 25), (1_000, 50), (1_000, 100), (1_000, 200), (1_000, 400), (100, 100), (10_000, 100)]
METHODS = ("fedavg", "fedavg+elastic")
COHORTS = (25, 50, 100, 200, 400)
ALL = [(n, k, "fedavg", *EQUAL) for n, k in SETTINGS] + [(1_000, k, m, *UNEQUAL) for k in COHORTS for m in METHODS]


def one(registered: int, taking_part: int, method: str, fewest: int, most: int) -> dict[str, float]:
    """Measures one setting in this process."""
    import torch

    from fedrepro import rng
    from fedrepro.engine import environment
    from fedrepro.engine.loop import train
    from fedrepro.methods.compose import compose
    from fedrepro.models import build
    from fedrepro.types import Batch

    environment.prepare("cpu")
    generator, shape = rng.stream(8, "scaling"), (1, 28, 28)
    images = lambda count: Batch(  # noqa: E731
        torch.from_numpy(generator.random((count, *shape), np.float32)), torch.from_numpy(generator.integers(0, 10, count))
    )
    data, model = images(10_000), build("logistic", shape, 10)
    cohorts = [np.sort(generator.choice(registered, taking_part, replace=False)) for _ in range(ROUNDS)]
    sizes = generator.integers(fewest, most + 1, registered) if most > fewest else np.full(registered, most)
    index = [torch.from_numpy(generator.integers(0, 10_000, size)) for size in sizes]
    held_out = [part[: max(1, len(part) // 10) if most > fewest else 0] for part in index]
    index = [part[len(held) :] for part, held in zip(index, held_out, strict=True)]
    settings = {"participation": taking_part / registered, "local_epochs": 1, "batch_size": BATCH, "client_lr": 0.1}
    settings |= {"client_momentum": 0.0, "weight_decay": 0.0, "method": method}
    task = make_task(model, data, images(100), index, held_out, np.stack(cohorts), **settings)
    environment.forget_peak()
    before, ends = environment.peak_rss_mib(), [time.process_time()]
    train(task, compose(method), report=lambda *_: ends.append(time.process_time()))
    taken = [b - a for a, b in pairwise(ends)]
    return {
        "round_ms": round(1000 * statistics.median(taken[1:]), 2),
        "more_mib": round(environment.peak_rss_mib() - before, 1),
    }


def main() -> None:
    """Measures each setting three times, in turn; prints the results and writes results/scaling.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        registered, taking_part, method, fewest, most = options.one
        print(json.dumps(one(int(registered), int(taking_part), method, int(fewest), int(most))))
        return
    found: dict[tuple, list[dict[str, float]]] = {setting: [] for setting in ALL}
    for _ in range(3):
        for setting in ALL:
            command = [sys.executable, "-m", "benchmarks.scaling", "--one", *map(str, setting)]
            found[setting].append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    rows = [
        {"registered": n, "taking_part": k, "method": method, "samples_a_client": [fewest, most]}
        | {key: statistics.median(one[key] for one in runs) for key in runs[0]}
        for (n, k, method, fewest, most), runs in found.items()
    ]
    content = {"measured": f"{datetime.now(UTC):%Y-%m-%d}", "settings": rows}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scaling.json").write_text(json.dumps(content, indent=1) + "\n")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
