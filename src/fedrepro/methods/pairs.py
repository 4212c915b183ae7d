"""What happened between two clients, added up over the rounds in which they met."""

from fedrepro.lazy import Tensor, torch
from fedrepro.types import Cohort

MOST = 100  # clients, of whom every pair is followed
Pairs = dict[str, Tensor]  # sums, and how many `rounds` they are of, each [N, N]


def followed(x: Cohort, before: Pairs, **values: Tensor) -> Pairs:
    """The sums after a round with these `values` [K, K]; `before` is empty in the first."""
    found, first = {}, next(iter(values.values()))
    at = torch.tensor(x.clients, device=first.device)
    for name, values_KK in {**values, "rounds": torch.ones_like(first)}.items():
        sums_NN = before[name].clone() if before else values_KK.new_zeros(x.population, x.population)
        sums_NN[at.unsqueeze(1), at] += values_KK
        found[name] = sums_NN
    return found


def means(pairs: Pairs, prefix: str) -> Pairs:
    """`<prefix>_<name>` [N, N], mean over rounds; nan for two that never met."""
    return {f"{prefix}_{name}": sums_NN / pairs["rounds"] for name, sums_NN in pairs.items() if name != "rounds"}
