"""A torch module as the engine's pure model: (params, buffers, x, train) -> (outputs, buffers)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedrepro.errors import UserError
from fedrepro.models import Model
from fedrepro.tree import Layout, Tree

_STATISTICS = ("running_mean", "running_var")  # of normalisation layers: the method decides how the server combines them


def model_of(module: nn.Module, input_shape: tuple[int, ...], classes: int) -> tuple[Model, Tree]:
    """Returns (the model, its initial weights [D], a copy of the module's). `module` is not changed.

    Its outputs are logits [B, classes]. `nn.Dropout` and its kin draw as those of models by name do; other random numbers of
    the module come from torch's generator, which `train` sets to the seed. It trains one client at a time, and parts that read
    the input of a last layer cannot use it. UserError for a module without weights, with tied or frozen ones, or whose running
    statistics are cumulative means (`momentum=None`).
    """
    parameters = dict(module.named_parameters())
    if not parameters:
        raise UserError(f"model = {type(module).__name__}: has no weights to train; give a module with parameters")
    if len(dict(module.named_parameters(remove_duplicate=False))) > len(parameters):
        raise UserError(f"model = {type(module).__name__}: two layers share weights, which is not supported; untie them")
    if frozen := [name for name, weight in parameters.items() if not weight.requires_grad]:
        what = f"model = {type(module).__name__}: {frozen[0]} is frozen (requires_grad=False)"
        raise UserError(f"{what}, and all weights are trained; unfreeze it, or make it a buffer")
    if any(getattr(layer, "track_running_stats", False) and layer.momentum is None for layer in module.modules()):
        raise UserError(f"model = {type(module).__name__}: BatchNorm(momentum=None) is not supported; give it a momentum")
    weights = Tree.from_tensors({name: weight.detach().float().cpu().clone() for name, weight in parameters.items()})
    statistics = {n: b for n, b in module.named_buffers() if n.rpartition(".")[2] in _STATISTICS}
    buffers = Layout.of({name: tuple(buffer.shape) for name, buffer in statistics.items()})
    other_buffers = {name: buffer for name, buffer in module.named_buffers() if name not in statistics}
    model = Model(
        type(module).__name__,
        input_shape,
        classes,
        weights.layout,
        buffers,
        _Forward(module, other_buffers),
        stackable=False,
        dropout=any(isinstance(layer, nn.modules.dropout._DropoutNd) for layer in module.modules()),
    )
    return model, weights


def require_logits(model: Model, weights: Tree, x: Tensor) -> None:
    """Raises UserError unless the module makes logits [B, classes] of the samples x [B, ...]."""
    try:
        with torch.no_grad():
            shape = tuple(model.forward(weights, model.first_buffers(), x, False)[0].shape)
    except (RuntimeError, IndexError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"model = {model.name}: cannot read x of shape {tuple(x.shape)}: {reason[:200]}") from error
    expected = (len(x), model.classes)
    if shape != expected:
        hint = f"; give classes={shape[1]} if this is meant" if len(shape) == 2 and shape[1] > model.classes else ""
        raise UserError(f"model = {model.name}: makes outputs of shape {shape} of {len(x)} samples, not {expected}{hint}")


class _Forward:
    """The module's forward pass at given weights and running statistics."""

    def __init__(self, module: nn.Module, other_buffers: Mapping[str, Tensor]) -> None:
        self.module, self.other_buffers = module, other_buffers

    def __call__(
        self, params: Tree, buffers: Tree, x: Tensor, train: bool, *, key: Tensor | None = None
    ) -> tuple[Tensor, Tree]:
        after = buffers.like(buffers.flat.clone()) if train else buffers
        # BatchNorm counts its batches in place: each call gets a copy of the count.
        other_buffers = {name: buffer.to(x.device, copy=True) for name, buffer in self.other_buffers.items()}
        values = {**dict(params.items()), **dict(after.items()), **other_buffers}
        was_training = self.module.training
        self.module.train(train)
        try:
            if key is None:
                return functional_call(self.module, values, (x,)), after
            with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
                torch.manual_seed(int(key) % 2**63)
                return functional_call(self.module, values, (x,)), after
        finally:
            self.module.train(was_training)
