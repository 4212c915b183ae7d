"""Early-stopped attentive LAW. FedLAW, ICML 2023, https://arxiv.org/abs/2302.10911, section 5.2 and Figure 5: "we adopt early
stopping near the critical point when conducting attentive LAW and use data-sized weights after the stopping round".

The paper does not say which round that is. With `stop=coherence` (our choice, after its words "the critical point is the round
that the coherence is near zero") it is the first round whose local gradient coherence is not positive,

    sum_{i != j} p_i p_j cos(u_i, u_j) <= 0,

with data-size weights p and updates u. Definition 5.1 has another factor 1/K, which does not change the sign. An update of
length 0 has cosine 0. A cohort of one client has no pairs, so it does not stop the learning.

Running statistics are averaged as in FedAvg, and until the stop the passes on the proxy set move them further. With
`server_buffers` they would stay as they were at the stop (our choice; the paper's network has none).
Limiting cases: stop = 0 is FedAvg; a stop that the rounds never reach is attentive LAW.
"""

from dataclasses import dataclass
from typing import Any

from fedrepro import elementwise, tree
from fedrepro.lazy import torch
from fedrepro.methods.aggregate.attentive_law import AttentiveLaw, weighted_update
from fedrepro.methods.parts import register
from fedrepro.registry import require
from fedrepro.rounds import first_round, require_start
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext

TINY = 1e-12  # squared norms below it have no direction


@register("aggregate", "early_stopped_law")
@dataclass(frozen=True)
class EarlyStoppedLaw(AttentiveLaw):
    """`stop`: coherence, or the first round with data-size weights: a round (from 0), or a share of the rounds, rounded up."""

    stop: int | float | str = "coherence"

    counts_rounds = frozenset({"stop"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.stop, str):
            rule = "must be coherence, a round or a share of the rounds"
            require(self.stop == "coherence", "early_stopped_law: stop", self.stop, rule)
        else:
            require_start("early_stopped_law: stop", self.stop)

    @property
    def wants(self) -> dict[str, str]:
        return {}

    def init(self, params: Tree) -> Any:
        """Whether learning has stopped, and the sums of attentive LAW."""
        return {"stopped": False, "sums": {}}

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        stopped = state["stopped"] or self._stops(x, ctx)
        ctx.notes["stopped"] = float(stopped)
        lambda_K = x.weights
        if not stopped:
            _, lambda_K = self.learn(x.models, x.weights, ctx, gamma=False, weights_too=True)
        update, sums = weighted_update(x, lambda_K, state["sums"], ctx)
        return update, {"stopped": stopped, "sums": sums}

    def _stops(self, x: Cohort, ctx: ServerContext) -> bool:
        if not isinstance(self.stop, str):
            return ctx.round >= first_round(self.stop, ctx.rounds)
        if len(x.clients) == 1:
            return False
        ctx.notes["coherence"] = coherence(x)
        return ctx.notes["coherence"] <= 0


def coherence(x: Cohort) -> float:
    """sum_{i != j} p_i p_j cos(u_i, u_j), in float64."""
    gram_KK = tree.gram(x.updates)
    squared_norms_K = gram_KK.diagonal().clone()
    norms_K = elementwise.sqrt(squared_norms_K.clamp_min(TINY))
    scaled_weights_K = torch.where(squared_norms_K >= TINY, x.weights.double() / norms_K, 0.0)
    return float(scaled_weights_K @ gram_KK.fill_diagonal_(0) @ scaled_weights_K)
