"""SCAFFOLD. Karimireddy et al., ICML 2020, https://arxiv.org/abs/1910.06378, Algorithm 1.

Clients descend along g - c_i + c, where c_i and c are control variates of client and server, all 0 at first. Then

    option 1: c_i+ = the client's gradient at w;   option 2: c_i+ = c_i - c + (w - w_i) / (a_i client_lr),

c <- c + 1/n sum_S (c_i+ - c_i), c_i <- c_i+. n counts all clients that have data, not the cohort. a_i is what the local steps
are worth: their number for plain SGD, FedNova's ||a_i||_1 with momentum. Otherwise the longer path with momentum would count as
a larger gradient (our choice). a_i counts momentum from zero: with `keep_client_momentum` the path is longer still, and the
control variates are too large. client_lr is that of the round. The server's step is `server_sgd(server_lr=...)`. Running
statistics have no control variates. Limiting case: for clients of one size the first round is FedAvg.
"""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.lazy import Tensor
from fedrepro.methods.parts import LocalRule, Named, count_samples, register
from fedrepro.registry import require
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, ClientContext, Cohort

SAMPLES = Layout.of({"samples": ()})


@register("client", "scaffold")
@dataclass(frozen=True)
class Scaffold(LocalRule):
    """`option`: 2 derives the client's gradient from the path of its local steps. 1 computes it at w, as the mean over all
    samples of the round's batches, so each batch costs two gradients."""

    option: int = 2

    sends = 1  # c_i+ - c_i
    receives = 1  # c

    def __post_init__(self) -> None:
        require(self.option in (1, 2), "scaffold: option", self.option, "must be 1 or 2")

    @property
    def wants(self) -> dict[str, str]:
        """Means over the cohort in which each client counts once."""
        return {"aggregate": "mean(weighting=uniform)", "buffers": "mean_buffers(weighting=uniform)"}

    @property
    def steps_alone(self) -> bool:
        """Option 1 has its own step; option 2 takes the solver's steps."""
        return self.option == 1

    def direction(self, params: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        assert ctx.shared is not None
        g = super().direction(params, batch, ctx)
        return tree.map(lambda g, own, shared: g - own + shared, g, ctx.client_state["control"], ctx.shared)

    def begin(self, ctx: ClientContext) -> Named:
        zeros = tree.zeros_like(ctx.anchor)
        return {"gradient": zeros, "samples": Tree(SAMPLES, zeros.flat[..., :1].clone())} if self.option == 1 else {}

    def step(self, params: Tree, batch: Batch, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
        new_params, local = super().step(params, batch, local, ctx)
        if self.option == 1:
            buffers = ctx.network.buffers
            g = super().direction(ctx.anchor, batch, ctx)
            ctx.network.buffers = buffers  # statistics move once per batch
            count = count_samples(batch, ctx.anchor)
            samples = Tree(SAMPLES, local["samples"].flat + count.unsqueeze(-1))
            local = local | {"gradient": tree.axpy(count, g, local["gradient"]), "samples": samples}
        return new_params, local

    def finish(self, params: Tree, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
        old_control = ctx.client_state["control"]
        if self.option == 1:
            new_control = tree.scale(local["gradient"], 1 / local["samples"].flat[..., 0])
        else:
            new_control = self._control_from_path(params, ctx)
        return tree.sub(new_control, old_control), {"control": new_control}

    def init_client_state(self, params: Tree) -> Named:
        return {"control": tree.zeros_like(params)}

    def init_shared(self, params: Tree) -> Tree:
        return tree.zeros_like(params)

    def absorb(self, shared: Tree, cohort: Cohort) -> Tree:
        assert cohort.messages is not None
        return tree.axpy(cohort.fraction, tree.weighted_sum(cohort.shares("uniform"), cohort.messages), shared)

    def _control_from_path(self, params: Tree, ctx: ClientContext) -> Tree:
        assert ctx.shared is not None
        path_gradient = tree.scale(tree.sub(ctx.anchor, params), 1 / (self._effective_steps(ctx) * ctx.client_lr))
        return tree.map(lambda own, shared, g: own - shared + g, ctx.client_state["control"], ctx.shared, path_gradient)

    def _effective_steps(self, ctx: ClientContext) -> float | Tensor:
        steps = ctx.num_steps
        if not ctx.solver.momentum:
            return steps
        if isinstance(steps, Tensor):
            return steps.new_tensor(self.effective_steps(ctx.solver, 0.0, [int(count) for count in steps.tolist()]))
        return self.effective_steps(ctx.solver, 0.0, [steps])[0]
