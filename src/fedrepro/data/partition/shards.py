"""P-SHARD(s): the training set is sorted by label and cut into n * s equal shards; every client gets s of them at random.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
https://arxiv.org/abs/1602.05629, section 3 (s = 2); FedIMA (Zhou et al., IEEE TMC 2024, https://arxiv.org/abs/2305.07845) calls
it "#C=2". Samples of equal label keep their order: the sources shuffle nothing but who gets which shard (FedIMA's code leaves
the order of ties to its sort). All parts have s * floor(N / (n * s)) samples. What the division leaves over is dropped, as in
that code: fewer than n * s samples, all from the end of the sorted set, so from the largest labels.

A shard may straddle two classes, and a client may get two shards of one class (with 20 shards a class and s = 2, 19 of 199
clients), so that s bounds the number of labels only where shards do not straddle. distinct_labels = true is the cross-silo
setting of IGFL (Huang et al., "Behavior Mimics Distribution", IJCAI 2021): the s shards of a client have different labels. Our
choice for what that paper leaves open: a shard's label is its most frequent class, the smaller one on a tie.

Limiting cases: s = 1 with n = C equal classes gives one class each, like classes_per_client(k=1); s -> infinity is IID.
Not the same as classes_per_client, which deals out whole classes, drops no remainder and has parts of different sizes.
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.partition.scheme import SCHEMES, Draw
from fedrepro.registry import require


@SCHEMES.register("shards")
@dataclass(frozen=True)
class Shards:
    """The number of shards and the constraint on their labels."""

    per_client: int  # s >= 1; the papers use 2
    distinct_labels: bool = False

    def __post_init__(self) -> None:
        require(self.per_client >= 1, "shards(per_client=...)", self.per_client, "must be a whole number >= 1")

    def __call__(self, labels: np.ndarray, classes: int, clients: int, rng: np.random.Generator) -> Draw:
        """UserError for more shards than samples, and if the labels of a client's shards cannot all differ."""
        shards = clients * self.per_client
        rule = f"with {clients} clients that is {shards} shards of {len(labels)} samples; use {len(labels) // clients} at most"
        require(shards <= len(labels), "shards(per_client=...)", self.per_client, rule)
        size = len(labels) // shards
        index_MS = np.argsort(labels, kind="stable")[: shards * size].reshape(shards, size)
        if self.distinct_labels:
            rule = f"distinct_labels is true and there are only {classes} classes; use {classes} at most"
            require(self.per_client <= classes, "shards(per_client=...)", self.per_client, rule)
            client_shards_NS = deal_distinct(shard_labels(labels[index_MS], classes), clients, rng)
        else:
            client_shards_NS = rng.permutation(shards).reshape(clients, self.per_client)
        return Draw([index_MS[shard_ids].ravel() for shard_ids in client_shards_NS])


def shard_labels(labels_MS: np.ndarray, classes: int) -> np.ndarray:
    """The most frequent class of each shard, the smaller one on a tie: int64 [M]."""
    shards = len(labels_MS)
    cells = labels_MS + classes * np.arange(shards)[:, None]
    return np.bincount(cells.ravel(), minlength=shards * classes).reshape(shards, classes).argmax(axis=1)


def deal_distinct(label_M: np.ndarray, clients: int, rng: np.random.Generator) -> np.ndarray:
    """M/n shards for each client, int64 [n, M/n], no two of one label; close to uniform among all such deals.

    Possible if and only if no label has more shards than there are clients (UserError otherwise): sorted by label and dealt in
    turn, equal labels go to different clients. From there, random pairs of shards change hands wherever both clients keep
    different labels. Such exchanges connect all deals (Ryser, "Combinatorial properties of matrices of zeros and ones", 1957)
    and are as likely forwards as backwards, so the uniform distribution is their stationary one. The number of proposals,
    4 M log2(M + 1) rounded up, is fixed (our choice), so it always ends.
    """
    shards, label = len(label_M), label_M.tolist()
    counts = np.bincount(label_M)
    rule = f"label {counts.argmax()} fills {counts.max()} shards and there are {clients} clients, so two would meet; "
    require(counts.max() <= clients, "shards(distinct_labels=...)", True, rule + "use fewer shards per client or false")
    # Labels in random order, and so are the shards of each label.
    shard_order_M = np.lexsort((rng.random(shards), rng.permutation(len(counts))[label_M]))
    client_shards = shard_order_M.reshape(-1, clients).T[rng.permutation(clients)].tolist()
    client_labels = [{label[shard] for shard in shard_ids} for shard_ids in client_shards]
    per_client = len(client_shards[0])
    for _ in range(4 * int(np.ceil(np.log2(shards + 1)))):
        for position, other_position in rng.integers(shards, size=(shards, 2)).tolist():
            (i, a), (j, b) = divmod(position, per_client), divmod(other_position, per_client)
            label_i, label_j = label[client_shards[i][a]], label[client_shards[j][b]]
            if i != j and (label_i == label_j or (label_j not in client_labels[i] and label_i not in client_labels[j])):
                client_shards[i][a], client_shards[j][b] = client_shards[j][b], client_shards[i][a]
                client_labels[i] = client_labels[i] - {label_i} | {label_j}
                client_labels[j] = client_labels[j] - {label_j} | {label_i}
    return np.array(client_shards, dtype=np.int64)
