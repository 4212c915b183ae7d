"""Architectures as pure functions (params, buffers, x, train) -> (outputs, buffers), one module each."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import ModuleType
from typing import Any

from fedrepro.errors import UserError
from fedrepro.lazy import Tensor, torch
from fedrepro.models.names import MODELS
from fedrepro.registry import unknown
from fedrepro.tree import Layout, Tree
from fedrepro.types import Batch, LastLayer


def _cross_entropy() -> Callable[[Tensor, Tensor], Tensor]:
    from fedrepro.models import ops  # needs torch at import

    return ops.cross_entropy


def no_last_layer(name: str) -> str:
    """The error text for a caller who asks such a model for features."""
    return f"{name}: has no last layer whose input would be features; choose another model"


class _ReadRecorder(Tree):
    """Zeros that remember which of their tensors were read."""

    __slots__ = ("names",)

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout, torch.zeros(layout.size))
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Tensor:
        self.names.add(name)
        return super().__getitem__(name)


@dataclass(frozen=True)
class Model:
    """An architecture for one input shape, (C, H, W) of images or (T,) of text, and number of classes."""

    name: str
    input_shape: tuple[int, ...]
    classes: int
    layout: Layout
    buffer_layout: Layout
    forward: Callable[..., tuple[Tensor, Tree]]  # (params, buffers, x, train); with buffers also valid=, see BatchNorms
    features: Callable[..., tuple[Tensor, Tree]] | None = None  # as `forward`, but returns the input of the last layer
    head: Callable[[Tree, Tensor], Tensor] | None = None  # (params, features) -> outputs: the last layer
    gradient: Callable[[Tree, Tensor, Tensor], Tree] | None = None  # (params [D], x, y): of mean cross-entropy, in closed form
    squared_gradient: Callable[[Tree, Tensor], Tree] | None = (
        None  # (params [D], x) -> gradient of the outputs' mean squared norm, in closed form
    )
    stackable: bool = True  # `forward` takes a leading client axis
    dropout: bool = False  # `forward` takes `key`, see fedrepro.models.dropout
    # (outputs, targets) -> what a batch's training minimises
    loss: Callable[[Tensor, Tensor], Tensor] = field(default_factory=_cross_entropy)
    metrics: Callable[[Tensor, Tensor], dict[str, float]] | None = None  # (outputs, targets) of the test set; None: accuracy
    detects: bool = False  # its targets are boxes, see `fedrepro.types.Batch`

    @property
    def parameters(self) -> int:
        """Number of trainable parameters, D."""
        return self.layout.size

    @cached_property
    def last_layer(self) -> LastLayer:
        """The shapes at the last layer, found by calling `head` once. UserError for a model without one."""
        if self.features is None or self.head is None:
            raise UserError(no_last_layer(self.name))
        params, recorder = Tree(self.layout, torch.zeros(self.parameters)), _ReadRecorder(self.layout)
        x = self.random(1, torch.Generator().manual_seed(0)).x
        with torch.no_grad():
            features, _ = self.features(params, self.first_buffers(), x, False)
            self.head(recorder, features)
        shapes = {
            name: shape for name, shape in zip(self.layout.names, self.layout.shapes, strict=True) if name in recorder.names
        }
        return LastLayer(Layout.of(shapes), tuple(features.shape[1:]), self.classes)

    @property
    def smallest_batch(self) -> int:
        """Batches below this are not trained on: one sample has no statistics (our choice, for models with BatchNorm)."""
        return 2 if self.buffer_layout.names else 1

    @property
    def reads_text(self) -> bool:
        """Whether it reads windows of characters, and predicts the next character after each."""
        return len(self.input_shape) == 1

    def random(self, count: int, generator: "torch.Generator") -> Batch:
        """`count` random samples with random targets, in the shapes and types of the model's training data. A detector gets two
        boxes each."""
        if self.reads_text:
            text = torch.randint(self.classes, (count, self.input_shape[0] + 1), generator=generator)
            return Batch(text[:, :-1], text[:, 1:])
        x = torch.randn((count, *self.input_shape), generator=generator)
        y = torch.randint(self.classes, (count,), generator=generator)
        if self.detects:  # of class 0, each side a quarter of the image's
            centres = torch.rand((count, 2, 2), generator=generator)
            y = torch.cat([torch.zeros((count, 2, 1)), centres, torch.full((count, 2, 2), 0.25)], -1)
        return Batch(x, y)

    def first_buffers(self) -> Tree:
        """Running statistics before any training, [D'], float32: means 0, variances 1."""
        names, shapes = self.buffer_layout.names, self.buffer_layout.shapes
        tensors = [torch.full(shape, float(name.endswith("running_var"))) for name, shape in zip(names, shapes, strict=True)]
        return Tree(self.buffer_layout, torch.cat([t.flatten() for t in tensors]) if tensors else torch.zeros(0))


def build(name: str, input_shape: tuple[int, ...], classes: int, products: str = "float32") -> Model:
    """The model called `name`. UserError with the nearest name if there is none. `products`: see `RunSpec`."""
    if name not in MODELS:
        raise UserError(unknown("model", name, sorted(MODELS)))
    architecture = MODELS[name]
    if len(input_shape) != len(architecture.input_shape):
        raise UserError(f"{name}: reads {architecture.reads}, and samples of shape {input_shape} are none")
    if min(input_shape[1:], default=architecture.smallest_side) < architecture.smallest_side:
        height, width = input_shape[1:]
        raise UserError(
            f"{name}: images of {height}x{width} are too small; it needs at least {architecture.smallest_side} each way"
        )
    module = importlib.import_module(f"fedrepro.models.{architecture.module}")
    layout = Layout.of(module.shapes(input_shape, classes, **architecture.options))
    buffers = Layout.of(getattr(module, "buffer_shapes", lambda **_: {})(**architecture.options))
    gradient, squared_gradient = (
        getattr(module, key, None) if products != "bf16" else None for key in ("gradient", "squared_gradient")
    )
    features, head = (_optional_function(module, key, architecture.options) for key in ("features", "head"))
    forward = (
        partial(_features_then_head, features, head) if features and head else partial(module.forward, **architecture.options)
    )
    task_functions = {
        key: partial(getattr(module, key), input_shape=input_shape) for key in ("loss", "metrics") if hasattr(module, key)
    }
    return Model(
        name,
        input_shape,
        classes,
        layout,
        buffers,
        partial(_in_bf16, forward) if products == "bf16" else forward,
        partial(_in_bf16, features) if features and products == "bf16" else features,
        head,
        partial(gradient, **architecture.options) if gradient else None,
        partial(squared_gradient, **architecture.options) if squared_gradient else None,
        architecture.stackable,
        architecture.dropout,
        detects=architecture.detects,
        **task_functions,
    )


def _optional_function(module: ModuleType, name: str, options: dict[str, Any]) -> Callable | None:
    return partial(getattr(module, name), **options) if hasattr(module, name) else None


def _features_then_head(
    features: Callable[..., tuple[Tensor, Tree]],
    head: Callable[[Tree, Tensor], Tensor],
    params: Tree,
    buffers: Tree,
    x: Tensor,
    train: bool,
    **more: Tensor,
) -> tuple[Tensor, Tree]:
    """`forward` of a model that separates its features from its last layer."""
    h, buffers = features(params, buffers, x, train, **more)
    return head(params, h), buffers


def _in_bf16(
    forward: Callable[..., tuple[Tensor, Tree]], params: Tree, buffers: Tree, x: Tensor, train: bool, **more: Tensor
) -> tuple[Tensor, Tree]:
    """`forward` with products in bfloat16 in training, gradients included. Weights, statistics and the loss keep their type.

    It uses torch's autocast, which does not apply to gradients in closed form. So these are not used.
    """
    if not train:
        return forward(params, buffers, x, train, **more)
    with torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False):
        outputs, buffers = forward(params, buffers, x, train, **more)
    return outputs.to(params.flat.dtype), buffers
