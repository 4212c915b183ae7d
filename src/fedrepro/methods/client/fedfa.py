"""FedFA, feature anchors. Zhou, Zhang, Tsang, IEEE TMC 2024, https://arxiv.org/abs/2211.09299, Algorithm 1.

The server keeps an anchor a_c for the features f(x) of each class c. A client's loss pulls features to them. After every batch
the last layer is calibrated: a step of Adam (rate 1e-3) teaches it that a_c is of class c. The loss on the batch is

    CE + coefficient / C sum_samples ||f(x) - a_y||^2 / count_y,    the anchors constant during a round.

Meanwhile the client follows its own features: s_c is the mean over batches of the batch's mean feature of class c. That is 0 if
the batch has no sample of c, so s_c is shorter than a true mean, as in the authors' code. For classes that it has

    a_c <- momentum a_c + (1 - momentum) s_c,

and the server takes the mean of the clients' anchors by data size. Features come from the pass that makes the gradient. The
last layer's Adam starts anew each round, as in that code. `anchors.initial_anchors` draws the first anchors by the seed.

Round 0 has no anchor term, as in FedIMA's authors' code, where calibration begins in the round after R/4. Here it begins in
round calibrate_from R, one round sooner if that is a whole number. FedFA's own code has both from round 0 on. Limiting case:
coefficient = 0 with calibrate_from = 1 is FedAvg; anchors then have no effect, and there are none.
"""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.lazy import Tensor
from fedrepro.methods import anchors
from fedrepro.methods.parts import LocalRule, Named, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Cohort, Network, Start


@register("client", "fedfa")
@dataclass(frozen=True)
class FedFa(LocalRule):
    """`coefficient` >= 0. `momentum` in [0, 1] of anchors, 0.9 on PACS. `calibrate_from` in [0, 1], a share of the rounds; 1 is
    never. `mix`: round moves a client's anchors once, by s over all its batches; epoch moves them after each local epoch by
    that epoch's s (the authors' code)."""

    coefficient: float = 0.1
    momentum: float = 0.5
    calibrate_from: float = 0.25
    mix: str = "round"

    def __post_init__(self) -> None:
        require(self.coefficient >= 0, "fedfa: coefficient", self.coefficient, "must be at least 0")
        for key in ("momentum", "calibrate_from"):
            require(0 <= getattr(self, key) <= 1, f"fedfa: {key}", getattr(self, key), "must be from 0 to 1")
        require(self.mix in ("round", "epoch"), "fedfa: mix", self.mix, "must be round or epoch")

    @property
    def steps_alone(self) -> bool:  # otherwise anchors have no effect
        return self.coefficient > 0 or self.calibrate_from < 1

    def numbers(self, network: Network) -> tuple[int, int]:
        """The size of the anchors, in both directions."""
        count = network.last_layer.classes * network.last_layer.features[-1] if self.steps_alone else 0
        return count, count

    def draw_shared(self, params: Tree, start: Start) -> Tree | None:
        return (
            anchors.initial_anchors(start.network.last_layer, params.flat, start.rng("anchors")) if self.steps_alone else None
        )

    def begin(self, ctx: ClientContext) -> Named:
        if ctx.shared is None:
            return {}
        return anchors.initial_gathering(ctx.shared) | (anchors.initial_adam_state(ctx) if self._calibrates(ctx) else {})

    def step(self, params: Tree, batch: Batch, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
        if ctx.shared is None:
            return super().step(params, batch, local, ctx)
        batch_features: list[Tensor] = []
        g = tree.gradient(lambda p: self._objective(p, batch, ctx, batch_features), params)
        params, local = ctx.solver.descend(params, g, local, ctx.client_lr)
        if self._calibrates(ctx):
            params, adam_state = anchors.calibrate(params, ctx.shared["anchors"], local, ctx)
            local = local | adam_state
        batches = ctx.num_steps if self.mix == "round" else ctx.num_steps / ctx.local_epochs
        return params, local | anchors.gather_batch(batch_features[0], batch.y, local, batches, self.momentum)

    def finish(self, params: Tree, local: Named, ctx: ClientContext) -> tuple[Tree | None, Named]:
        return local.get("anchors"), ctx.client_state

    def absorb(self, shared: Tree | None, cohort: Cohort) -> Tree | None:
        return shared if cohort.messages is None else tree.weighted_sum(cohort.weights, cohort.messages)

    def _calibrates(self, ctx: ClientContext) -> bool:
        return self.calibrate_from < 1 and ctx.round >= self.calibrate_from * ctx.rounds

    def _objective(self, params: Tree, batch: Batch, ctx: ClientContext, features: list[Tensor]) -> Tensor:
        """The loss on a batch. Appends the batch's features to `features`."""
        assert ctx.shared is not None
        h = ctx.network.features(params, batch.x)
        features.append(h.detach())
        loss = ctx.network.loss(ctx.network.head(params, h), batch.y)
        return loss + self.coefficient * anchors.distance(h, batch.y, ctx.shared["anchors"]) if ctx.round else loss
