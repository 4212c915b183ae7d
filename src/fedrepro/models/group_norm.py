"""GroupNorm layers of one forward pass. Wu and He, ECCV 2018, https://arxiv.org/abs/1803.08494."""

from torch import Tensor

from fedrepro.models import ops
from fedrepro.tree import Tree


class GroupNorms:
    """Called once for every GroupNorm of a model, like `BatchNorms`. `buffers` pass through unchanged."""

    def __init__(self, params: Tree, buffers: Tree, groups: int) -> None:
        self._params, self._buffers, self._groups = params, buffers, groups

    def __call__(self, name: str, x: Tensor) -> Tensor:
        return ops.group_norm(x, self._groups, self._params[f"{name}.weight"], self._params[f"{name}.bias"])

    def after(self) -> Tree:
        """The given running statistics."""
        return self._buffers
