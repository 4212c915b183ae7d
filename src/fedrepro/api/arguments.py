"""Checks a caller's samples, labels, clients and numbers. UserError names the wrong argument."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedrepro.errors import UserError
from fedrepro.registry import require

NAMED = 5  # classes that an error names, at most


def whole_number(where: str, value: Any, least: int) -> int:
    """Returns `value`, Python's or NumPy's, as an int. UserError where it is no whole number, or below `least`."""
    number = int(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else -1
    require(number >= least, where, value, f"must be a whole number from {least} up")
    return number


def samples(where: str, x: Any) -> Tensor:
    """Returns samples as a tensor, from a tensor, an array, a data frame or lists of equal lengths. UserError if they are not
    numbers, or not finite."""
    try:
        tensor = x if isinstance(x, Tensor) else torch.as_tensor(np.require(x, requirements="W"))
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"{where}: {type(x).__name__}: not an array of numbers; give x [N, ...]") from error
    if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
        raise UserError(f"{where}: has values that are not finite (NaN or infinite); replace them first")
    return tensor


def _array(where: str, values: Any) -> np.ndarray:
    """Returns `values`, an array, a tensor or a list, as an array. UserError for a list of lists of different lengths."""
    try:
        return np.asarray(values.cpu() if hasattr(values, "cpu") else values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"{where}: {type(values).__name__}: not an array of numbers; give whole numbers [N]") from error


def whole_numbers(where: str, values: Any) -> np.ndarray:
    """Returns `values`, an array, a tensor or a list, as int64 [N]. UserError where they are no whole numbers, or below 0."""
    array = _array(where, values)
    require(array.ndim == 1 and len(array) > 0, f"the shape of {where}", array.shape, "must be [N], with N at least 1")
    is_whole = np.issubdtype(array.dtype, np.integer)
    require(is_whole, f"the type of {where}", str(array.dtype), "must be whole numbers")
    require(int(array.min()) >= 0, f"the least of {where}", int(array.min()), "must be at least 0")
    return array.astype(np.int64)


def class_count(where: str, labels: np.ndarray, classes: Any) -> int:
    """Returns the number of classes: `classes`, or the largest label plus 1. UserError if a label is not below `classes`.
    UserError too if `classes` is not given and a label below the largest one does not occur: labels must count from 0."""
    needed = int(labels.max()) + 1
    if classes is not None:
        count = whole_number(f"{where}: classes", classes, 1)
        require(count >= needed, f"{where}: classes", count, f"must be at least {needed}, by the labels")
        return count
    present = np.unique(labels)
    if len(present) < needed:
        # The first labels that do not occur. They take little memory even if one label is huge.
        empty = np.setdiff1d(np.arange(min(needed, len(present) + NAMED + 1)), present)
        examples = ", ".join(map(str, empty[:NAMED])) + (", ..." if len(empty) > NAMED else "")
        raise UserError(
            f"{where}: labels go up to {needed - 1}, and no sample has label {examples}; count labels from 0, or give "
            f"classes={needed} if this is meant"
        )
    return needed


def clients_of(clients: Any) -> int | list[Any]:
    """Returns the number of clients, or what each of them holds. UserError for any other value."""
    if isinstance(clients, numbers.Integral) and not isinstance(clients, bool):
        return whole_number("train: clients", clients, 1)
    if isinstance(clients, str | Mapping) or not isinstance(clients, Sequence | np.ndarray | Tensor):
        raise UserError(
            f"train: clients = {clients!r:.60}: give a whole number, or a list with the positions of each client's samples"
        )
    return list(clients)


def index_arrays(clients: Sequence[Any], samples: int) -> list[np.ndarray]:
    """Returns each client's positions as int64, in the given order. UserError for a position outside the data set and for one
    that is given twice."""
    require(len(clients) > 0, "clients", len(clients), "must be at least one array of positions")
    parts = [_array(f"clients: the positions of client {number}", part) for number, part in enumerate(clients)]
    for number, part in enumerate(parts):
        is_whole = np.issubdtype(part.dtype, np.integer) or not len(np.atleast_1d(part))
        require(is_whole, f"clients: the positions of client {number}", str(part.dtype), "must be whole numbers")
    parts = [part.astype(np.int64).reshape(-1) for part in parts]
    positions = np.concatenate(parts)
    require(len(positions) > 0, "clients", len(parts), "no client has a sample")
    outside = positions[(positions < 0) | (positions >= samples)]
    require(not len(outside), "clients: position", int(outside[0]) if len(outside) else 0, f"there are {samples} samples")
    values, counts = np.unique(positions, return_counts=True)
    twice = values[counts > 1]
    require(not len(twice), "clients: position", int(twice[0]) if len(twice) else 0, "is given twice; a sample has one client")
    return parts
