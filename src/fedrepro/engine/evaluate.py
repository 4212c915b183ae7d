"""Metrics and loss of the global model on the test set, and on the proxy set where it is asked for, in evaluation mode."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedrepro.models import Model
from fedrepro.tree import Tree
from fedrepro.types import Batch

# Our choice: large enough to be bound by arithmetic, small enough that activations of the largest model fit in memory.
BATCH = 1000
# With more groups than this only their mean and the worst are recorded: 3,400 writers are too many curves (our choice).
MOST_GROUPS = 32


def at_once(x: Tensor) -> int:
    """How many of x are evaluated at a time: BATCH images, or a tenth as many windows of text, each of many predictions."""
    return BATCH if x.is_floating_point() else -(-BATCH // 10)


@torch.no_grad()
def predict(model: Model, params: Tree, buffers: Tree, x: Tensor) -> Tensor:
    """Logits [B, C] of images x [B, C, H, W], or [B, T, C] of text [B, T], in evaluation mode, BATCH at a time; params [D],
    buffers [D'].

    With params [K, D] and buffers [K, D'], logits [K, B, C] of K models on the same samples: on a GPU as one batch, on a CPU,
    where stacking costs more than it saves, one model after another.
    """
    if params.flat.dim() == 1:
        return torch.cat([model.forward(params, buffers, part, False)[0] for part in x.split(at_once(x))])
    if x.device.type == "cuda" and model.stackable:
        return predict_stacked(model, params, buffers, x)
    rows = zip(params.flat, buffers.flat, strict=True)
    return torch.stack([predict(model, params.like(w), buffers.like(b), x) for w, b in rows])


def predict_stacked(model: Model, params: Tree, buffers: Tree, x: Tensor) -> Tensor:
    """Logits [K, B, C] of K models on the same images, as one batch of at most BATCH images over all models at a time."""
    models = len(params.flat)
    parts = (part.expand(models, *part.shape) for part in x.split(max(1, at_once(x) // models)))
    return torch.cat([model.forward(params, buffers, part, False)[0] for part in parts], dim=1)


@dataclass(frozen=True)
class Groups:
    """Whom the samples of an evaluation set are from: domains, writers, roles."""

    names: tuple[str, ...]
    of: Tensor  # int64 [N], places in `names`


@dataclass(frozen=True)
class Evaluated:
    """A set of samples that the global model is evaluated on."""

    name: str  # test, or proxy: what the names of its metrics begin with
    data: Batch
    groups: Groups | None = None

    def named(self, metrics: dict[str, float]) -> dict[str, float]:
        """Metrics that are called as the test set's, under this set's name: `proxy_accuracy` for `test_accuracy`."""
        if self.name == "test":
            return metrics
        return {f"{self.name}_{key.removeprefix('test_')}": value for key, value in metrics.items()}


def evaluate_all(model: Model, params: Tree, buffers: Tree, sets: Sequence[Evaluated]) -> dict[str, float]:
    """`evaluate` on each of `sets`, under its name."""
    found = (one.named(evaluate(model, params, buffers, one.data, one.groups)) for one in sets)
    return {key: value for metrics in found for key, value in metrics.items()}


def evaluate(model: Model, params: Tree, buffers: Tree, data: Batch, groups: Groups | None = None) -> dict[str, float]:
    """Over all of `data`: test_accuracy (top-1) and test_top3_accuracy in percent, test_loss (mean cross-entropy).

    Top-3 counts a label that is among the three largest logits (all of them, where there are fewer classes). Of text every
    character of a window counts, each as the next one of those before it. With
    `groups` also test_group_mean_accuracy, which counts each group alike, test_worst_group_accuracy and, of at most
    MOST_GROUPS, test_accuracy/<group> and domain_accuracy, the mean over groups under the name that tables of domains use.
    A model with its own metrics has those instead of accuracies, and its own objective for a loss.
    """
    if model.metrics is not None:
        outputs = predict(model, params, buffers, data.x)
        return model.metrics(outputs, data.y) | {"test_loss": float(model.loss(outputs, data.y))}
    found = [tally(model, params, buffers, part) for part in pieces(data, groups)]
    return summary(found, groups.names if groups else ())


@dataclass(frozen=True)
class Tally:
    """What `evaluate` counts on a piece of the data; `loss` is a sum over its samples."""

    samples: int  # predictions: of text one a character
    correct: int
    among_three: int
    loss: float
    groups: tuple[tuple[int, int], ...] = ()  # (predictions, correct) of each


def joined(parts: Sequence[Tally]) -> Tally:
    """Of several pieces, without their groups."""
    samples, correct, among_three = (sum(getattr(one, key) for one in parts) for key in ("samples", "correct", "among_three"))
    return Tally(samples, correct, among_three, math.fsum(one.loss for one in parts))


@dataclass(frozen=True)
class Piece:
    """Some of an evaluation set."""

    data: Batch
    of: Tensor | None = None  # int64 [n], each sample's group
    groups: int = 0  # how many there are


def pieces(data: Batch, groups: Groups | None = None) -> list[Piece]:
    """`data`, BATCH samples at a time."""
    size = at_once(data.x)
    parts = [Batch(x, y) for x, y in zip(data.x.split(size), data.y.split(size), strict=True)]
    if groups is None:
        return [Piece(part) for part in parts]
    return [Piece(part, of, len(groups.names)) for part, of in zip(parts, groups.of.split(size), strict=True)]


def tally(model: Model, params: Tree, buffers: Tree, piece: Piece) -> Tally:
    """Of one of the `pieces`."""
    return counted(model, predict(model, params, buffers, piece.data.x), piece)


def counted(model: Model, logits: Tensor, piece: Piece) -> Tally:
    """Of the logits [n, C] of a piece."""
    y = piece.data.y
    top = logits.topk(min(3, logits.shape[-1])).indices
    right = logits.argmax(-1) == y
    correct, among_three = int(right.sum()), int((top == y.unsqueeze(-1)).sum())
    return Tally(y.numel(), correct, among_three, float(model.loss(logits, y)) * y.numel(), _by_group(piece, right))


def _by_group(piece: Piece, right: Tensor) -> tuple[tuple[int, int], ...]:
    if piece.of is None:
        return ()
    correct = right.flatten(1).sum(1) if right.dim() > 1 else right.long()  # of text each window's
    counts = torch.stack([torch.full_like(correct, right[0].numel()), correct], 1)
    found = torch.zeros((piece.groups, 2), dtype=torch.int64, device=right.device).index_add_(0, piece.of, counts)
    return tuple((predictions, correct) for predictions, correct in found.tolist())


def summary(tallies: list[Tally], groups: tuple[str, ...] = ()) -> dict[str, float]:
    """The metrics of all pieces, in their order; `groups`: their names."""
    samples, loss = sum(one.samples for one in tallies), 0.0
    for one in tallies:  # one by one: from Python 3.12 on `sum` rounds floats otherwise
        loss += one.loss
    return {
        "test_accuracy": 100 * sum(one.correct for one in tallies) / samples,
        "test_top3_accuracy": 100 * sum(one.among_three for one in tallies) / samples,
        "test_loss": loss / samples,
    } | _of_groups(tallies, groups)


def _of_groups(tallies: list[Tally], names: tuple[str, ...]) -> dict[str, float]:
    """Accuracies of the groups that have samples, their mean and the lowest."""
    if not names:
        return {}
    counted = [[sum(part) for part in zip(*one, strict=True)] for one in zip(*(tally.groups for tally in tallies), strict=True)]
    found = {name: 100 * correct / count for name, (count, correct) in zip(names, counted, strict=True) if count}
    mean = math.fsum(found.values()) / len(found)
    each = {f"test_accuracy/{name}": value for name, value in found.items()} | {"domain_accuracy": mean}
    each = each if len(names) <= MOST_GROUPS else {}
    return each | {"test_group_mean_accuracy": mean, "test_worst_group_accuracy": min(found.values())}
