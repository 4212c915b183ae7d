"""The classes of the clients' training samples."""

import numpy as np

from fedrepro.diagnostics.diagnostic import Task
from fedrepro.errors import UserError


def class_counts(task: Task) -> np.ndarray:
    """How many training samples of each class client i has, float64 [N, C]. Of text every character is a sample.

    UserError for a model that detects boxes.
    """
    if task.model.detects:
        raise UserError(f"{task.spec.model}: learns boxes, not classes; take a diagnostic that needs none")
    classes, labels = task.model.classes, task.train.y.cpu().numpy()
    return np.array([np.bincount(labels[index].ravel(), minlength=classes) for index in task.client_positions], float)


def class_shares(task: Task) -> np.ndarray:
    """D_i, the share of each class among client i's training samples, float64 [N, C]; zeros of a client without any.

    UserError as `class_counts`.
    """
    counts_NC = class_counts(task)
    return counts_NC / np.maximum(counts_NC.sum(1, keepdims=True), 1)


def data_sizes(task: Task) -> np.ndarray:
    """N_i, what aggregation counts clients by, float64 [N]; 0 of a client that has nothing to train on."""
    return task.client_sizes.double().cpu().numpy() * [task.trains(client) for client in range(len(task.client_index))]
