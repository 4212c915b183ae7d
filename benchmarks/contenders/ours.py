"""Our engines on a work item: the training loop with its evaluation, metrics and server step.

python -m benchmarks.contenders.ours WORK.npz --engine sequential --threads 1 --workers 2
"""

# ruff: noqa: E402
import sys
from itertools import pairwise

from fedrepro import arithmetic

# This comes before the large imports, too. `--arithmetic portable` uses all instructions of the processor, as `fedrepro run`
# does.
CHOICE = next((after for option, after in pairwise(sys.argv) if option == "--arithmetic"), "native")
arithmetic.use(CHOICE)
if "vectorised" not in sys.argv:
    arithmetic.widen()

import argparse
import json
import time
from dataclasses import replace

import numpy as np
import torch

from benchmarks.works import make_task
from fedrepro.engine import environment
from fedrepro.engine.loop import train, train_together
from fedrepro.engine.task import Task, as_batch
from fedrepro.methods.compose import compose
from fedrepro.models import build


def load(
    path: str, device: str, method: str = "fedavg", seed: int = 8, products: str = "float32", augment: str = "none"
) -> Task:
    """Loads a work item as a task of our engine. Another seed gives another initial model and another order of samples."""
    with np.load(path) as file:
        work = dict(file)  # `file[key]` reads the array from disk each time
    spec = json.loads(str(work["spec"]))
    shape = tuple(work["train_x"].shape[1:])
    model = build(spec["model"], shape, spec["classes"], products)
    bounds = list(pairwise(work["offsets"]))
    index = [torch.from_numpy(work["index"][a:b]).to(device) for a, b in bounds]
    images = lambda x, y: as_batch(x, y, spec["mean"], spec["std"], device, torch.float32)  # noqa: E731
    train, test = (images(work[f"{split}_x"], work[f"{split}_y"]) for split in ("train", "test"))
    keys = ("participation", "local_epochs", "batch_size", "client_lr", "client_momentum", "weight_decay")
    settings = {key: spec[key] for key in keys} | {"method": str(compose(method)), "products": products, "augment": augment}
    return make_task(model, train, test, index, [part[:0] for part in index], work["cohorts"], seed, **settings)


def main() -> None:
    """Trains a work item and prints one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--engine", default="sequential")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=1, help="at once, by the vectorised engine")
    parser.add_argument("--products", default="float32", help="float32, tf32 (on a GPU) or bf16")
    parser.add_argument("--arithmetic", default=CHOICE, choices=arithmetic.CHOICES)
    parser.add_argument("--chunk-mib", type=float, help="memory of a chunk of the vectorised engine")
    options = parser.parse_args()
    environment.prepare(options.device, options.threads)
    environment.choose_products(options.device, options.products)
    method, how = compose("fedavg"), {"device": options.device, "products": options.products}
    tasks = [load(options.work, seed=8 + i, **how) for i in range(options.seeds)]
    tasks = [replace(task, train=tasks[0].train, evaluation=tasks[0].evaluation) for task in tasks]
    ends = [time.perf_counter()]
    mark = lambda *_: ends.append(time.perf_counter())  # noqa: E731
    if options.engine == "vectorised":
        reports = [*[None] * (options.seeds - 1), mark]
        outcomes = dict(train_together(tasks, method, reports=reports, chunk_mib=options.chunk_mib))
    else:
        outcomes = {0: train(tasks[0], method, engine=options.engine, workers=options.workers, report=mark)}
    progress = outcomes[0].progress
    accuracy = next(value for _, name, value in reversed(progress.rows) if name == "test_accuracy")
    found = {
        "contender": "fedrepro",
        "version": torch.__version__,
        "samples_round": len(outcomes) * progress.samples // progress.round,
        "round_s": [b - a for a, b in pairwise(ends)],
    }
    if options.device == "cuda":
        found["device_peak_mib"] = torch.cuda.max_memory_allocated() / 2**20
    print(json.dumps(found | {"test_accuracy": accuracy, "threads": options.threads, "workers": options.workers}))


if __name__ == "__main__":
    main()
