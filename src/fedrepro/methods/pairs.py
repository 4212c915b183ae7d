"""Values for each pair of clients, added up over the rounds in which both took part."""

from fedrepro.lazy import Tensor, torch
from fedrepro.types import Cohort

MAX_CLIENTS = 100  # the most clients for which every pair is followed
Pairs = dict[str, Tensor]  # sums, and the number of `rounds` in them, each [N, N]


def add_round(x: Cohort, old_sums: Pairs, **values: Tensor) -> Pairs:
    """The sums after a round with these `values` [K, K]. `old_sums` is empty in the first round."""
    new_sums, first_values = {}, next(iter(values.values()))
    client_ids = torch.tensor(x.clients, device=first_values.device)
    for name, values_KK in {**values, "rounds": torch.ones_like(first_values)}.items():
        sums_NN = old_sums[name].clone() if old_sums else values_KK.new_zeros(x.population, x.population)
        sums_NN[client_ids.unsqueeze(1), client_ids] += values_KK
        new_sums[name] = sums_NN
    return new_sums


def means(pairs: Pairs, prefix: str) -> Pairs:
    """`<prefix>_<name>` [N, N], the mean over rounds. nan for two clients that never took part in the same round."""
    return {f"{prefix}_{name}": sums_NN / pairs["rounds"] for name, sums_NN in pairs.items() if name != "rounds"}
