"""Heterogeneity coherence: how like the classes of a round's cohort are those of all clients. FedLAW, ICML 2023, Definition 5.2
and Figure 7.

sim(sum_S lambda_i D_i, sum_all p_j D_j), where D_i is the distribution of classes at client i. The paper does not
say which similarity it means. Here it is 1 minus the total variation, between 0 and 1, and the cosine beside it (our choice).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.diagnostics.classes import class_shares, data_sizes
from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, RoundModels, Value


@DIAGNOSTICS.register("heterogeneity")
@dataclass(frozen=True)
class Heterogeneity(Diagnostic):
    """p and lambda are shares of the data. In the metrics that end in `_weighted` lambda is what the method learned in the
    round; a method that learns none has no value there.

    `class_share` is the cohort's distribution over classes x. A round in which no client trained has no value.
    """

    metrics: ClassVar[tuple[str, ...]] = tuple(
        f"{metric}{ending}"
        for ending in ("", "_weighted")
        for metric in ("heterogeneity_coherence", "heterogeneity_cosine", "class_share")
    )
    x: ClassVar[str] = "class"

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the values by data sizes, then those by learned weights."""
        if not kept.clients:
            return
        setting = task()
        shares_NC, sizes_N = class_shares(setting), data_sizes(setting)
        overall_C = sizes_N @ shares_NC / sizes_N.sum()
        lambdas = {"": kept.weights} | ({"_weighted": kept.server["lambda"]} if "lambda" in kept.server else {})
        for ending, lambda_K in lambdas.items():
            weights_K = lambda_K.double().cpu().numpy()
            cohort_C = weights_K @ shares_NC[kept.clients] / weights_K.sum()
            yield Value(kept.round, f"heterogeneity_coherence{ending}", overlap(cohort_C, overall_C))
            yield Value(kept.round, f"heterogeneity_cosine{ending}", cosine(cohort_C, overall_C))
            for label, share in enumerate(cohort_C.tolist()):
                yield Value(kept.round, f"class_share{ending}", share, x=float(label))


def overlap(p_C: np.ndarray, q_C: np.ndarray) -> float:
    """1 minus the total variation of two distributions: 1 - sum_c |p_c - q_c| / 2."""
    return 1 - float(np.abs(p_C - q_C).sum()) / 2


def cosine(p_C: np.ndarray, q_C: np.ndarray) -> float:
    """Returns the cosine of the angle between them."""
    return float(p_C @ q_C / np.linalg.norm(p_C) / np.linalg.norm(q_C))
