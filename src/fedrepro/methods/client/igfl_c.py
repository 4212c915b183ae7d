"""IGFL's client side. Huang, Shang, Liu, Liu, "Behavior Mimics Distribution", IJCAI 2021, https://arxiv.org/abs/2106.12300,
Algorithm 2.

A client follows its own gradient and the group's last movement d = w^r - w^{r-1}, and moves away from its own last update u:

    y <- y - client_lr g + (-client_lr g - u / T) / |S| + d / T,    T local steps, |S| clients in the round.

Summed over the round, the correction is d - u / |S| plus 1/|S| of the gradient steps. d is 0 in the first round, and u is 0
until a client has taken part. T is that of this round, also if it changes (our choice). The correction is added to the weights
and does not enter local momentum (our choice; the paper has none). Limiting case: for clients of one size, without momentum and
weight decay, the first round is FedAvg with a client_lr that is 1 + 1/|S| times as high.
"""

from dataclasses import dataclass

from fedrepro import elementwise, tree
from fedrepro.lazy import Tensor, torch
from fedrepro.methods.parts import LocalRule, Named, register
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Cohort

TINY = 1e-12  # squared norms below it have no direction


@register("client", "igfl_c")
@dataclass(frozen=True)
class IgflClient(LocalRule):
    """No arguments. Means are uniform, as in the paper."""

    receives = 1  # w^{r-1}

    @property
    def wants(self) -> dict[str, str]:
        """Means over the cohort in which each client counts once."""
        return {"aggregate": "mean(weighting=uniform)", "buffers": "mean_buffers(weighting=uniform)"}

    def init_shared(self, params: Tree) -> Tree:
        return params

    def absorb(self, shared: Tree, cohort: Cohort) -> Tree:
        """The weights that the clients started from. Once this round is over, they are w^{r-1}."""
        return cohort.anchor

    def init_client_state(self, params: Tree) -> Named:
        return {"last": tree.zeros_like(params)}

    def begin(self, ctx: ClientContext) -> Named:
        """The part of the correction that is the same in every step: d / T - u / (|S| T)."""
        drift = tree.axpy(-1 / ctx.cohort_size, ctx.client_state["last"], _movement(ctx))
        return {"drift": tree.scale(drift, 1 / ctx.num_steps)}

    def step(self, params: Tree, batch: Batch, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
        g = self.direction(params, batch, ctx)
        params, local = ctx.solver.descend(params, g, local, ctx.client_lr)
        correction = tree.axpy(-ctx.client_lr / ctx.cohort_size, g, local["drift"])
        return tree.map(torch.add, params, correction), local

    def finish(self, params: Tree, local: Named, ctx: ClientContext) -> tuple[None, Named]:
        return None, {"last": tree.sub(params, ctx.anchor)}

    def notes(self, params: Tree, local: Named, ctx: ClientContext) -> dict[str, Tensor]:
        """Squared norm of the update, and its cosine with the server's last movement: 0 if there is none."""
        update, movement = tree.sub(params, ctx.anchor), _movement(ctx)
        update_squared, movement_squared = tree.dot(update, update), tree.dot(movement, movement)
        cosine = tree.dot(update, movement) / elementwise.sqrt((update_squared * movement_squared).clamp_min(TINY**2))
        return {"update_norm_squared": update_squared, "movement_cosine": cosine.where(movement_squared >= TINY, 0.0)}


def _movement(ctx: ClientContext) -> Tree:
    """d, the server's movement in the last round in which it moved."""
    assert ctx.shared is not None
    return tree.sub(ctx.anchor, ctx.shared)
