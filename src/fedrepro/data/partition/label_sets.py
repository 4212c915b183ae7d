"""Every client's labels written out: client i has the classes of the i-th set, and each class is split among its owners.

For populations that a paper prints, as IGFL (Huang et al., IJCAI 2021) does in its Figure 2: ten clients with two shares each.
With equal classes and two owners of each, parts are as large as those of shards(per_client=2). The shuffled class is cut into
equal parts for its owners; when they do not divide it, the owners of the smallest ids get one sample more. A class without an
owner is dropped. Limiting case: sets of one class each, all different, give client i exactly its class.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.scheme import SCHEMES, Draw
from fedrepro.registry import require


@SCHEMES.register("label_sets")
@dataclass(frozen=True)
class LabelSets:
    """sets: classes joined by `-`, clients by a blank, as in "0-9 1-5"."""

    sets: str

    def __post_init__(self) -> None:
        words = [word for label_set in self.sets.split() for word in label_set.split("-")]
        valid = words and all(word.isdecimal() for word in words)
        require(bool(valid), "label_sets(sets=...)", self.sets, 'must be classes joined by - and clients by a blank: "0-9 1-5"')

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """UserError if the number of clients is not the number of sets, and for a class that does not exist."""
        sets = [{int(word) for word in set_text.split("-")} for set_text in self.sets.split()]
        rule = f"it has {len(sets)} sets and the run {clients} clients; set clients to {len(sets)}"
        require(len(sets) == clients, "label_sets(sets=...)", self.sets, rule)
        rule = f"there are only the classes 0 to {classes - 1}"
        require(max(map(max, sets)) < classes, "label_sets(sets=...)", self.sets, rule)
        parts: list[list[np.ndarray]] = [[np.empty(0, dtype=np.int64)] for _ in range(clients)]
        for c in range(classes):
            order = rng.permutation(np.flatnonzero(labels == c))
            owners = [i for i, label_set in enumerate(sets) if c in label_set]
            for i, part in zip(owners, np.array_split(order, max(1, len(owners))), strict=False):
                parts[i].append(part)
        return Draw([np.concatenate(pieces) for pieces in parts])
