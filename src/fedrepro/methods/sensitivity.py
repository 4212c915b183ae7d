"""How sensitive a model's output is to each parameter, relative to the largest value of its group (Elastic aggregation)."""

from functools import lru_cache

import numpy as np

from fedrepro.lazy import Tensor, torch
from fedrepro.tree import Layout, Tree

GRANULARITIES = ("tensor", "module", "channel", "global")
TAUS = tuple(tenths / 10 for tenths in range(11))  # of the paper's Table 1
QUANTILES = (10, 25, 50, 75, 90)  # percent


def relative_to_largest(omega: Tree, granularity: str) -> Tensor:
    """Omega / the largest Omega of its group, float64 [D], in [0, 1]. -1 if that is 0 (a dead layer)."""
    values = omega.flat.double()
    if granularity == "global":
        largest = values.max().expand_as(values)
    else:
        groups = _groups(omega.layout, granularity).to(values.device)
        largest = values.new_zeros(len(values)).scatter_reduce_(0, groups, values, "amax")[groups]
    return torch.where(largest > 0, values / largest, -1.0)


def sensitivity_notes(omega: Tree, tau: float, own_granularity: str) -> dict[str, float]:
    """Notes for a round's record, at all four granularities, so that one run shows how they differ.

    boosted/<granularity>: percent of the parameters whose Omega relative to the largest is below `tau`, so that they are
    boosted; boosted/<granularity>/<tau>: the same at every tau of Table 1. sensitivity/q<percent>: quantiles of the relative
    Omega at `own_granularity`.
    """
    notes: dict[str, float] = {}
    for granularity in GRANULARITIES:
        relative_omega = relative_to_largest(omega, granularity)
        sorted_omega = np.sort(relative_omega[relative_omega >= 0].cpu().numpy())  # twenty times as fast as torch's sort
        names = (f"boosted/{granularity}", *(f"boosted/{granularity}/{paper_tau}" for paper_tau in TAUS))
        counts_below = np.searchsorted(sorted_omega, (tau, *TAUS)).tolist()
        notes |= {name: 100 * count / omega.layout.size for name, count in zip(names, counts_below, strict=True)}
        if granularity == own_granularity and len(sorted_omega):
            ranks = [(len(sorted_omega) - 1) * percent // 100 for percent in QUANTILES]
            notes |= {f"sensitivity/q{q}": float(sorted_omega[rank]) for q, rank in zip(QUANTILES, ranks, strict=True)}
    return notes


@lru_cache(maxsize=8)
def _groups(layout: Layout, granularity: str) -> Tensor:
    """The group of each parameter, int64 [D]."""
    group_numbers: dict[tuple, int] = {}
    tensor_groups = []
    for name, shape, size in zip(layout.names, layout.shapes, layout.sizes, strict=True):
        owner = name if granularity == "tensor" else name.rpartition(".")[0] or name
        rows = shape[0] if granularity == "channel" and shape else 1
        row_groups = torch.tensor([group_numbers.setdefault((owner, rows, row), len(group_numbers)) for row in range(rows)])
        tensor_groups.append(row_groups.repeat_interleave(size // rows))
    return torch.cat(tensor_groups)
