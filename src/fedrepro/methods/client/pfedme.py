"""pFedMe. T. Dinh, Tran, Nguyen, NeurIPS 2020, https://arxiv.org/abs/2006.08848, Algorithm 1.

Client i has its own model theta_i, near the minimum of f_i(theta) + lam/2 ||theta - w||^2. For each local batch b

    theta <- theta - inner_lr (grad f(theta; b) + lam (theta - w) + decay theta),    `steps` times on that batch,
    w <- w - client_lr lam (w - theta),

and the server takes the mean of the w_i; `server_sgd(server_lr=beta)` is the paper's (1 - beta) w + beta mean. theta continues
where it was, also in the client's next round (the reference code starts each round at the received w: `start=received`). A
client that comes late starts at the global model of its first round. The local solver's momentum and weight decay have no
effect. A client's own model for the evaluation is theta after one epoch of such batches at the global w, which stays fixed; so
clients that were never sampled have one too (our choice). Limiting case: lam = 0 leaves the global model unchanged.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fedrepro import tree
from fedrepro.methods.parts import LocalRule, Named, register
from fedrepro.registry import require
from fedrepro.tree import Tree
from fedrepro.types import Batch, ClientContext, Solver


@register("client", "pfedme")
@dataclass(frozen=True)
class PFedMe(LocalRule):
    """`lam` >= 0, `steps` >= 1 and `inner_lr` > 0 as in the paper's MNIST; `decay` >= 0, 0.001 in the reference code; `start`:
    own or received.
    """

    lam: float = 15.0
    steps: int = 5
    inner_lr: float = 0.05
    decay: float = 0.0
    start: str = "own"

    def __post_init__(self) -> None:
        for key in ("lam", "decay"):
            require(getattr(self, key) >= 0, f"pfedme: {key}", getattr(self, key), "must be at least 0")
        require(self.steps >= 1, "pfedme: steps", self.steps, "must be at least 1")
        require(self.inner_lr > 0, "pfedme: inner_lr", self.inner_lr, "must be greater than 0")
        require(self.start in ("own", "received"), "pfedme: start", self.start, "must be own or received")

    def solver(self, setting: Solver) -> Solver:
        return Solver(momentum=0.0, weight_decay=0.0)

    def init_client_state(self, params: Tree) -> Named:
        return {"theta": params}

    def begin(self, ctx: ClientContext) -> Named:
        return {"theta": self._start_theta(ctx)}

    def step(self, params: Tree, batch: Batch, local: Named, ctx: ClientContext) -> tuple[Tree, Named]:
        theta = self._solve_theta(local["theta"], params, batch, ctx)
        movement = tree.scale(tree.sub(theta, params), self.lam * ctx.client_lr)
        return tree.map(lambda w, move: w + move, params, movement), local | {"theta": theta}

    def finish(self, params: Tree, local: Named, ctx: ClientContext) -> tuple[None, Named]:
        return None, {"theta": local["theta"]}

    def personalise(self, batches: Iterable[Batch], ctx: ClientContext) -> Tree:
        theta = self._start_theta(ctx)
        for batch in batches:
            theta = self._solve_theta(theta, ctx.anchor, batch, ctx)
        return theta

    def _start_theta(self, ctx: ClientContext) -> Tree:
        return ctx.client_state["theta"] if self.start == "own" else ctx.anchor

    def _solve_theta(self, theta: Tree, w: Tree, batch: Batch, ctx: ClientContext) -> Tree:
        """theta after `steps` steps on the batch, with w fixed."""
        for _ in range(self.steps):
            g = self.direction(theta, batch, ctx)
            update = lambda theta, g, w: theta - self.inner_lr * (g + self.lam * (theta - w) + self.decay * theta)  # noqa: E731
            theta = tree.map(update, theta, g, w)
        return theta
