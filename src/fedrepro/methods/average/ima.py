"""Iterative moving averaging. Zhou, Lin, Zhang, Tsang, "Understanding and Improving Model Averaging in Federated Learning on
Heterogeneous Data" (FedIMA), IEEE TMC 2024, https://arxiv.org/abs/2305.07845, equation 5.

From round t_s (from 0) on, the mean of the server's results of the last P rounds is sent to clients and evaluated,

    w = (u_t + u_{t-1} + ... + u_{t-P+1}) / P.

The window holds the u, not their means, and is filled from round 0 on, as in the authors' code. With fewer than P of them, w is
the mean of those (our choice: the code waits until round P). Rounds in which no client trains do not count. With other methods
the u are the global models after the server's step and after refining. Moments and control variates continue unchanged (our
choice: the paper's "global models obtained by FMA" leave it open; `ima_averages` is the authors' code). Running statistics are
not averaged (our choice: the paper's networks have none). Limiting case: window = 1, or a start that the rounds never reach, is
the method without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fedrepro.methods.parts import Average, register
from fedrepro.methods.window import Window, last, mean
from fedrepro.registry import require
from fedrepro.rounds import first_round, require_start
from fedrepro.tree import Tree
from fedrepro.types import ServerContext


@register("average", "ima")
@dataclass(frozen=True)
class IMA(Average):
    """`window`: P >= 1 rounds, 5 in the paper. `start`: t_s, a round, or a share of the rounds, rounded up; there 3/4."""

    window: int = 5
    start: int | float = 0.75

    counts_rounds = frozenset({"start"})

    def __post_init__(self) -> None:
        require(self.window >= 1, "ima: window", self.window, "must be at least 1 (1 is no averaging)")
        require_start("ima: start", self.start)

    def begins(self, rounds: int) -> int:
        return first_round(self.start, rounds)

    def remembers(self, rounds: int) -> int:
        return min(self.window - 1, self.begins(rounds))

    def inherit(self, history: Sequence[Tree]) -> Window:
        return last(history, self.window - 1)

    def init(self, params: Tree) -> Window:
        """The last weights that it received, each [D], oldest first: P - 1 of them, since the next call adds one."""
        return ()

    def __call__(self, x: Tree, state: Window, ctx: ServerContext) -> tuple[Tree, Window]:
        window = (*state, x)
        return (mean(window) if ctx.round >= first_round(self.start, ctx.rounds) else x), last(window, self.window - 1)
