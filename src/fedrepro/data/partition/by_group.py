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
        known = len(calls) == 1 and not issubclass(SCHEMES.get(calls[0].name), GroupedScheme)
        require(known, "by_group(within=...)", self.within, "must be one scheme that knows no groups")
        object.__setattr__(self, "within", str(SCHEMES.canonical(SCHEMES.make(calls[0]))))

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator, groups: np.ndarray) -> Draw:
        """UserError if the groups cannot have equal numbers of clients, and for more clients in a group than samples."""
        rule, present = SCHEMES.make(parse(self.within)[0]), np.unique(groups)
        each, left = divmod(clients, len(present))
        if each and left:
            raise UserError(
                f"clients = {clients}: by_group gives each of {len(present)} groups as many clients; "
                f"use {each * len(present)}, another multiple, or fewer than {len(present)}"
            )
        owned = rng.permutation(np.repeat(present, each) if each else rng.permutation(present)[:clients])
        parts, redraws = [np.zeros(0, np.int64)] * clients, 0
        for group in np.unique(owned):
            members, samples = np.flatnonzero(owned == group), np.flatnonzero(groups == group)
            if len(members) > len(samples):
                raise UserError(
                    f"clients = {clients}: {len(members)} of them share group {group} of {len(samples)} samples; use fewer"
                )
            drawn = rule(labels[samples], classes, len(members), rng)
            redraws += drawn.redraws
            for client, part in zip(members, drawn.parts, strict=True):
                parts[client] = samples[part]
        return Draw(parts, redraws)
