"""P-NAT: clients by the groups of a data set: domains, writers, speaking roles.

Natural users (Elastic aggregation's EMNIST and Shakespeare) are one client per group. FedIMA's PACS and Digit Five have 20
clients per domain, which share its samples by another scheme, `within`: by_group(within='shards(per_client=2)'). Clients get
their groups at random, as in that paper's code. All groups have the same number of clients.

With fewer clients than groups, each client gets one group, drawn at random, and the samples of the others are left out (our
choice, for small runs). Limiting case: for a data set of one group it is `within`, up to the random stream.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.scheme import SCHEMES, Draw, GroupedScheme
from fedrepro.errors import UserError
from fedrepro.registry import parse, require


@SCHEMES.register("by_group")
@dataclass(frozen=True)
class ByGroup(GroupedScheme):
    """`within`: the scheme that deals out the samples of a group among its clients."""

    within: str = "iid"

    def __post_init__(self) -> None:
        calls = parse(self.within)
        is_ungrouped_scheme = len(calls) == 1 and not issubclass(SCHEMES.get(calls[0].name), GroupedScheme)
        require(is_ungrouped_scheme, "by_group(within=...)", self.within, "must be one scheme that knows no groups")
        object.__setattr__(self, "within", str(SCHEMES.canonical(SCHEMES.make(calls[0]))))

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator, groups: np.ndarray) -> Draw:
        """UserError if the groups cannot have equal numbers of clients, and for more clients in a group than samples."""
        inner_scheme, group_ids = SCHEMES.make(parse(self.within)[0]), np.unique(groups)
        clients_per_group, remainder = divmod(clients, len(group_ids))
        if clients_per_group and remainder:
            raise UserError(
                f"clients = {clients}: by_group gives each of {len(group_ids)} groups as many clients; "
                f"use {clients_per_group * len(group_ids)}, another multiple, or fewer than {len(group_ids)}"
            )
        group_of_client = rng.permutation(
            np.repeat(group_ids, clients_per_group) if clients_per_group else rng.permutation(group_ids)[:clients]
        )
        parts, redraws = [np.zeros(0, np.int64)] * clients, 0
        for group in np.unique(group_of_client):
            client_ids, samples = np.flatnonzero(group_of_client == group), np.flatnonzero(groups == group)
            if len(client_ids) > len(samples):
                raise UserError(
                    f"clients = {clients}: {len(client_ids)} of them share group {group} of {len(samples)} samples; use fewer"
                )
            inner_draw = inner_scheme(labels[samples], classes, len(client_ids), rng)
            redraws += inner_draw.redraws
            for client, part in zip(client_ids, inner_draw.parts, strict=True):
                parts[client] = samples[part]
        return Draw(parts, redraws)
