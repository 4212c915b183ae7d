"""Loss and error on the plane through three models. FedIMA, sections 3.2 and 4, Figures 1, 5(c), 8 and 10; after Izmailov et
al., "Averaging Weights Leads to Wider Optima and Better Generalization", UAI 2018, which the paper cites for it.

u = w_2 - w_1 and v = (w_3 - w_1) - <w_3 - w_1, u> u / ||u||^2, both divided by their norms; (x, y) is w_1 + x u + y v. So x
and y are distances in the space of weights, w_1 lies at (0, 0) and w_2 at (||w_2 - w_1||, 0).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Value, least, spaced
from fedrepro.lazy import Tensor, torch
from fedrepro.registry import require

if TYPE_CHECKING:
    from fedrepro.engine.evaluate_many import Evaluation
    from fedrepro.engine.kept import Global

MARKS = ("model_1", "model_2", "model_3", "average", "global")


@DIAGNOSTICS.register("plane")
@dataclass(frozen=True)
class Plane(Diagnostic):
    """`through`: the first three clients of the cohort after local training (clients), the global models of this round and two
    before it, `apart` rounds from each other (rounds), or the data-weighted means of the clients' models of these rounds, which
    plain averaging would have for global models (means). `apart` below 1 is a share of the run's rounds.

    `points` a side of the grid, which reaches over the models by the share `margin` of their extent at each end. `on`: the test
    set or all clients' training samples; `samples` of them, or all.

    `plane_loss` and `plane_error` have a value at each point. `plane_loss/average` and the like are the round's: of the three
    models, of their average, of the round's global model; they stand at (x, y) too, the global model where its projection
    lies. `lowest` is the best point of the grid. `gain` is the best of the three models less the average: above 0 the average
    is better than each. No value where fewer than three clients trained, where an earlier round is missing, or where the
    models lie on a line.
    """

    through: str = "clients"
    points: int = 21
    margin: float = 0.25
    apart: float = 1.0
    on: str = "test"
    samples: int | None = None

    metrics: ClassVar[tuple[str, ...]] = tuple(
        f"plane_{kind}{mark}" for kind in ("loss", "error") for mark in ("", *(f"/{key}" for key in (*MARKS, "lowest", "gain")))
    )

    def __post_init__(self) -> None:
        require(self.through in ("clients", "rounds", "means"), "through", self.through, "must be clients, rounds or means")
        require(self.margin >= 0, "margin", self.margin, "must be at least 0")
        super().__post_init__()

    def earlier(self, round: int, of: int) -> tuple[int, ...]:
        """Returns two rounds, unless the plane goes through clients."""
        return () if self.through == "clients" else spaced(round, of, self.apart, 2)

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Counts every point, and every mark."""
        return (Passes(self.points**2 + len(MARKS), self.on, self.samples),)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields every point of the grid for both metrics, then the marks."""
        from fedrepro.engine import evaluate_many

        three_models = self._three(kept)
        basis = Basis.through([model.params.flat for model in three_models]) if len(three_models) == 3 else None
        if basis is None:
            return
        setting, models = task(), evaluate_many.stack([*three_models, kept.after])
        data = evaluate_many.samples_of(setting, self.on, self.samples)
        average = [1 / 3, 1 / 3, 1 / 3, 0]
        marks = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], average, [0, 0, 0, 1]], dtype=torch.float64)
        places = [*basis.places, tuple(np.mean(basis.places, 0)), basis.project(kept.after.params.flat)]
        xs, ys = (self._axis([place[axis] for place in places]) for axis in (0, 1))
        grid = [(float(x), float(y)) for y in ys for x in xs]
        weights = torch.tensor([[*basis.weights(*point), 0.0] for point in grid], dtype=torch.float64)
        evaluations = evaluate_many.evaluate_sums(setting.model, torch.cat([marks, weights]), models, data)
        for kind in ("loss", "error"):
            yield from _values(kept.round, kind, evaluations, places, grid)

    def _three(self, kept: RoundModels) -> "list[Global]":
        """The three models, oldest first; fewer if some are missing."""
        if self.through == "clients":
            return [kept.models.at(row) for row in range(min(3, len(kept.clients)))]
        rounds = [*(kept.others[number] for number in sorted(kept.others)), kept]
        if self.through == "rounds":
            return [round_models.after for round_models in rounds]
        return [round_models.mean for round_models in rounds if round_models.clients]

    def _axis(self, places: list[float]) -> np.ndarray:
        low, high = min(places), max(places)
        reach = self.margin * (high - low)
        return np.linspace(low - reach, high + reach, self.points)


def _values(
    round: int, what: str, evaluations: "list[Evaluation]", places: list[tuple[float, float]], grid: list[tuple[float, float]]
) -> Iterator[Value]:
    """Yields the values of one metric; `evaluations`: those of the marks, then those of the grid."""
    metric, values = f"plane_{what}", [getattr(evaluation, what) for evaluation in evaluations]
    mark_values, points = values[: len(MARKS)], values[len(MARKS) :]
    yield from (Value(round, metric, value, x=x, y=y) for (x, y), value in zip(grid, points, strict=True))
    best = int(np.nanargmin(points)) if np.isfinite(points).any() else 0
    marks = [*zip(MARKS, mark_values, places, strict=True), ("lowest", points[best], grid[best])]
    for mark, value, (x, y) in marks:
        yield Value(round, f"{metric}/{mark}", value)
        yield Value(round, f"{metric}/{mark}", value, x=float(x), y=float(y))
    yield Value(round, f"{metric}/gain", least(mark_values[:3]) - mark_values[3])


@dataclass(frozen=True)
class Basis:
    """Coordinates on the plane through three models, in float64."""

    origin: "Tensor"  # w_1, [D]
    u: "Tensor"  # unit vectors, [D]
    v: "Tensor"
    places: list[tuple[float, float]]  # (x, y) of the models

    @classmethod
    def through(cls, models: "list[Tensor]") -> "Basis | None":
        """Returns the plane through the models; None if they lie on a line or are not finite."""
        first, second, third = (model.double() for model in models)
        u, w = second - first, third - first
        length = float(u.norm())
        along = float(w @ u) / length if length else 0.0
        v = w - along * u / length if length else w
        height = float(v.norm())
        if not (length > 0 and height > 1e-12 * float(w.norm())):
            return None
        return cls(first, u / length, v / height, [(0.0, 0.0), (length, 0.0), (along, height)])

    def project(self, model: "Tensor") -> tuple[float, float]:
        """(x, y) of the point of the plane that is nearest to a model [D]."""
        offset = model.double() - self.origin
        return float(offset @ self.u), float(offset @ self.v)

    def weights(self, x: float, y: float) -> tuple[float, float, float]:
        """Returns the weights of the three models, summing to 1, of which (x, y) is the weighted sum."""
        (_, _), (length, _), (along, height) = self.places
        third = y / height
        second = (x - third * along) / length
        return 1 - second - third, second, third
