"""A quadratic in three weights as a task, and kept rounds of such models, to test diagnostics against closed forms."""

import dataclasses

import torch
from torch import Tensor

from fedrepro.diagnostics.diagnostic import make
from fedrepro.engine.kept import Global, RoundModels
from fedrepro.engine.measurements import Value
from fedrepro.engine.task import Task
from fedrepro.models import Model
from fedrepro.tree import Layout, Tree
from tests import toy

LAYOUT, NONE = Layout.of({"w": (3,)}), Layout.of({})
CENTRE, CURVES = torch.tensor([1.0, 2.0, 0.5]).double(), torch.tensor([1.0, 3.0, 2.0]).double()


def bowl(w: Tensor) -> float:
    """sum_d c_d (w_d - m_d)^2 / 2."""
    return float((CURVES * (w.double() - CENTRE) ** 2).sum() / 2)


def model_of(w: Tensor) -> Global:
    return Global(Tree(LAYOUT, w.double()), Tree(NONE, torch.zeros(0).double()))


def quadratic() -> Task:
    """The logits are the weights, and the loss is the bowl for every sample."""

    def forward(params: Tree, buffers: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:
        return params["w"].expand(len(x), 3), buffers

    def loss(logits: Tensor, y: Tensor) -> Tensor:
        return (CURVES * (logits - CENTRE) ** 2).sum(-1).mean() / 2

    task = toy.make_task(rounds=1)
    return dataclasses.replace(task, model=Model("bowl", (1, 4, 4), 3, LAYOUT, NONE, forward, loss=loss))


def kept(
    rows: list[list[float]], after: list[float], round: int = 5, others: dict[int, RoundModels] | None = None
) -> RoundModels:
    flat, weights = torch.tensor(rows).double().reshape(-1, 3), torch.full((len(rows),), 1 / max(1, len(rows))).double()
    clients, own = Tree(LAYOUT, flat), Tree(NONE, torch.zeros(len(rows), 0).double())
    ends = model_of(torch.tensor(after))
    return RoundModels(round, ends, ends, list(range(len(rows))), clients, own, weights, others=others or {})


def measured(text: str, of: RoundModels, task: Task) -> list[Value]:
    return list(make(text).measure(of, lambda: task))


def numbers(values: list[Value]) -> dict[str, float]:
    return {v.metric: v.value for v in values if v.x is None and v.value is not None}
