"""Matches the units of several networks (PFNM)."""

import numpy as np

from fedrepro.lazy import Tensor, torch

TIE = 1e-12  # gains that differ by less, relative to the largest possible gain, are equal; larger than rounding, 1e-16 per term


def match_units(units_KLD: Tensor, prior: float, sweeps: int, rng: np.random.Generator) -> Tensor:
    """Which unit of each client takes each of L places, int64 [K, L]. At first each unit has its own place. float64 on the CPU.

    Clients are taken out one by one, in random order, and assigned anew: `sweeps` times, or until nothing changes. Every place
    has the same number of vectors. So the posterior gains <W, v> from v in a place where the others have the sum W, up to terms
    that are the same for every assignment. `prior` is added to the first of the D coordinates of each sum.

    Of equally good assignments it takes the one that leaves more units in their own places (our choice: otherwise rounding
    would decide, and a client alone, for which all are equally good, would have its units shuffled).
    """
    from scipy.optimize import linear_sum_assignment  # half a second to import

    clients, units, _ = units_KLD.shape
    order_KL = torch.arange(units).repeat(clients, 1)
    total_LD = units_KLD.sum(0)
    total_LD[:, 0] += prior
    for _ in range(sweeps):
        previous_order_KL = order_KL.clone()
        for k in rng.permutation(clients).tolist():
            others_total_LD = total_LD - units_KLD[k][order_KL[k]]
            gain_LL = torch.mm(others_total_LD, units_KLD[k].mT)
            if not gain_LL.isfinite().all():  # the clients diverged, so the mean will too, and the run records it
                return order_KL
            gain_LL.diagonal().add_(TIE * total_LD.norm(dim=1).max() * units_KLD[k].norm(dim=1).max())
            order_KL[k] = torch.from_numpy(linear_sum_assignment(gain_LL.numpy(), maximize=True)[1])
            total_LD = others_total_LD + units_KLD[k][order_KL[k]]
        if torch.equal(order_KL, previous_order_KL):
            break
    return order_KL


def reorder_units(units: Tensor, order_KL: Tensor) -> Tensor:
    """Each client's units [K, L, ...], reordered by `order_KL`."""
    return torch.stack([client_units[order] for client_units, order in zip(units, order_KL, strict=True)])
