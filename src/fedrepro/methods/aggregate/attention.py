"""IGFL's server side: attention between clients. Huang, Shang, Liu, Liu, "Behavior Mimics Distribution", IJCAI 2021,
https://arxiv.org/abs/2106.12300, Algorithm 3.

w <- w + sum_j a_j u_j, where u_j is client j's update and a comes from a softmax of plain inner products, without a scale:

    self     a = mean_i softmax_j <u_i, u_j>
    global   a = softmax_j <mean u, u_j>
    time     a = softmax_j <u_j', u_j>, where u_j' is what client j sent in its last round, 0 before it has sent anything

For `time` the paper prints another formula in section 4.3 and Algorithm 3, a_j = exp<u_j', u_j> / sum_l exp<u_j', u_l>. These
weights need not add up to 1. It is the reading diagonal. Our default, normalised, is the formula above. It rests on the text,
which calls the score similar to the global one. rows is a reading of ours in which each client asks,
a = mean_i softmax_j <u_i', u_j>. Short updates, with ||u||^2 far below 1, give almost equal weights. This is not the attention
of FedAtt, which weighs layers by distance. Limiting cases: equal updates are FedAvg with uniform weights; so is `time` while
nothing was sent before.
"""

import math
from dataclasses import dataclass
from typing import Any

from fedrepro import elementwise, tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods import pairs
from fedrepro.methods.parts import Aggregate, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Cohort, ServerContext

TINY = 1e-12  # squared norms below it have no direction


@register("aggregate", "attention")
@dataclass(frozen=True)
class Attention(Aggregate):
    """`kind`: self, global or time. `reading` of time: normalised, diagonal or rows; the other kinds have one reading."""

    kind: str = "time"
    reading: str = "normalised"

    def __post_init__(self) -> None:
        kinds, readings = ("self", "global", "time"), ("normalised", "diagonal", "rows")
        require(self.kind in kinds, "attention: kind", self.kind, "must be self, global or time")
        require(self.reading in readings, "attention: reading", self.reading, "must be normalised, diagonal or rows")
        if self.kind != "time":
            require(self.reading == readings[0], "attention: reading", self.reading, f"kind {self.kind} has only {readings[0]}")

    @property
    def wants(self) -> dict[str, str]:
        """Running statistics averaged with equal weights."""
        return {"buffers": "mean_buffers(weighting=uniform)"}

    def init(self, params: Tree) -> dict[str, Any]:
        """`last`: for `time`, what each client sent last, by id. `pairs`: for `self`, attention between clients, summed."""
        return {"last": {}, "pairs": {}}

    def __call__(self, x: Cohort, state: dict[str, Any], ctx: ServerContext) -> tuple[Tree, dict[str, Any]]:
        gram_KK = tree.gram(x.updates)
        rows = self._rows(x, gram_KK, state["last"])
        weights_K = rows.diagonal() if self.reading == "diagonal" else rows.mean(0)
        _note(ctx, gram_KK, rows, weights_K)
        if self.kind == "time":
            sent_updates = {client: x.updates.like(x.updates.flat[k].clone()) for k, client in enumerate(x.clients)}
            state = state | {"last": state["last"] | sent_updates}
        if self.kind == "self" and x.population <= pairs.MAX_CLIENTS:
            state = state | {"pairs": pairs.add_round(x, state["pairs"], weights=rows, scores=gram_KK)}
            ctx.diagnostics.update(pairs.means(state["pairs"], "attention"))
        return tree.weighted_sum(weights_K, x.updates), state

    def _rows(self, x: Cohort, gram_KK: Tensor, last: dict[int, Tree]) -> Tensor:
        """The softmax of each query's scores, [queries, K]. There is one query per client, or a single one."""
        if self.kind == "self":
            return gram_KK.softmax(1)
        if self.kind == "global":
            return gram_KK.mean(0, keepdim=True).softmax(1)
        zero_update = x.anchor.like(torch.zeros_like(x.anchor.flat))
        last_updates = tree.stack([last.get(client, zero_update) for client in x.clients])
        scores_KK = tree.inner(last_updates, x.updates)
        return (scores_KK.diagonal().unsqueeze(0) if self.reading == "normalised" else scores_KK).softmax(1)


def _note(ctx: ServerContext, gram_KK: Tensor, rows: Tensor, weights_K: Tensor) -> None:
    """Notes how far attention is from equal weights (an entropy of 1 means equal), how far it moves the model, and the cosines
    of the clients' updates with that movement."""
    clients, squared_norms_K = len(gram_KK), gram_KK.diagonal()
    entropy = -(rows * elementwise.log(rows.clamp_min(1e-300))).sum(1).mean()
    inner_products_K = gram_KK @ weights_K
    squared_movement = float(weights_K @ inner_products_K)
    cosines_K = inner_products_K / elementwise.sqrt((squared_norms_K * squared_movement).clamp_min(TINY**2))
    ctx.notes.update(
        attention_entropy=float(entropy) / math.log(clients) if clients > 1 else 1.0,
        attention_sum=float(weights_K.sum()),
        attention_max=float(weights_K.max()),
        update_norm_squared=float(squared_norms_K.mean()),
    )
    if squared_movement >= TINY:
        values = {"": cosines_K.mean(), "_min": cosines_K.min(), "_max": cosines_K.max()}
        ctx.notes.update({f"attention_cosine{suffix}": float(value) for suffix, value in values.items()})
