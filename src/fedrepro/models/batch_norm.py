"""BatchNorm layers of one forward pass, with running statistics in and out. Ioffe and Szegedy, ICML 2015, https://arxiv.org/abs/1502.03167."""

import torch
from torch import Tensor

from fedrepro.models import ops
from fedrepro.tree import Tree


class BatchNorms:
    """Called once for every BatchNorm of a model, in any order. `after` then gives the running statistics.

    In training a layer normalises by the batch and moves its statistics by a tenth, torch's default. Otherwise it normalises by
    its statistics, which stay. There is no count of batches: with a fixed momentum nothing depends on it. `valid` [K] says that
    client k's batch is its first valid_k samples; the rest is padding, and does not enter the statistics.
    """

    def __init__(self, params: Tree, buffers: Tree, train: bool, valid: Tensor | None = None) -> None:
        self._params, self._buffers, self._train, self._valid = params, buffers, train, valid
        self._new: dict[str, Tensor] = {}

    def __call__(self, name: str, x: Tensor) -> Tensor:
        mean, var = (self._buffers[f"{name}.running_{kind}"] for kind in ("mean", "var"))
        scale, shift = self._params[f"{name}.weight"], self._params[f"{name}.bias"]
        if self._train and self._valid is not None:
            y, mean, var = ops.padded_batch_norm(x, scale, shift, mean, var, self._valid)
        else:
            y, mean, var = ops.batch_norm(x, scale, shift, mean, var, self._train)
        self._new |= {f"{name}.running_mean": mean, f"{name}.running_var": var}
        return y

    def after(self) -> Tree:
        """The running statistics, in the layout of the given ones."""
        if not self._train:
            return self._buffers
        return self._buffers.like(torch.cat([self._new[name] for name in self._buffers.layout.names], dim=-1))
