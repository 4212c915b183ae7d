"""What the contenders share: the work file, the cores they may use, the line they print. This module needs only numpy."""

import argparse
import json
import os
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np

SEED = 8
MODELS = ("two_nn", "logistic", "mnist_cnn", "simple_cnn")  # functions that each contender defines


@dataclass(frozen=True)
class Work:
    """A federated task in memory.

    train_x, test_x: uint8 [N, C, H, W]; train_y, test_y: int64 [N]; spec: the settings, as `benchmarks/works.py` writes them.
    parts: the positions of each client's samples; cohorts: the clients of each round, without those that have no samples.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    parts: list[np.ndarray]
    cohorts: list[list[int]]
    spec: dict[str, Any]

    @cached_property
    def train_images(self) -> np.ndarray:
        """float32 [N, C, H, W], normalised."""
        return self._normalised(self.train_x)

    @cached_property
    def test_images(self) -> np.ndarray:
        """float32 [N, C, H, W], normalised."""
        return self._normalised(self.test_x)

    def _normalised(self, x: np.ndarray) -> np.ndarray:
        mean, std = (np.array(self.spec[key], np.float32)[:, None, None] for key in ("mean", "std"))
        return (x.astype(np.float32) / 255 - mean) / std

    @property
    def samples_round(self) -> int:
        """Number of samples trained on in the last round; each local epoch counts."""
        return sum(len(self.parts[client]) for client in self.cohorts[-1]) * self.spec["local_epochs"]


@lru_cache(maxsize=1)
def load(path: str) -> Work:
    """Reads the work file, once per process. Exits with one line if the contenders do not have its model."""
    with np.load(path) as file:
        spec, offsets, index = json.loads(str(file["spec"])), file["offsets"], file["index"]
        arrays = {name: file[name] for name in ("train_x", "train_y", "test_x", "test_y")}
        cohorts = file["cohorts"]
    if spec["model"] not in MODELS:
        sys.exit(f"{path}: spec: model: {spec['model']!r} is not one that the peers define; take one of {', '.join(MODELS)}")
    parts = [index[a:b] for a, b in pairwise(offsets)]
    return Work(**arrays, parts=parts, cohorts=[[int(i) for i in cohort if len(parts[i])] for cohort in cohorts], spec=spec)


def start() -> tuple[str, int]:
    """Returns the path of the work file and the number of threads, from the command line.

    Binds this process and its children to that many cores and hides accelerators. Call it before a framework computes anything:
    most frameworks then start one thread for each core of the process.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": str(options.threads), "MKL_NUM_THREADS": str(options.threads)}
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    return options.work, options.threads


def report(name: str, package: str, work: Work, round_s: list[float], accuracy: float, threads: int, workers: int) -> None:
    """Prints the result. round_s: seconds of each round; accuracy: percent on the test set; workers: training processes."""
    found = {"contender": name, "version": version(package), "samples_round": work.samples_round, "round_s": round_s}
    print(json.dumps(found | {"test_accuracy": accuracy, "threads": threads, "workers": workers}), flush=True)
