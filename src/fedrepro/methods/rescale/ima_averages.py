"""IMA as its authors' code has it beside FedAdam and FedYogi. Zhou, Lin, Zhang, Tsang, "Understanding and Improving Model
Averaging in Federated Learning on Heterogeneous Data" (FedIMA), IEEE TMC 2024, https://arxiv.org/abs/2305.07845, equation 5.

The window holds the clients' averages before the server's step, u_t = w + update, of the last P rounds, from round 0 on. From
round t_s on the server's step uses (u_t + ... + u_{t-P+1}) / P - w as the update. In round t_s alone the server optimiser works
from its first state (moments of 0). The state that it makes there is dropped, and the next round continues from the moments
before. The paper averages global models, which is `ima`. With fewer than P averages it is the mean of those (our choice: the
code waits until round P, and with t_s < P never resets the moments). Limiting case: with a server step of length 1 and without
a state it is `ima`, up to rounding; a start that the rounds never reach is the method without it.
"""

from dataclasses import dataclass

from fedrepro import tree
from fedrepro.methods.parts import Rescale, register
from fedrepro.methods.window import Window, last, mean
from fedrepro.registry import require
from fedrepro.rounds import first_round, require_start
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("rescale", "ima_averages")
@dataclass(frozen=True)
class IMAAverages(Rescale):
    """`window`: P >= 1 rounds. `start`: t_s, a round, or a share of the rounds, rounded up.

    It does not override `begins`, since what it remembers does not follow from global models.
    """

    window: int = 5
    start: int | float = 0.75

    counts_rounds = frozenset({"start"})

    def __post_init__(self) -> None:
        require(self.window >= 1, "ima_averages: window", self.window, "must be at least 1")
        require_start("ima_averages: start", self.start)

    def init(self, params: Tree) -> Window:
        """The last P - 1 of the u, each [D], oldest first."""
        return ()

    def __call__(self, x: Tree, state: Window, ctx: ServerContext) -> tuple[Tree, Window]:
        w, start = ctx.cohort.anchor, first_round(self.start, ctx.rounds)
        window = (*state, tree.axpy(1.0, x, w))
        if ctx.round == start:
            ctx.starting_over.add("server_opt")
        if ctx.round >= start and len(window) > 1:
            x = tree.sub(mean(window), w)
        return x, last(window, self.window - 1)
