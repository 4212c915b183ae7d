"""Clients that hold wrong labels: the setting `corrupted_clients`.

FedLAW (ICML 2023, https://arxiv.org/abs/2302.10911, section 6.2 and Table 8) corrupts a share of the clients "by swapping two
labels in their local training data", and does not say which labels. Our choice: each of these clients has one pair of classes,
drawn from all classes and the same in every round. All of its data is corrupted, the held-out samples too: a client does not
know that its labels are wrong. The test set and the proxy set stay as they are.
"""

import numpy as np
import torch

from fedrepro import rng
from fedrepro.data.artifact import floor_share
from fedrepro.errors import UserError
from fedrepro.types import Batch


def draw_class_pairs(share: float, clients: int, classes: int, seed: int) -> dict[int, tuple[int, int]]:
    """Returns client -> the two classes that it exchanges, for floor(share * clients) clients.

    Clients and pairs have their own random streams. So a larger share corrupts the same clients as a smaller one in the same
    way, and more clients.
    """
    client_ids = rng.stream(seed, "corrupted-clients").permutation(clients)[: floor_share(share, clients)].tolist()
    class_pairs = [
        rng.stream(seed, "corrupted-labels", client).choice(classes, 2, replace=False).tolist() for client in client_ids
    ]
    return {client: (a, b) for client, (a, b) in zip(client_ids, class_pairs, strict=True)}


def exchange_labels(train: Batch, client_indices: list[np.ndarray], class_pairs: dict[int, tuple[int, int]]) -> Batch:
    """Exchanges the two labels of each client in `class_pairs`, at the positions `client_indices`. UserError for boxes."""
    if train.y.is_floating_point():
        raise UserError("corrupted_clients: exchanges class labels, and this data set has boxes; set it to 0")
    y = train.y.clone()
    for client, (a, b) in class_pairs.items():
        index = torch.as_tensor(client_indices[client], device=y.device)
        labels = y[index]
        y[index] = labels.masked_fill(labels == a, b).masked_fill(labels == b, a)
    return Batch(train.x, y)
