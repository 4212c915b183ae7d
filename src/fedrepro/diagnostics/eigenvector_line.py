"""The loss along the direction in which it curves most, from the global model. FedLAW, ICML 2023, Figure 4 (right).

The models are w + x v, where v is the unit eigenvector of the largest eigenvalue of the training loss's Hessian. The paper does
not say how far it goes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.diagnostics.curvature import EVALUATIONS_ONE, Hessian
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Value
from fedrepro.lazy import torch


@DIAGNOSTICS.register("eigenvector_line")
@dataclass(frozen=True)
class EigenvectorLine(Diagnostic):
    """`points` distances x from -`reach` to `reach` (0.5 is our choice). The largest element of v is positive.

    The eigenvector is that of `samples` training samples, as in `hessian`. The loss is that of as many samples `on` the
    training set (train) or the test set (test). Running statistics stay as they are.
    """

    reach: float = 0.5
    points: int = 21
    on: str = "train"
    samples: int | None = 1000

    metrics: ClassVar[tuple[str, ...]] = ("eigen_loss",)
    x: ClassVar[str] = "distance along the top eigenvector"

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Counts the eigenvector, then every point."""
        return Passes(EVALUATIONS_ONE, "train", self.samples), Passes(self.points, self.on, self.samples)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the curve."""
        from fedrepro.engine import evaluate_many

        setting, xs = task(), np.linspace(-self.reach, self.reach, self.points)
        train, data = (evaluate_many.samples_of(setting, on, self.samples) for on in ("train", self.on))
        _, vectors = Hessian(setting.model, kept.after, train).top(1, setting.seed, kept.round)
        flat = kept.after.params.flat
        direction = kept.after.params.like(torch.from_numpy(vectors[:, 0].copy()).to(flat.device, flat.dtype))
        for x, evaluation in zip(xs, evaluate_many.evaluate_along(setting.model, kept.after, direction, xs, data), strict=True):
            yield Value(kept.round, "eigen_loss", evaluation.loss, x=float(x))
