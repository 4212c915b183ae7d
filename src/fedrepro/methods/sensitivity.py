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


def noted(omega: Tree, tau: float, own: str) -> dict[str, float]:
    """Notes for a round's record, at all four granularities, so that one run shows how they differ.

    boosted/<granularity>: percent of the parameters whose Omega relative to the largest is below `tau`, so that they are
    boosted; boosted/<granularity>/<tau>: the same at every tau of Table 1. sensitivity/q<percent>: quantiles of the relative
    Omega at the granularity `own`.
    """
    found: dict[str, float] = {}
    for granularity in GRANULARITIES:
        relative = relative_to_largest(omega, granularity)
        ordered = np.sort(relative[relative >= 0].cpu().numpy())  # twenty times as fast as torch's sort
        names = (f"boosted/{granularity}", *(f"boosted/{granularity}/{one}" for one in TAUS))
        below = np.searchsorted(ordered, (tau, *TAUS)).tolist()
        found |= {name: 100 * count / omega.layout.size for name, count in zip(names, below, strict=True)}
        if granularity == own and len(ordered):
            places = [(len(ordered) - 1) * percent // 100 for percent in QUANTILES]
            found |= {f"sensitivity/q{q}": float(ordered[at]) for q, at in zip(QUANTILES, places, strict=True)}
    return found


@lru_cache(maxsize=8)
def _groups(layout: Layout, granularity: str) -> Tensor:
    """The group of each parameter, int64 [D]."""
    numbers: dict[tuple, int] = {}
    found = []
    for name, shape, size in zip(layout.names, layout.shapes, layout.sizes, strict=True):
        owner = name if granularity == "tensor" else name.rpartition(".")[0] or name
        rows = shape[0] if granularity == "channel" and shape else 1
        of_rows = torch.tensor([numbers.setdefault((owner, rows, row), len(numbers)) for row in range(rows)])
        found.append(of_rows.repeat_interleave(size // rows))
    return torch.cat(found)
