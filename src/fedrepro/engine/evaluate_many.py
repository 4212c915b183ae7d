"""Several models on the same samples: points on a plane or a line between models, averages, clients' models.

All of them are evaluated in one pass over the data: on a GPU stacked, on a CPU one model after another on each piece of it,
since stacking costs more than it saves there (measured: 16 LeNets on 1,000 images of 28x28 take 1.8 s, stacked 4.3 s). Loss
and error come out as `evaluate` has them, to the bit, so that a run's own curves and what is drawn around its models agree.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedrepro import tree
from fedrepro.engine.evaluate import pieces, predict, summary, tally_of_logits
from fedrepro.engine.kept import Global
from fedrepro.engine.task import Task
from fedrepro.errors import UserError
from fedrepro.models import Model
from fedrepro.tree import Tree
from fedrepro.types import Batch

WEIGHTS_AT_ONCE = 2**26  # of models that are evaluated together: 256 MiB in float32 (our choice)


class Evaluation(NamedTuple):
    """Loss and error of a model on some samples."""

    loss: float  # mean, as the model trains: cross-entropy
    error: float  # of the top-1 prediction, in percent


def samples_of(task: Task, on: str, samples: int | None) -> Batch:
    """The test set, or all clients' training samples in the order of the data set; of these `samples`, evenly spaced.

    UserError for a model without class labels, which has no error.
    """
    if task.model.metrics is not None:
        raise UserError(f"{task.spec.model}: has no classification error; take a diagnostic that needs none")
    data = task.evaluation if on == "test" else task.train.take(torch.cat(task.client_index).sort().values)
    count = len(data.x)
    if samples is None or samples >= count:
        return data
    return data.take(torch.arange(samples, device=data.x.device) * count // samples)


def stack(models: Sequence[Global]) -> Global:
    """M models as one, params [M, D], buffers [M, D']."""
    params, buffers = models[0].params, models[0].buffers
    return Global(
        params.like(torch.stack([model.params.flat for model in models])),
        buffers.like(torch.stack([model.buffers.flat for model in models])),
    )


def combine(weights_PM: Tensor, models: Global) -> Global:
    """P sums of M models by weights [P, M], float64: params [P, D], buffers [P, D']. A weight of 1 alone gives that model, to
    the bit. Running statistics are summed alike (our choice). Outside of the models a running variance may fall below 0; then
    the loss is not a number."""

    def summed(models_MD: Tree) -> Tree:
        flat = models_MD.flat
        return models_MD.like((weights_PM.to(flat.device) @ flat.double()).to(flat.dtype))

    return Global(summed(models.params), summed(models.buffers))


def evaluate(model: Model, models: Global, data: Batch) -> list[Evaluation]:
    """Evaluates each of P models, params [P, D], on all of `data`."""
    tallies = [[] for _ in models.params.flat]
    for piece in pieces(data):
        for tally, logits in zip(tallies, predict(model, models.params, models.buffers, piece.data.x), strict=True):
            tally.append(tally_of_logits(model, logits, piece))
    summaries = [summary(tally) for tally in tallies]
    return [Evaluation(values["test_loss"], 100 - values["test_accuracy"]) for values in summaries]


def evaluate_sums(model: Model, weights_PM: Tensor, models: Global, data: Batch) -> list[Evaluation]:
    """Evaluates the combined models on all of `data`, in groups whose weights fit in memory."""
    at_once = max(1, WEIGHTS_AT_ONCE // max(1, models.params.layout.size))
    return [evaluation for part in weights_PM.split(at_once) for evaluation in evaluate(model, combine(part, models), data)]


def evaluate_along(model: Model, start: Global, direction: Tree, at_P: np.ndarray, data: Batch) -> list[Evaluation]:
    """Evaluates the models w + a d along a direction d [D], with the running statistics of w, the `start`; at each a of `at_P`.
    a = 0 is w, to the bit. `direction` may be of any floating type."""
    ends = Global(tree.stack([start.params, direction]), tree.stack([start.buffers, tree.zeros_like(start.buffers)]))
    weights = torch.tensor([[1.0, float(a)] for a in at_P], dtype=torch.float64)
    return evaluate_sums(model, weights, ends, data)


@torch.no_grad()
def outputs_of(model: Model, models: Global, data: Batch, probabilities: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """(outputs [P, n, C] in float64, labels [n]) of each piece of `data`; of text n counts characters. Logits, or their
    softmax."""
    for piece in pieces(data):
        logits = predict(model, models.params, models.buffers, piece.data.x).double().flatten(1, -2)
        yield logits.softmax(-1) if probabilities else logits, piece.data.y.flatten()
