"""The weight that clients with exchanged labels have in a round, beside the others' weight. FedLAW, ICML 2023, section 6.2:
FedLAW "can filter out corrupted clients by assigning them lower weights". The paper shows no such weights; the measure is ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS, Diagnostic, Load, RoundModels, Value
from fedrepro.errors import UserError


@DIAGNOSTICS.register("corrupted_weights")
@dataclass(frozen=True)
class CorruptedWeights(Diagnostic):
    """`corrupted_weight` is (sum of lambda / sum of p) over the round's corrupted clients, over the same of its other clients.

    lambda: the weights that the method leaves; where it leaves none, the shares p of the data, and the value is 1. FedLAW-SWA
    learns weights and leaves none. 1: corrupted clients count as their data does; below 1 they count less. Nothing in a round
    whose clients are all corrupted, or none is.
    """

    metrics: ClassVar[tuple[str, ...]] = ("corrupted_weight",)

    def measure(self, kept: RoundModels, task: Load) -> Iterator[Value]:
        """Yields the round's value. UserError for a run without corrupted clients."""
        from fedrepro.engine import corrupted  # needs torch, which planning does without

        spec, seed = task().spec, task().seed
        if not spec.corrupted_clients:
            raise UserError(f"{self.name}: corrupted_clients = 0: no client is corrupted; set it to a share above 0")
        corrupted_ids = corrupted.draw_class_pairs(spec.corrupted_clients, spec.clients, spec.classes, seed).keys()
        corrupted_K = np.isin(kept.clients, [*corrupted_ids])
        shares_K = kept.weights.double().cpu().numpy()
        lambda_K = kept.server["lambda"].double().cpu().numpy() if "lambda" in kept.server else shares_K
        if corrupted_K.any() and not corrupted_K.all():
            with np.errstate(divide="ignore"):  # infinite where the others have no weight at all
                corrupted_ratio, clean_ratio = (
                    lambda_K[mask_K].sum() / shares_K[mask_K].sum() for mask_K in (corrupted_K, ~corrupted_K)
                )
                yield Value(kept.round, "corrupted_weight", float(corrupted_ratio / clean_ratio))
