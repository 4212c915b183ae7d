"""How the clients' weights over a training correlate with the size and the class balance of their data. FedLAW, ICML 2023,
Table 11: Pearson correlations of accumulated weights with the data size DS, the heterogeneity degree HD and DS x HD.

HD is the reciprocal of the variance of a client's distribution over classes. In spite of its name it is large where the classes
are balanced. DS counts all samples of a client, HD those that it trains on (our choice).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.diagnostics.classes import class_shares, data_sizes
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, RoundModels, Value
from fedrepro.errors import UserError

SUM, ROUNDS = "lambda_sum", "lambda_rounds"  # what a method leaves: [N] summed weights, and in how many rounds


@DIAGNOSTICS.register("weight_correlation")
@dataclass(frozen=True)
class WeightCorrelation(Diagnostic):
    """The weights are those of all rounds up to the kept one, each client's divided by the number of rounds that it took part
    in: with full participation that changes no correlation, otherwise being drawn often does not count (our choice).

    Clients without training data and those that never took part are left out. Not a number where one has exactly as
    many samples of each class. Where all have the same size, it is rounding that decides between that and a number near 0.
    """

    metrics: ClassVar[tuple[str, ...]] = ("correlation_size", "correlation_heterogeneity", "correlation_both")

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the round's values. UserError for a method that does not leave the sums."""
        if missing := [name for name in (SUM, ROUNDS) if name not in kept.server]:
            raise UserError(f"{self.name}: the method leaves no {' and no '.join(missing)} of its clients; take attentive_law")
        setting = task()
        sums_N, rounds_N = (kept.server[name].double().cpu().numpy() for name in (SUM, ROUNDS))
        sizes_N = data_sizes(setting)
        trained_N = (rounds_N > 0) & (sizes_N > 0)
        sizes, weights = sizes_N[trained_N], sums_N[trained_N] / rounds_N[trained_N]
        degrees = degree(class_shares(setting)[trained_N])
        for metric, values in zip(self.metrics, (sizes, degrees, sizes * degrees), strict=True):
            yield Value(kept.round, metric, correlation(weights, values))


def degree(shares_NC: np.ndarray) -> np.ndarray:
    """1 / variance over classes of each client's distribution, [N]; the variance divides by C. Infinite for equal shares."""
    with np.errstate(divide="ignore"):
        return 1 / shares_NC.var(1)


def correlation(a_N: np.ndarray, b_N: np.ndarray) -> float:
    """Returns Pearson's correlation; not a number where one of them is the same for all, or infinite."""
    a, b = a_N - a_N.mean(), b_N - b_N.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))
