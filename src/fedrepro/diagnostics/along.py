"""Loss and error of the models w + a d along a direction d, with the running statistics of w."""

from typing import TYPE_CHECKING

from fedrepro import tree
from fedrepro.lazy import torch

if TYPE_CHECKING:
    import numpy as np

    from fedrepro.engine.kept import Global
    from fedrepro.engine.several import Found
    from fedrepro.models import Model
    from fedrepro.tree import Tree
    from fedrepro.types import Batch


def evaluated_along(model: "Model", start: "Global", direction: "Tree", at_P: "np.ndarray", data: "Batch") -> "list[Found]":
    """At each a of `at_P`; a = 0 is the model at the `start`, to the bit. `direction`: [D], of any floating type."""
    from fedrepro.engine import several
    from fedrepro.engine.kept import Global

    ends = Global(tree.stack([start.params, direction]), tree.stack([start.buffers, tree.zeros_like(start.buffers)]))
    weights = torch.tensor([[1.0, float(a)] for a in at_P], dtype=torch.float64)
    return several.evaluated_sums(model, weights, ends, data)
