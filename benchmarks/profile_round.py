"""Where the time of a FedAvg run goes, by torch's profiler: `python -m benchmarks.profile_round simple_cnn`.

It runs three rounds of three local epochs with all the work of a run: evaluation after each round, records, a checkpoint per
round (by default a run saves one every 20 s at most) and the result files at the end, on one thread. It takes the same part of
JPEG-CIFAR-10's training and test images, so their ratio is that of the whole data set. With fewer images the one-time work of
the process takes a larger share. The time is split into:

- kernels: torch operations inside local training;
- Python: the rest of local training;
- augmentation: what `--augment` adds to the reading of a batch, kernels and Python together;
- evaluation, server, records, files: the rest of a round, as a whole.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.contenders.ours import load
from benchmarks.run import CACHE, RESULTS
from benchmarks.works import WORKS, write
from fedrepro.engine import checkpoint, environment, loop, results
from fedrepro.engine.augment import augmentations
from fedrepro.engine.sequential import SequentialEngine
from fedrepro.methods.compose import Method, compose

ROUNDS, EPOCHS = 3, 3
SPANS = ("local training", "evaluation", "server", "checkpoints", "result files")
AUGMENTATION = "augmentation"
# Networks that no work item has. Their other settings are SimpleCNN's.
OTHERS = {"mcmahan_cifar": {"model": "mcmahan_cifar", "batch_size": 100, "client_momentum": 0.0, "weight_decay": 0.0}}


def under(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function so that the profiler records its time under `name`."""

    def noted(*arguments: Any, **named: Any) -> Any:
        with record_function(name):
            return function(*arguments, **named)

    return noted


def profiled(model: str, part: int, folder: Path, augment: str) -> dict[str, float]:
    """Shares of the run's time in percent, and its seconds."""
    work = WORKS[model] if model in WORKS else replace(WORKS["simple_cnn"], **OTHERS[model])
    work = replace(work, rounds=ROUNDS, local_epochs=EPOCHS, images=50_000 // part, evaluate=True)
    path = folder / "work.npz"
    source = write(work, path)
    task = load(str(path), "cpu", augment=augment)
    task = replace(task, evaluation=task.evaluation.take(torch.arange(len(task.evaluation) // part)))
    saved = loop.Checkpoints(folder / "seed8.pt", "profile", every_s=0)
    with ExitStack() as patched, profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        for owner, attribute, name in (
            (SequentialEngine, "run_cohort", SPANS[0]),
            (SequentialEngine, "evaluate", SPANS[1]),
            (Method, "apply", SPANS[2]),
            (checkpoint, "save", SPANS[3]),
            *((kind, "__call__", AUGMENTATION) for kind in {type(step) for step in augmentations(augment)}),
        ):
            patched.enter_context(mock.patch.object(owner, attribute, under(name, getattr(owner, attribute))))
        began = time.perf_counter()
        outcome = loop.train(task, compose("fedavg"), checkpoints=saved)
        with record_function(SPANS[4]):
            config = {"method": "fedavg", "partition": work.partition, "model": work.model}
            run = {"run_id": "profile", "method": "fedavg", "method_label": "fedavg", "config": config}
            evidence = results.evidence(task.spec, run, 8, outcome, {}, {}, {})
            results.write_seed(folder, "profile", evidence, outcome)
        total = 1e6 * (time.perf_counter() - began)
    events = profiler.events()
    spans = {name: sum(e.time_range.elapsed_us() for e in events if e.name == name) for name in SPANS}
    training = [e for e in events if e.name == SPANS[0]]
    inside = lambda e: any(t.time_range.start <= e.time_range.start < t.time_range.end for t in training)  # noqa: E731
    apart = [e.time_range for e in events if e.name == AUGMENTATION]
    changing = sum(span.elapsed_us() for span in apart)
    own = lambda e: e.name != AUGMENTATION and not any(s.start <= e.time_range.start < s.end for s in apart)  # noqa: E731
    kernels = sum(e.self_cpu_time_total for e in events if e.name not in SPANS and inside(e) and own(e))
    python = spans.pop(SPANS[0]) - kernels - changing
    shares = {"kernels of local training": kernels, "Python of local training": python, AUGMENTATION: changing, **spans}
    shares["records and the rest"] = total - sum(shares.values())
    found = {name: round(100 * value / total, 2) for name, value in shares.items()}
    return found | {"seconds": round(total / 1e6, 1), "samples": outcome.progress.samples, "data": source}


def main() -> None:
    """Profiles, prints the shares, and writes results/profile-<model>.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["simple_cnn", "resnet20", *OTHERS])
    parser.add_argument("--augment", default="none", help="for example crop(padding=4)+flip")
    parser.add_argument("--part", type=int, default=10, help="one image in so many")
    options = parser.parse_args()
    environment.prepare("cpu")
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        shares = profiled(options.model, options.part, Path(folder), options.augment)
    found = {
        "model": options.model,
        "part": options.part,
        "augment": options.augment,
        "measured": f"{datetime.now(UTC):%Y-%m-%d}",
        **shares,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"profile-{options.model}.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
