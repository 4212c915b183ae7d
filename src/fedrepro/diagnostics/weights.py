"""How large the weights of the global model are. FedLAW, ICML 2023, Figures 4 (middle) and 10 (left): global weight shrinking
leaves a smaller norm and nearly twice as many weights near zero. How near the paper does not say (`near` is our choice).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, RoundModels, Value
from fedrepro.registry import require


@DIAGNOSTICS.register("weights")
@dataclass(frozen=True)
class Weights(Diagnostic):
    """Of all trainable parameters after the round, biases included. `weight_norm` is Euclidean; `near_zero` is the share of
    weights with |w| < `near`.

    `weight_count` is a histogram: x is the middle of each of `bins` equal bins between -`reach` and `reach`, the same for all
    models; weights outside are not counted.
    """

    near: float = 0.001
    reach: float = 0.1
    bins: int = 81

    metrics: ClassVar[tuple[str, ...]] = ("weight_norm", "near_zero", "weight_count")
    x: ClassVar[str] = "weight"

    def __post_init__(self) -> None:
        require(self.near > 0, "near", self.near, "must be greater than 0")
        require(self.bins >= 1, "bins", self.bins, "must be at least 1")
        super().__post_init__()

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields both numbers, then the histogram; in float64."""
        w = kept.after.params.flat.double().cpu().numpy()
        yield Value(kept.round, "weight_norm", float(np.linalg.norm(w)))
        yield Value(kept.round, "near_zero", float((np.abs(w) < self.near).mean()))
        counts, edges = np.histogram(w, self.bins, (-self.reach, self.reach))
        for count, low, high in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
            yield Value(kept.round, "weight_count", float(count), x=float(low + high) / 2)
