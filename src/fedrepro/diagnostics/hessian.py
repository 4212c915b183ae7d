"""How sharp the minimum is that the global model lies in: the largest eigenvalues of the Hessian of the training loss. FedLAW,
ICML 2023, Figure 10: the largest, and its ratio to the fifth, are smaller where weights shrink.

The largest are those of the highest value, not of the highest magnitude (our choice): they are the steepest ways up. The paper
does not say on how many samples it computes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fedrepro.diagnostics.curvature import EVALUATIONS_FIVE, Hessian
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Value
from fedrepro.registry import require


@DIAGNOSTICS.register("hessian")
@dataclass(frozen=True)
class HessianDiagnostic(Diagnostic):
    """Of the global model after the round, in evaluation mode, on `samples` of all clients' training samples, evenly spaced, or
    on all.

    `hessian_top1` and `hessian_top5` are the first and the fifth eigenvalue, `hessian_ratio` is the first divided by the fifth.
    `hessian_eigenvalue` has the first `top` >= 5 of them, over their rank x.
    """

    top: int = 5
    samples: int | None = 1000

    metrics: ClassVar[tuple[str, ...]] = ("hessian_top1", "hessian_top5", "hessian_ratio", "hessian_eigenvalue")
    x: ClassVar[str] = "rank of the eigenvalue"

    def __post_init__(self) -> None:
        require(self.top >= 5, "top", self.top, "must be at least 5")
        super().__post_init__()

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """The work of products with vectors, counted in evaluated models."""
        return (Passes(EVALUATIONS_FIVE * self.top // 5, "train", self.samples),)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the three numbers, then all eigenvalues."""
        from fedrepro.engine import evaluate_many

        setting = task()
        data = evaluate_many.samples_of(setting, "train", self.samples)
        values = Hessian(setting.model, kept.after, data).top(self.top, setting.seed, kept.round)[0].tolist()
        ratio = values[0] / values[4] if values[4] else float("nan")
        for metric, value in zip(self.metrics, (values[0], values[4], ratio), strict=False):
            yield Value(kept.round, metric, value)
        for rank, value in enumerate(values, 1):
            yield Value(kept.round, "hessian_eigenvalue", value, x=float(rank))
