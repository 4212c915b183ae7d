"""Weighted-model ensembling beside weighted averaging: sum p_i f(w_i; x) and f(sum p_i w_i; x). FedIMA, Lemma 1: they differ by
O(D^2), where D is the largest distance of a client's model from the average. The p_i are the clients' shares of the data.

Limiting cases: one client, or a network that is linear in its weights, and the two are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, Passes, RoundModels, Value


@DIAGNOSTICS.register("ensemble")
@dataclass(frozen=True)
class Ensemble(Diagnostic):
    """`outputs`: what the ensemble averages, logits or probabilities; the paper does not say which. `on`: the test set or all
    clients' training samples; `samples` of them, or all.

    `ensemble_loss` and `ensemble_error` are those of the averaged outputs, `average_loss` and `average_error` those of the
    averaged weights. Nothing where no client trained.
    """

    outputs: str = "logits"
    on: str = "test"
    samples: int | None = None

    metrics: ClassVar[tuple[str, ...]] = ("ensemble_loss", "ensemble_error", "average_loss", "average_error")

    def passes(self, clients: int) -> tuple[Passes, ...]:
        """Counts every client's model, and the average."""
        return (Passes(clients + 1, self.on, self.samples),)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the four values, summed in float64."""
        from fedrepro.engine import evaluate_many
        from fedrepro.models import ops

        if not kept.clients:
            return
        setting = task()
        data = evaluate_many.samples_of(setting, self.on, self.samples)
        weights_K = kept.weights.double()
        weights_K = weights_K / weights_K.sum()
        models, hits, loss, count = kept.models, 0, 0.0, 0
        for outputs, y in evaluate_many.outputs_of(setting.model, models, data, self.outputs == "probabilities"):
            mean = (weights_K[:, None, None] * outputs).sum(0)
            hits += int((mean.argmax(-1) == y).sum())
            logits = mean.log() if self.outputs == "probabilities" else mean
            loss += float(ops.cross_entropy(logits, y)) * len(y)
            count += len(y)
        (average,) = evaluate_many.evaluate_sums(setting.model, weights_K[None], models, data)
        values = (loss / count, 100 - 100 * hits / count, average.loss, average.error)
        for metric, value in zip(self.metrics, values, strict=True):
            yield Value(kept.round, metric, value)
