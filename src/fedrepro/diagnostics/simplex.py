"""The loss of sum_i lambda_i w_i over all weights lambda >= 0 of three clients that sum to 1. FedLAW, ICML 2023, Figure 12.

The paper finds that weights by data size are not the best where clients' data differ.

(x, y) is a place in a triangle of side 1 with the clients in its corners: the first in (0, 0), the second in (1, 0), the third
in (1/2, sqrt(3)/2); lambda are the barycentric coordinates.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Value
from fedrepro.lazy import torch

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, math.sqrt(3) / 2]])
ORDER = ("first", "second", "third")


@DIAGNOSTICS.register("simplex")
@dataclass(frozen=True)
class Simplex(Diagnostic):
    """Of the first three clients of the cohort after local training; a round in which fewer trained has no value. Each lambda_i
    goes from 0 to 1 in `points` - 1 steps. `on`: the test set or all clients' training samples; `samples` of them, or all.
    Running statistics are summed with the same weights (our choice).

    `simplex_loss` has a value at each point. `simplex_loss/model_1` to `model_3` are the clients' models,
    `simplex_loss/average` is their mean by data size, which FedAvg takes, and `simplex_loss/lowest` is the best point of the
    grid; they are the round's numbers and stand at (x, y) too. `simplex_best_first`, `_second` and `_third` are the best
    point's lambda.
    """

    points: int = 21
    on: str = "test"
    samples: int | None = None

    metrics: ClassVar[tuple[str, ...]] = (
        *("simplex_loss", *(f"simplex_loss/{mark}" for mark in ("model_1", "model_2", "model_3", "average", "lowest"))),
        *(f"simplex_best_{ordinal}" for ordinal in ORDER),
    )

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Counts every point, and the marks."""
        return (Passes(self.points * (self.points + 1) // 2 + 4, self.on, self.samples),)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields every point, then the marks, then the best weights."""
        from fedrepro.engine import evaluate_many

        if len(kept.clients) < 3:
            return
        setting = task()
        models = kept.models.at(slice(3))
        sizes = kept.weights[:3].double().cpu().numpy()
        marks, grid = np.stack([*np.eye(3), sizes / sizes.sum()]), lattice(self.points - 1)
        data = evaluate_many.samples_of(setting, self.on, self.samples)
        evaluations = evaluate_many.evaluate_sums(setting.model, torch.from_numpy(np.concatenate([marks, grid])), models, data)
        losses = np.array([evaluation.loss for evaluation in evaluations])
        best = len(marks) + (int(np.nanargmin(losses[len(marks) :])) if np.isfinite(losses[len(marks) :]).any() else 0)
        lambdas = np.concatenate([marks, grid])
        for (x, y), loss in zip((grid @ CORNERS).tolist(), losses[len(marks) :].tolist(), strict=True):
            yield Value(kept.round, "simplex_loss", loss, x=x, y=y)
        for mark, place in zip(("model_1", "model_2", "model_3", "average", "lowest"), (0, 1, 2, 3, best), strict=True):
            x, y = (lambdas[place] @ CORNERS).tolist()
            yield Value(kept.round, f"simplex_loss/{mark}", float(losses[place]))
            yield Value(kept.round, f"simplex_loss/{mark}", float(losses[place]), x=x, y=y)
        for ordinal, value in zip(ORDER, lambdas[best].tolist(), strict=True):
            yield Value(kept.round, f"simplex_best_{ordinal}", value)


def lattice(steps: int) -> np.ndarray:
    """Returns all (i, j, k) / steps of whole numbers i + j + k = steps, [P, 3]."""
    points = [(steps - second - third, second, third) for third in range(steps + 1) for second in range(steps + 1 - third)]
    return np.array(points, float) / steps
