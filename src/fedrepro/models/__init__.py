"""Architectures as pure functions (params, buffers, x, train) -> (logits, buffers), one module each."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from fedrepro.errors import UserError
from fedrepro.models.names import MODELS
from fedrepro.registry import unknown
from fedrepro.tree import Layout, Tree


@dataclass(frozen=True)
class Model:
    """An architecture for one input shape (C, H, W) and number of classes."""

    name: str
    input_shape: tuple[int, int, int]
    classes: int
    layout: Layout
    buffer_layout: Layout
    forward: Callable[[Tree, Tree, Tensor, bool], tuple[Tensor, Tree]]

    @property
    def parameters(self) -> int:
        """Number of trainable parameters, D."""
        return self.layout.size


def build(name: str, input_shape: tuple[int, int, int], classes: int) -> Model:
    """The model called `name`. UserError with the nearest name when there is none."""
    if name not in MODELS:
        raise UserError(unknown("model", name, sorted(MODELS)))
    module = importlib.import_module(f"fedrepro.models.{name}")
    buffers = getattr(module, "buffer_shapes", lambda *_: {})(input_shape, classes)
    layout = Layout.of(module.shapes(input_shape, classes))
    return Model(name, input_shape, classes, layout, Layout.of(buffers), module.forward)
