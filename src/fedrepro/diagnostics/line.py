"""Loss and error on the line through two models, (1 - a) w_A + a w_B. FedIMA, section 3.2, Figures 5(b) and 7(c); after
Goodfellow et al., "Qualitatively characterizing neural network optimization problems", ICLR 2015.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Value, least, spaced
from fedrepro.lazy import torch
from fedrepro.registry import require

if TYPE_CHECKING:
    from fedrepro.engine.kept import Global


@DIAGNOSTICS.register("line")
@dataclass(frozen=True)
class Line(Diagnostic):
    """`between`: the global model `apart` rounds ago and this round's (rounds), this round's and the first client's of its
    cohort (client), or the data-weighted mean of the clients' models and the global model that the server made (mean).
    `apart` below 1 is a share of the run's rounds.

    `points` values of a, from `start` to `stop`; `on`, `samples` as of `plane`. `line_loss` and `line_error` are curves over
    a. `line_loss/first` and `/last` are those of the two models, `/lowest` the best of the curve, and `/gain` the better
    model less the best point strictly between: above 0 there is something better than both. No value where a model is
    missing; no gain where the curve has no point between them.
    """

    between: str = "rounds"
    start: float = -0.5
    stop: float = 1.5
    points: int = 41
    apart: float = 1.0
    on: str = "test"
    samples: int | None = None

    metrics: ClassVar[tuple[str, ...]] = tuple(
        f"line_{kind}{mark}" for kind in ("loss", "error") for mark in ("", "/first", "/last", "/lowest", "/gain")
    )
    x: ClassVar[str] = "from the first model (0) to the second (1)"

    def __post_init__(self) -> None:
        require(self.between in ("rounds", "client", "mean"), "between", self.between, "must be rounds, client or mean")
        require(self.stop > self.start, "stop", self.stop, "must lie above start")
        super().__post_init__()

    def earlier(self, round: int, of: int) -> tuple[int, ...]:
        """Returns one round where the line goes between rounds."""
        return spaced(round, of, self.apart, 1) if self.between == "rounds" else ()

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Counts every point, and both models."""
        return (Passes(self.points + 2, self.on, self.samples),)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the curve of both metrics, then its numbers."""
        from fedrepro.engine import evaluate_many

        ends = self._ends(kept)
        if not ends:
            return
        setting = task()
        data = evaluate_many.samples_of(setting, self.on, self.samples)
        positions = np.linspace(self.start, self.stop, self.points)
        weights = torch.tensor([[1 - a, a] for a in (0.0, 1.0, *positions)], dtype=torch.float64)
        evaluations = evaluate_many.evaluate_sums(setting.model, weights, evaluate_many.stack(ends), data)
        for kind in ("loss", "error"):
            first, last, *curve = (getattr(evaluation, kind) for evaluation in evaluations)
            yield from (Value(kept.round, f"line_{kind}", value, x=float(a)) for a, value in zip(positions, curve, strict=True))
            numbers = {"first": first, "last": last, "lowest": least(curve)}
            inside_values = [value for a, value in zip(positions, curve, strict=True) if 0 < a < 1]
            numbers |= {"gain": least([first, last]) - least(inside_values)} if inside_values else {}
            yield from (Value(kept.round, f"line_{kind}/{key}", value) for key, value in numbers.items())

    def _ends(self, kept: RoundModels) -> "tuple[Global, ...]":
        if self.between == "rounds":
            return tuple(round_models.after for round_models in (*kept.others.values(), kept)) if kept.others else ()
        if not kept.clients:
            return ()
        if self.between == "mean":
            return kept.mean, kept.after
        return kept.after, kept.models.at(0)
