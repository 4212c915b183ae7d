"""Loss and error of the average of the first k clients' models, k = 1, ..., K: how much each further model helps. FedIMA,
section 5.3.3 and Figure 4: the variance of its bound falls with the number of averaged models, with diminishing returns.

The paper does not say which clients come first. Here it is the mean over some random orders (our choice).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fedrepro import rng
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Value
from fedrepro.lazy import torch
from fedrepro.registry import require


@DIAGNOSTICS.register("averaged_models")
@dataclass(frozen=True)
class AveragedModels(Diagnostic):
    """`orders` of the clients, drawn anew for each round. Models count by their data, weights sum to 1. `on`: the test set or
    all clients' training samples; `samples` of them, or all.

    `averaged_error` and `averaged_loss` are curves over k; the round's value is that of all K models.
    """

    orders: int = 5
    on: str = "test"
    samples: int | None = None

    metrics: ClassVar[tuple[str, ...]] = ("averaged_error", "averaged_loss")
    x: ClassVar[str] = "number of averaged models"

    def __post_init__(self) -> None:
        require(self.orders >= 1, "orders", self.orders, "must be at least 1")
        super().__post_init__()

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Counts all averages of every order but the last one, which all orders share."""
        return (Passes(self.orders * (clients - 1) + 1, self.on, self.samples),)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the curve of both metrics, then the round's value. Nothing where no client trained."""
        from fedrepro.engine import evaluate_many

        count = len(kept.clients)
        if not count:
            return
        setting = task()
        data = evaluate_many.samples_of(setting, self.on, self.samples)
        generator = rng.stream(setting.seed, "averaged_models", kept.round)
        sizes = kept.weights.double().cpu()
        orders = [generator.permutation(count).tolist() for _ in range(self.orders)]
        rows = [_shares(sizes, order[:k]) for order in orders for k in range(1, count)]
        evaluations = evaluate_many.evaluate_sums(setting.model, torch.stack([*rows, sizes / sizes.sum()]), kept.models, data)
        for metric, key in zip(self.metrics, ("error", "loss"), strict=True):
            *partial_values, final_value = (getattr(evaluation, key) for evaluation in evaluations)
            for k in range(1, count):
                at_k = partial_values[k - 1 :: count - 1]
                yield Value(kept.round, metric, sum(at_k) / len(at_k), x=float(k))
            yield Value(kept.round, metric, final_value, x=float(count))
            yield Value(kept.round, metric, final_value)


def _shares(sizes_K: "torch.Tensor", places: "list[int]") -> "torch.Tensor":
    """Returns the weights [K] of the models at `places` by their data; alike where they have none."""
    weights_K = torch.zeros_like(sizes_K)
    weights_K[places] = sizes_K[places]
    if not float(weights_K.sum()):
        weights_K[places] = 1.0
    return weights_K / weights_K.sum()
