"""Metrics and loss of the global model in evaluation mode: on the test set, and on the proxy set and the clients' training
samples if the settings ask for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedrepro.models import Model
from fedrepro.tree import Tree
from fedrepro.types import Batch

# Our choice: large enough to be bound by arithmetic, small enough that the activations of the largest model fit in memory.
BATCH = 1000
# With more groups than this, only their mean and the worst are recorded: 3,400 writers are too many curves (our choice).
MOST_GROUPS = 32


def evaluation_batch_size(x: Tensor) -> int:
    """Samples evaluated at a time: BATCH images, or a tenth as many windows of text, each with many predictions."""
    return BATCH if x.is_floating_point() else -(-BATCH // 10)


@torch.no_grad()
def predict(model: Model, params: Tree, buffers: Tree, x: Tensor) -> Tensor:
    """Logits [B, C] of images x [B, C, H, W], or [B, T, C] of text [B, T], in evaluation mode, BATCH at a time; params [D],
    buffers [D'].

    With params [K, D] and buffers [K, D'] it returns logits [K, B, C] of K models on the same samples. A GPU evaluates them as
    one batch. A CPU takes one model after another, since stacking costs more there than it saves.
    """
    if params.flat.dim() == 1:
        return torch.cat([model.forward(params, buffers, part, False)[0] for part in x.split(evaluation_batch_size(x))])
    if x.device.type == "cuda" and model.stackable:
        return predict_stacked(model, params, buffers, x)
    rows = zip(params.flat, buffers.flat, strict=True)
    return torch.stack([predict(model, params.like(w), buffers.like(b), x) for w, b in rows])


def predict_stacked(model: Model, params: Tree, buffers: Tree, x: Tensor) -> Tensor:
    """Logits [K, B, C] of K models on the same images, as one batch of at most BATCH images over all models at a time."""
    models = len(params.flat)
    parts = (part.expand(models, *part.shape) for part in x.split(max(1, evaluation_batch_size(x) // models)))
    return torch.cat([model.forward(params, buffers, part, False)[0] for part in parts], dim=1)


@dataclass(frozen=True)
class Groups:
    """Where the samples of an evaluation set come from: domains, writers, roles."""

    names: tuple[str, ...]
    group_index: Tensor  # int64 [N], positions in `names`


@dataclass(frozen=True)
class EvaluationSet:
    """A set of samples that the global model is evaluated on."""

    name: str  # test, proxy or train: the prefix of its metrics' names
    data: Batch
    groups: Groups | None = None

    def rename_metrics(self, metrics: dict[str, float]) -> dict[str, float]:
        """Renames the test set's metrics for this set: `proxy_accuracy` for `test_accuracy`."""
        if self.name == "test":
            return metrics
        return {f"{self.name}_{key.removeprefix('test_')}": value for key, value in metrics.items()}


def evaluate_all(model: Model, params: Tree, buffers: Tree, sets: Sequence[EvaluationSet]) -> dict[str, float]:
    """`evaluate` on each of `sets`, with metrics named after the set."""
    metrics_of_sets = (
        evaluation_set.rename_metrics(evaluate(model, params, buffers, evaluation_set.data, evaluation_set.groups))
        for evaluation_set in sets
    )
    return {key: value for metrics in metrics_of_sets for key, value in metrics.items()}


def evaluate(model: Model, params: Tree, buffers: Tree, data: Batch, groups: Groups | None = None) -> dict[str, float]:
    """Evaluates on all of `data`: test_accuracy (top-1) and test_top3_accuracy in percent, test_loss (mean cross-entropy).

    Top-3 counts a sample whose label is among the three largest logits (all of them if there are fewer classes). For text, each
    position of a window counts as one prediction of the next character. With `groups` there are also test_group_mean_accuracy,
    where each group counts the same, test_worst_group_accuracy and, for at most MOST_GROUPS groups, test_accuracy/<group> and
    domain_accuracy. The latter is the mean over groups, under the name that tables of domains use. A model with its own metrics
    reports those instead of accuracies, and its own objective as the loss.
    """
    if model.metrics is not None:
        outputs = predict(model, params, buffers, data.x)
        return model.metrics(outputs, data.y) | {"test_loss": float(model.loss(outputs, data.y))}
    tallies = [tally(model, params, buffers, part) for part in pieces(data, groups)]
    return summary(tallies, groups.names if groups else ())


@dataclass(frozen=True)
class Tally:
    """The counts of `evaluate` on a piece of the data. `loss` is a sum over its predictions."""

    samples: int  # predictions: one per image, or one per character of text
    correct: int
    among_three: int
    loss: float
    groups: tuple[tuple[int, int], ...] = ()  # (predictions, correct) of each group


def sum_tallies(parts: Sequence[Tally]) -> Tally:
    """The sum over several pieces, without groups."""
    samples, correct, among_three = (sum(getattr(part, key) for part in parts) for key in ("samples", "correct", "among_three"))
    return Tally(samples, correct, among_three, math.fsum(part.loss for part in parts))


@dataclass(frozen=True)
class Piece:
    """A part of an evaluation set."""

    data: Batch
    group_index: Tensor | None = None  # int64 [n], each sample's group
    groups: int = 0  # how many there are


def pieces(data: Batch, groups: Groups | None = None) -> list[Piece]:
    """`data` in pieces, each of as many samples as are evaluated at a time."""
    size = evaluation_batch_size(data.x)
    parts = [Batch(x, y) for x, y in zip(data.x.split(size), data.y.split(size), strict=True)]
    if groups is None:
        return [Piece(part) for part in parts]
    return [
        Piece(part, sample_groups, len(groups.names))
        for part, sample_groups in zip(parts, groups.group_index.split(size), strict=True)
    ]


def tally(model: Model, params: Tree, buffers: Tree, piece: Piece) -> Tally:
    """Evaluates one of the `pieces`."""
    return tally_of_logits(model, predict(model, params, buffers, piece.data.x), piece)


def tally_of_logits(model: Model, logits: Tensor, piece: Piece) -> Tally:
    """Counts from the logits [n, C] of a piece."""
    y = piece.data.y
    top_classes = logits.topk(min(3, logits.shape[-1])).indices
    is_correct = logits.argmax(-1) == y
    correct, among_three = int(is_correct.sum()), int((top_classes == y.unsqueeze(-1)).sum())
    return Tally(y.numel(), correct, among_three, float(model.loss(logits, y)) * y.numel(), _by_group(piece, is_correct))


def _by_group(piece: Piece, is_correct: Tensor) -> tuple[tuple[int, int], ...]:
    if piece.group_index is None:
        return ()
    # [n]: 0 or 1 for an image, the number of correct characters for a window of text.
    correct = is_correct.flatten(1).sum(1) if is_correct.dim() > 1 else is_correct.long()
    counts = torch.stack([torch.full_like(correct, is_correct[0].numel()), correct], 1)
    group_counts = torch.zeros((piece.groups, 2), dtype=torch.int64, device=is_correct.device).index_add_(
        0, piece.group_index, counts
    )
    return tuple((predictions, correct) for predictions, correct in group_counts.tolist())


def summary(tallies: list[Tally], groups: tuple[str, ...] = ()) -> dict[str, float]:
    """The metrics over all pieces, added in their order. `groups` are the groups' names."""
    samples, loss = sum(piece_tally.samples for piece_tally in tallies), 0.0
    for piece_tally in tallies:  # one by one: from Python 3.12 on `sum` rounds floats differently
        loss += piece_tally.loss
    return {
        "test_accuracy": 100 * sum(piece_tally.correct for piece_tally in tallies) / samples,
        "test_top3_accuracy": 100 * sum(piece_tally.among_three for piece_tally in tallies) / samples,
        "test_loss": loss / samples,
    } | _of_groups(tallies, groups)


def _of_groups(tallies: list[Tally], names: tuple[str, ...]) -> dict[str, float]:
    """Accuracies of the groups that have samples, their mean and the lowest."""
    if not names:
        return {}
    group_counts = [
        [sum(values) for values in zip(*pairs, strict=True)] for pairs in zip(*(tally.groups for tally in tallies), strict=True)
    ]
    accuracies = {name: 100 * correct / count for name, (count, correct) in zip(names, group_counts, strict=True) if count}
    mean = math.fsum(accuracies.values()) / len(accuracies)
    metrics = {f"test_accuracy/{name}": value for name, value in accuracies.items()} | {"domain_accuracy": mean}
    metrics = metrics if len(names) <= MOST_GROUPS else {}
    return metrics | {"test_group_mean_accuracy": mean, "test_worst_group_accuracy": min(accuracies.values())}
