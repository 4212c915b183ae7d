"""Loss and error of the global model with all its weights multiplied by a factor. FedLAW, ICML 2023, Figure 4 (left)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Value
from fedrepro.registry import require


@DIAGNOSTICS.register("rescaled")
@dataclass(frozen=True)
class Rescaled(Diagnostic):
    """`points` factors x from `low` to `high`, on all trainable parameters, biases included; running statistics stay as they
    are. `on`: the test set or all clients' training samples; `samples` of them, or all."""

    low: float = 0.5
    high: float = 1.5
    points: int = 21
    on: str = "test"
    samples: int | None = None

    metrics: ClassVar[tuple[str, ...]] = ("rescaled_loss", "rescaled_error")
    x: ClassVar[str] = "factor on all weights"

    def __post_init__(self) -> None:
        require(self.high > self.low, "high", self.high, "must lie above low")
        super().__post_init__()

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Counts every point."""
        return (Passes(self.points, self.on, self.samples),)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the curve of both metrics."""
        from fedrepro.engine import evaluate_many

        setting, factors = task(), np.linspace(self.low, self.high, self.points)
        data = evaluate_many.samples_of(setting, self.on, self.samples)
        evaluations = evaluate_many.evaluate_along(setting.model, kept.after, kept.after.params, factors - 1, data)
        for metric, key in zip(self.metrics, ("loss", "error"), strict=True):
            yield from (
                Value(kept.round, metric, getattr(evaluation, key), x=float(x))
                for x, evaluation in zip(factors, evaluations, strict=True)
            )
