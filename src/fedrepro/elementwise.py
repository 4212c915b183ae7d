"""Elementwise functions whose last bit does not depend on the processor, unlike torch's.

On a CPU torch calls MKL's vector library for these, which has different code for each processor and, unlike MKL's products, no
portable mode (measured). NumPy's square root is the processor's own, which IEEE 754 defines, and its logarithm is the same on
every processor that has its instructions (`fedrepro.arithmetic`). Without gradients.
"""

from collections.abc import Callable

import numpy as np

from fedrepro.lazy import Tensor, torch


def sqrt(x: Tensor) -> Tensor:
    """The rounded square root of each element, in the type of `x`."""
    return _by_numpy(x, np.sqrt, torch.sqrt)


def log(x: Tensor) -> Tensor:
    """The natural logarithm of each element, in the type of `x`; 0 gives minus infinity."""
    return _by_numpy(x, np.log, torch.log)


def _by_numpy(x: Tensor, on_cpu: Callable[[np.ndarray], np.ndarray], elsewhere: Callable[[Tensor], Tensor]) -> Tensor:
    if x.device.type != "cpu":
        return elsewhere(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return torch.from_numpy(np.asarray(on_cpu(x.numpy())))
