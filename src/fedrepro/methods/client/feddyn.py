"""FedDyn. Acar et al., ICLR 2021, https://arxiv.org/abs/2111.04263, Algorithm 1.

Client i minimises CE(w) - <h_i, w> + alpha/2 ||w - w_t||^2, then h_i <- h_i - alpha (w_i - w_t). The server keeps
h <- h - alpha/n sum_{i in S} (w_i - w_t) and takes w <- mean_S w_i - h / alpha, both means uniform. All states start at zero. A
client that was never sampled keeps h_i = 0, and n counts the clients that have data. Directions are clipped, since otherwise
the method diverges under strong skew. FedDyn's code clips the gradient before its quadratic term. We clip the whole direction,
which is the same wherever nothing is clipped. That code evaluates mean_S w_i. Here the corrected model, which the clients
receive, is evaluated. Limiting case: with alpha -> 0 clients train as in FedAvg where nothing is clipped, and the first server
step is 1 + |S|/n times the mean update.
"""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.methods.parts import LocalRule, Named, register, require_weighting
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Cohort


@register("client", "feddyn")
@dataclass(frozen=True)
class FedDyn(LocalRule):
    """`alpha` > 0; `clip`: largest norm of a local direction, 0 for none.

    `feddyn(norm=plain, weighting=size, clip=0)+first_client_buffers` is the form of FedLAW's authors: alpha/2 ||w - w_t||, not
    squared; means by data size; h moves by alpha sum_S p_i (w_i - w_t).
    """

    alpha: float = 0.01
    clip: float = 10.0
    norm: str = "squared"
    weighting: str = "uniform"

    def __post_init__(self) -> None:
        require(self.alpha > 0, "feddyn: alpha", self.alpha, "must be greater than 0")
        require(self.clip >= 0, "feddyn: clip", self.clip, "must be at least 0 (0 does not clip)")
        require(self.norm in ("squared", "plain"), "feddyn: norm", self.norm, "must be squared or plain")
        require_weighting("feddyn", self.weighting)

    @property
    def wants(self) -> dict[str, str]:
        """The means of models and of running statistics, with the same weighting."""
        return {
            slot: f"{part}(weighting={self.weighting})" for slot, part in (("aggregate", "mean"), ("buffers", "mean_buffers"))
        }

    @property
    def pull(self) -> float:
        """alpha of the quadratic term. 0 for the plain norm, which pulls equally everywhere and shortens all steps alike."""
        return self.alpha if self.norm == "squared" else 0.0

    def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        offset = tree.sub(params, ctx.anchor)
        if self.norm == "plain":  # the gradient of ||x|| / 2; at x = 0, where there is none, the subgradient 0
            offset = tree.scale(offset, 0.5 / tree.norm(offset).clamp_min(1e-12))
        g = super().direction(params, batch, ctx)
        g = tree.map(lambda g, h, x: g - h + self.alpha * x, g, ctx.client_state["h"], offset)
        return tree.scale(g, (self.clip / tree.norm(g).clamp_min(1e-12)).clamp_max(1.0)) if self.clip else g

    def init_client_state(self, params: Tree) -> Named:
        return {"h": tree.zeros_like(params)}

    def init_shared(self, params: Tree) -> Tree:
        return tree.zeros_like(params)

    def finish(self, params: Tree, local: Named, ctx: ClientContext) -> tuple[None, Named]:
        return None, {"h": tree.axpy(-self.alpha, tree.sub(params, ctx.anchor), ctx.client_state["h"])}

    def absorb(self, shared: Tree, cohort: Cohort) -> Tree:
        share = cohort.fraction if self.weighting == "uniform" else 1.0
        return tree.axpy(-self.alpha * share, tree.weighted_sum(cohort.shares(self.weighting), cohort.updates), shared)

    def correct(self, update: Tree, shared: Tree) -> Tree:
        return tree.axpy(-1 / self.alpha, shared, update)
