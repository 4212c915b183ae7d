"""Metrics and loss of the global model on the evaluation set, in evaluation mode."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fedrepro.models import Model
from fedrepro.tree import Tree
from fedrepro.types import Batch

# Our choice: large enough to be bound by arithmetic, small enough that activations of the largest model fit in memory.
BATCH = 1000


@torch.no_grad()
def predict(model: Model, params: Tree, buffers: Tree, x: Tensor) -> Tensor:
    """Logits [B, C] of images x [B, C, H, W], or [B, T, C] of text [B, T], in evaluation mode, BATCH at a time; params [D],
    buffers [D'].

    With params [K, D] and buffers [K, D'], logits [K, B, C] of K models on the same samples: on a GPU as one batch, on a CPU,
    where stacking costs more than it saves, one model after another.
    """
    if params.flat.dim() == 1:
        return torch.cat([model.forward(params, buffers, part, False)[0] for part in x.split(BATCH)])
    if x.device.type == "cuda" and model.stackable:
        return predict_stacked(model, params, buffers, x)
    rows = zip(params.flat, buffers.flat, strict=True)
    return torch.stack([predict(model, params.like(w), buffers.like(b), x) for w, b in rows])


def predict_stacked(model: Model, params: Tree, buffers: Tree, x: Tensor) -> Tensor:
    """Logits [K, B, C] of K models on the same images, as one batch of at most BATCH images over all models at a time."""
    models = len(params.flat)
    parts = (part.expand(models, *part.shape) for part in x.split(max(1, BATCH // models)))
    return torch.cat([model.forward(params, buffers, part, False)[0] for part in parts], dim=1)


def evaluate(model: Model, params: Tree, buffers: Tree, data: Batch) -> dict[str, float]:
    """Over all of `data`: test_accuracy (top-1) and test_top3_accuracy in percent, test_loss (mean cross-entropy).

    Top-3 counts a label that is among the three largest logits (all of them, where there are fewer classes). Of text every
    character of a window counts, each as the next one of those before it. A model
    with metrics of its own has those instead of accuracies, and its own objective for a loss.
    """
    if model.metrics is not None:
        outputs = predict(model, params, buffers, data.x)
        return model.metrics(outputs, data.y) | {"test_loss": float(model.loss(outputs, data.y))}
    return summary([tally(model, params, buffers, part) for part in pieces(data)])


@dataclass(frozen=True)
class Tally:
    """What `evaluate` counts on a piece of the data; `loss` is a sum over its samples."""

    samples: int  # predictions: of text one a character
    correct: int
    among_three: int
    loss: float


def pieces(data: Batch) -> list[Batch]:
    """`data`, BATCH samples at a time."""
    return [Batch(x, y) for x, y in zip(data.x.split(BATCH), data.y.split(BATCH), strict=True)]


def tally(model: Model, params: Tree, buffers: Tree, part: Batch) -> Tally:
    """Of one of the `pieces`."""
    logits, y = predict(model, params, buffers, part.x), part.y
    top = logits.topk(min(3, logits.shape[-1])).indices
    correct, among_three = int((logits.argmax(-1) == y).sum()), int((top == y.unsqueeze(-1)).sum())
    return Tally(y.numel(), correct, among_three, float(model.loss(logits, y)) * y.numel())


def summary(tallies: list[Tally]) -> dict[str, float]:
    """The metrics of all pieces, in their order."""
    samples, loss = sum(one.samples for one in tallies), 0.0
    for one in tallies:  # one by one: from Python 3.12 on `sum` rounds floats otherwise
        loss += one.loss
    return {
        "test_accuracy": 100 * sum(one.correct for one in tallies) / samples,
        "test_top3_accuracy": 100 * sum(one.among_three for one in tallies) / samples,
        "test_loss": loss / samples,
    }
