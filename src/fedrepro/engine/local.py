"""One client's round in two forms: the plain form, which tests take as the truth, and the tuned form, the default on a CPU.

Both run the same client rule on the same batches with SGD (`types.Solver`). The plain form makes new trees at each step and can
be compared with a paper. The tuned form updates one flat vector in place.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from torch import Tensor

from fedrepro import tree
from fedrepro.errors import UserError
from fedrepro.methods.parts import LocalRule
from fedrepro.models import Model, no_last_layer
from fedrepro.models.dropout import Keys
from fedrepro.tree import Tree
from fedrepro.types import VELOCITY, Batch, ClientContext, LastLayer


class TrainingNetwork:
    """A model in training mode that keeps its running statistics: (params, x) -> outputs.

    `train`: False means evaluation mode, which does not change the statistics.
    `closed_form`: whether `gradient` may use the model's closed form.
    `valid` [K]: how many samples of each client's batch are real.
    `keys`: keys of the dropout masks. Without keys nothing is dropped. Models without dropout need none.
    """

    def __init__(
        self,
        model: Model,
        buffers: Tree,
        *,
        closed_form: bool = False,
        valid: Tensor | None = None,
        keys: Keys | None = None,
        train: bool = True,
    ) -> None:
        self.model, self.buffers, self.closed_form, self.valid, self.keys = model, buffers, closed_form, valid, keys
        self.train = train

    def __call__(self, params: Tree, x: Tensor) -> Tensor:
        return self._pass(self.model.forward, params, x)

    def features(self, params: Tree, x: Tensor) -> Tensor:
        """The input of the last layer."""
        if self.model.features is None:
            raise UserError(no_last_layer(self.model.name))
        return self._pass(self.model.features, params, x)

    def head(self, params: Tree, features: Tensor) -> Tensor:
        """Applies the last layer alone."""
        assert self.model.head is not None
        return self.model.head(params, features)

    @property
    def last_layer(self) -> LastLayer:
        """The shapes of the last layer."""
        return self.model.last_layer

    def _pass(self, forward: Callable[..., tuple[Tensor, Tree]], params: Tree, x: Tensor) -> Tensor:
        arguments: dict[str, Tensor] = {}
        if self.valid is not None and self.model.buffer_layout.names:
            arguments["valid"] = self.valid
        if self.keys is not None and self.model.dropout:
            arguments["key"] = self.keys.next()
        outputs, self.buffers = forward(params, self.buffers, x, self.train, **arguments)
        return outputs

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The model's objective."""
        return self.model.loss(outputs, y)

    def begin_step(self, step: int) -> None:
        """Marks what follows as local step `step` of the round."""
        if self.keys is not None:
            self.keys.begin(step)

    def gradient(self, params: Tree, batch: Batch) -> Tree | None:
        """The gradient by the model's closed form, for one client. None if there is none or it is switched off."""
        if not self.closed_form or self.model.gradient is None or params.flat.dim() > 1:
            return None
        return self.model.gradient(params, batch.x, batch.y)

    def squared_gradient(self, params: Tree, x: Tensor) -> Tree | None:
        """The same for the gradient of the outputs' mean squared norm."""
        if not self.closed_form or self.model.squared_gradient is None or params.flat.dim() > 1:
            return None
        return self.model.squared_gradient(params, x)


@dataclass(frozen=True)
class LocalResult:
    """The results of one client's round beside its weights."""

    buffers: Tree
    message: Tree | None
    client_state: dict[str, Tree]  # the rule's state, and the solver's velocity if it has momentum
    num_steps: int
    notes: dict[str, Tensor]  # each []
    probes: dict[str, Tree] = field(default_factory=dict)


def train_plain(
    rule: LocalRule, batches: Iterable[Batch], ctx: ClientContext, weights_out: Tensor, velocity: Tree | None = None
) -> LocalResult:
    """The readable reference. `velocity` is what the solver kept from this client's last round; None starts at zero.

    Writes the new weights into `weights_out` [D].
    """
    params, local = ctx.anchor, _begin(rule, ctx, velocity)
    for step, batch in enumerate(batches):
        ctx.network.begin_step(step)
        params, local = rule.step(params, batch, local, ctx)
    return _finish(rule, params, local, ctx, weights_out)


def train_tuned(
    rule: LocalRule, batches: Iterable[Batch], ctx: ClientContext, weights_out: Tensor, velocity: Tree | None = None
) -> LocalResult:
    """The same steps, in place on one copy of the global weights and, with momentum, one velocity vector. Rules with their own
    step take the plain form.

    It does not compute in `weights_out` itself: a row of a matrix may begin at any address, and the low bits of products depend
    on how their memory is aligned.
    """
    if rule.steps_alone:
        return train_plain(rule, batches, ctx, weights_out, velocity)
    params, local, solver = ctx.anchor.like(ctx.anchor.flat.clone()), _begin(rule, ctx, velocity), ctx.solver
    v, client_lr = local.get(VELOCITY), float(ctx.client_lr)
    for step, batch in enumerate(batches):
        ctx.network.begin_step(step)
        g = rule.direction(params, batch, ctx)
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
    return _finish(rule, params, local, ctx, weights_out)


def _begin(rule: LocalRule, ctx: ClientContext, velocity: Tree | None) -> dict[str, Tree]:
    """The local state before the first step."""
    local = rule.begin(ctx)
    if ctx.solver.momentum:
        initial_velocity = tree.zeros_like(ctx.anchor) if velocity is None else velocity.like(velocity.flat.clone())
        local = local | {VELOCITY: initial_velocity}
    return local


def _finish(rule: LocalRule, params: Tree, local: dict[str, Tree], ctx: ClientContext, weights_out: Tensor) -> LocalResult:
    message, own_state = rule.finish(params, local, ctx)
    if VELOCITY in local:
        own_state = own_state | {VELOCITY: local[VELOCITY]}
    notes = rule.notes(params, local, ctx)
    weights_out.copy_(params.flat)
    assert isinstance(ctx.num_steps, int)
    return LocalResult(ctx.network.buffers, message, own_state, ctx.num_steps, notes)


FORMS = {"sequential": train_tuned, "plain": train_plain}
