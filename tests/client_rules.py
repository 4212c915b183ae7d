"""Toy methods that use what the registered ones do not: a step of their own, state of several trees, models of clients' own,
measurements on held-out samples. Shaped like IGFL's client, pFedMe and Elastic aggregation, and simpler."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from fedrepro import tree
from fedrepro.methods.compose import Method, compose
from fedrepro.methods.parts import Aggregate, LocalRule, Named
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, ClientContext, Cohort, ServerContext

COUNT = Layout.of({"rounds": ()})


@dataclass(frozen=True)
class OwnMomentum(LocalRule):
    """After the solver's step: minus the mean direction so far / cohort size, plus a share of the server's last movement.

    Between rounds a client keeps its mean direction and in how many rounds it took part; the server keeps where it was.
    """

    name = "own_momentum"
    slot = "client"
    receives = 1

    def init_shared(self, params: Tree) -> Tree:
        return params

    def init_own(self, params: Tree) -> Named:
        return {"mean": tree.zeros_like(params), "count": Tree(COUNT, params.flat.new_zeros(1))}

    def begin(self, ctx: ClientContext) -> Named:
        return {"mean": ctx.own["mean"]}

    def step(self, params: Tree, batch: Batch, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
        after, local = super().step(params, batch, local, ctx)
        moved = tree.sub(after, params)
        mean = tree.map(lambda mean, moved: 0.5 * mean + 0.5 * moved, local["mean"], moved)
        assert ctx.shared is not None
        after = tree.axpy(1 / ctx.cohort_size, mean, after)
        after = tree.axpy(0.1 / ctx.num_steps, tree.sub(ctx.anchor, ctx.shared), after)
        return after, local | {"mean": mean}

    def finish(self, params: Tree, local: Named, ctx: ClientContext) -> tuple[None, Named]:
        return None, {"mean": local["mean"], "count": tree.map(lambda n: n + 1, ctx.own["count"])}

    def notes(self, params: Tree, local: Named, ctx: ClientContext) -> dict[str, Tensor]:
        return {"own_momentum": tree.norm(local["mean"]), "times": ctx.own["count"].flat[..., 0] + 1}

    def absorb(self, shared: Tree, cohort: Cohort) -> Tree:
        return cohort.anchor


@dataclass(frozen=True)
class Personal(LocalRule):
    """Each step moves a model of the client's own on the batch, twice, and pulls the weights towards it."""

    name = "personal"
    slot = "client"

    def init_own(self, params: Tree) -> Named:
        return {"theta": params}

    def begin(self, ctx: ClientContext) -> Named:
        return {"theta": ctx.own["theta"]}

    def step(self, params: Tree, batch: Batch, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
        theta = local["theta"]
        for _ in range(2):
            g = tree.map(lambda g, theta, w: g + 0.5 * (theta - w), self.direction(theta, batch, ctx), theta, params)
            theta = tree.axpy(-ctx.client_lr, g, theta)
        return tree.map(lambda w, theta: w - 0.2 * (w - theta), params, theta), local | {"theta": theta}

    def finish(self, params: Tree, local: Named, ctx: ClientContext) -> tuple[None, Named]:
        return None, {"theta": local["theta"]}

    def personalise(self, batches: Iterable[Batch], ctx: ClientContext) -> Tree:
        theta = ctx.own["theta"]
        for batch in batches:
            theta = tree.axpy(-ctx.client_lr, self.direction(theta, batch, ctx), theta)
        return theta


@dataclass(frozen=True)
class Meta(LocalRule):
    """The gradient on the second batch after a step along that on the first; `hessian_free`: less a difference quotient on the
    third batch, along the second's gradient. Shaped like Per-FedAvg."""

    name = "meta"
    slot = "client"

    inner_lr: float = 0.05
    hessian_free: bool = False

    @property
    def batches_per_step(self) -> int:
        return 3 if self.hessian_free else 2

    def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        outer, *third = batch.others
        inner = super().direction(params, batch, ctx)
        g = super().direction(tree.axpy(-self.inner_lr, inner, params), outer, ctx)
        if not self.hessian_free:
            return g
        ahead, behind = (super(Meta, self).direction(tree.axpy(d, g, params), third[0], ctx) for d in (0.01, -0.01))
        return tree.axpy(-self.inner_lr / 0.02, tree.sub(ahead, behind), g)


@dataclass(frozen=True)
class Sensitivity(Aggregate):
    """The mean update, elements scaled down by how much the outputs on held-out samples depend on them."""

    name = "sensitivity"
    slot = "aggregate"
    sends = 1

    def probe(self, batches: Iterable[Batch], ctx: ClientContext) -> Tree:
        omega = tree.zeros_like(ctx.anchor)
        for batch in batches:
            loss = lambda p, x=batch.x: ctx.network(p, x).square().sum(-1).mean()  # noqa: E731
            omega = tree.map(lambda o, g: 0.95 * o + 0.05 * g.abs(), omega, tree.gradient(loss, ctx.anchor))
        return omega

    def __call__(self, x: Cohort, state: Any, ctx: ServerContext) -> tuple[Tree, Any]:
        omega = tree.weighted_sum(x.weights, x.probes[self.name])
        return tree.map(lambda u, o: u * (1.5 - o / o.max()), tree.weighted_sum(x.weights, x.updates), omega), state


# name -> method
METHODS: dict[str, Method] = {
    "own_momentum": replace(compose("fedavg"), client=OwnMomentum()),
    "personal": replace(compose("fedavg"), client=Personal()),
    "meta": replace(compose("fedavg"), client=Meta()),
    "meta_hessian_free": replace(compose("gh"), client=Meta(hessian_free=True)),
    "sensitivity": replace(compose("feddyn+gh"), aggregate=Sensitivity()),
    "all": replace(compose("fedavgm"), client=Personal(), aggregate=Sensitivity()),
}
