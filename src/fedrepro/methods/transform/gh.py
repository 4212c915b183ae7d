"""Gradient harmonisation (GH). Zhang, Sun, Chen, "FedGH", slides, undated in our copy; later https://arxiv.org/abs/2309.06692.

For every client i of the cohort and every other j, in random order: if c = <g_i, r_j> < 0, g_i <- g_i - (c / d) r_j. This
removes from g_i what works against client j (PCGrad of Yu et al., NeurIPS 2020, between clients instead of tasks). Signs and a
common scale do not matter, so updates w_k - w stand for the accumulated gradients w - w_k. Trainable parameters only. A client
whose update has a norm below 1e-6 counts as one that did not move (our choice): with a client_lr near 1e-7, GH may do nothing.
The aggregate then takes the mean; the paper's tables use 1/K, `gh+mean(weighting=uniform)`.

The computation uses coefficients: with the Gram matrix M of the updates, row i of A says how they combine to g_i, and
<g_i, r_j> is an entry of A M. Limiting cases: no conflict, or a single client, leaves the updates as they are, to the bit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedrepro import tree
from fedrepro.lazy import torch
from fedrepro.methods.parts import Transform, register
from fedrepro.registry import require
from fedrepro.types import Cohort, ServerContext

TINY = 1e-12  # squared norms below it belong to clients that did not move: the code never divides by them


@register("transform", "gh")
@dataclass(frozen=True)
class GradientHarmonisation(Transform):
    """What the slides leave open, as arguments.

    `against`: what r_j is. copies: client j's own update (PCGrad). in_place: what is left of it if its turn came before (the
    slides' notation). pairs: each conflicting pair is treated once (the later version, according to a summary of it), both from
    their own updates (our choice). `denominator`: other, d = ||r_j||^2, a projection; own, d = ||g_i||^2, exactly the slides'
    formula, which is a projection only if both are equally long. `order` of the j: random (by the run's own stream) or
    ascending.
    """

    against: str = "copies"
    denominator: str = "other"
    order: str = "random"

    def __post_init__(self) -> None:
        require(
            self.against in ("copies", "in_place", "pairs"), "gh: against", self.against, "must be copies, in_place or pairs"
        )
        require(self.denominator in ("other", "own"), "gh: denominator", self.denominator, "must be other or own")
        require(self.order in ("random", "ascending"), "gh: order", self.order, "must be random or ascending")

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Cohort, Any]:
        gram_KK = tree.gram(x.updates).cpu().numpy()
        coefficients_KK = self.harmonise(gram_KK, ctx.rng("gh"))
        _note(ctx, gram_KK, coefficients_KK)
        changed_rows = np.flatnonzero((coefficients_KK != np.eye(len(gram_KK))).any(axis=1))
        if not len(changed_rows):
            return x, state
        flat, row_index = x.updates.flat, torch.from_numpy(changed_rows).to(x.updates.flat.device)
        new_rows = torch.from_numpy(coefficients_KK[changed_rows]).to(flat) @ flat
        return replace(x, updates=x.updates.like(flat.index_copy(0, row_index, new_rows))), state

    def harmonise(self, gram_KK: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Row i [K]: the harmonised g_i as a combination of the updates whose inner products are `gram_KK` (float64)."""
        clients = len(gram_KK)
        original_KK, harmonised_KK = np.eye(clients), np.eye(clients)
        for i, j in self._client_pairs(clients, generator):
            r_j = harmonised_KK[j] if self.against == "in_place" else original_KK[j]
            g_i = original_KK[i] if self.against == "pairs" else harmonised_KK[i]
            inner_product = g_i @ gram_KK @ r_j
            denominator_row = r_j if self.denominator == "other" else g_i
            denominator = denominator_row @ gram_KK @ denominator_row
            if inner_product < 0 and denominator >= TINY:
                harmonised_KK[i] = harmonised_KK[i] - (inner_product / denominator) * r_j
        return harmonised_KK

    def _client_pairs(self, clients: int, generator: np.random.Generator) -> Iterator[tuple[int, int]]:
        """Every ordered pair of different clients: the first ascending, and for each of them the others in the chosen order."""
        for i in range(clients):
            peers = np.delete(np.arange(clients), i)
            yield from ((i, int(j)) for j in (generator.permutation(peers) if self.order == "random" else peers))


def _note(ctx: ServerContext, gram_KK: np.ndarray, coefficients_KK: np.ndarray) -> None:
    """Notes the share of ordered pairs in conflict, and how much longer harmonising makes the mean update (claim GH-7)."""
    clients = len(gram_KK)
    ctx.notes["gh_conflicts"] = float((gram_KK < 0).sum() / max(1, clients * (clients - 1)))
    mean_K, harmonised_K = np.full(clients, 1 / clients), coefficients_KK.mean(axis=0)
    squared_norm_before, squared_norm_after = mean_K @ gram_KK @ mean_K, harmonised_K @ gram_KK @ harmonised_K
    if squared_norm_before >= TINY:
        ctx.notes["gh_norm_ratio"] = float(np.sqrt(max(0.0, squared_norm_after) / squared_norm_before))
