"""One client's round, twice: the plain form, which is the truth in tests, and the tuned form, which is the default on a CPU.

Both run the same client rule on the same batches with SGD (`types.Solver`).
The plain form makes new trees at each step and can be read against a paper; the tuned form updates one flat vector in place.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fedrepro import tree
from fedrepro.methods.parts import LocalRule
from fedrepro.models import Model
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Solver


class TrainingNetwork:
    """A model in training mode that keeps its running statistics: (params, x) -> outputs.

    `closed_form`: whether `gradient` may use the model's own. `valid` [K]: how many samples of each client's batch are real.
    `keys`: of the dropout masks; none drops nothing, and models without dropout need none.
    """

    def __init__(
        self,
        model: Model,
        buffers: Tree,
        *,
        closed_form: bool = False,
        valid: Tensor | None = None,
        keys: Keys | None = None,
    ) -> None:
        self.model, self.buffers, self.closed_form, self.valid, self.keys = model, buffers, closed_form, valid, keys

    def __call__(self, params: Tree, x: Tensor) -> Tensor:
        more: dict[str, Tensor] = {}
        if self.valid is not None and self.model.buffer_layout.names:
            more["valid"] = self.valid
        if self.keys is not None and self.model.dropout:
            more["key"] = self.keys.next()
        outputs, self.buffers = self.model.forward(params, self.buffers, x, True, **more)
        return outputs

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The model's objective."""
        return self.model.loss(outputs, y)

    def begin_step(self, step: int) -> None:
        """What follows belongs to local step `step` of the round."""
        if self.keys is not None:
            self.keys.begin(step)

    def gradient(self, params: Tree, batch: Batch) -> Tree | None:
        """The model's closed form for one client, where it has one."""
        if not self.closed_form or self.model.gradient is None or params.flat.dim() > 1:
            return None
        return self.model.gradient(params, batch.x, batch.y)


@dataclass(frozen=True)
class LocalResult:
    """What one client's round leaves beside its weights."""

    buffers: Tree
    velocity: Tree | None  # of the solver, [D]; none without momentum
    message: Any
    own: Any
    num_steps: int


def train_plain(
    rule: LocalRule,
    data: Batch,
    batches: list[Tensor],
    solver: Solver,
    ctx: ClientContext,
    into: Tensor,
    velocity: Tree | None = None,
) -> LocalResult:
    """The readable reference. `velocity`: what the solver kept of this client's last round; none starts at zero.

    The new weights end up in `into` [D].
    """
    params, velocity = ctx.anchor, tree.zeros_like(ctx.anchor) if velocity is None else velocity
    for step, index_B in enumerate(batches):
        ctx.network.begin_step(step)
        g = rule.direction(params, data.take(index_B), ctx)
        velocity = tree.map(lambda v, g, w: solver.momentum * v + (g + solver.weight_decay * w), velocity, g, params)
        params = tree.axpy(-ctx.client_lr, velocity, params)
    message, own = rule.finish(params, ctx)
    into.copy_(params.flat)
    return LocalResult(ctx.network.buffers, velocity, message, own, len(batches))


def train_tuned(
    rule: LocalRule,
    data: Batch,
    batches: list[Tensor],
    solver: Solver,
    ctx: ClientContext,
    into: Tensor,
    velocity: Tree | None = None,
) -> LocalResult:
    """The same steps, in place on one copy of the global weights and, with momentum, one velocity vector.

    Not in `into` itself: a row of a matrix begins anywhere, and the low bits of products depend on how their memory is aligned.
    """
    params = ctx.anchor.like(ctx.anchor.flat.clone())
    v, client_lr = None, float(ctx.client_lr)
    if solver.momentum:
        v = tree.zeros_like(params) if velocity is None else velocity.like(velocity.flat.clone())
    for step, index_B in enumerate(batches):
        ctx.network.begin_step(step)
        g = rule.direction(params, data.take(index_B), ctx)
        if v is None:
            if solver.weight_decay:
                params.flat.mul_(1 - client_lr * solver.weight_decay)
            tree.add_(params, g, -client_lr)
            continue
        v.flat.mul_(solver.momentum)
        tree.add_(v, g)
        if solver.weight_decay:
            tree.add_(v, params, solver.weight_decay)
        tree.add_(params, v, -client_lr)
    message, own = rule.finish(params, ctx)
    into.copy_(params.flat)
    return LocalResult(ctx.network.buffers, v, message, own, len(batches))


FORMS = {"sequential": train_tuned, "plain": train_plain}
