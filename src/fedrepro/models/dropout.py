"""Dropout with masks that are a function of their purpose. Srivastava et al., JMLR 2014.

A pass of a model gets a key, made from (seed, client, round), the local step and the pass within it. A hash of key and position
(SplitMix64: Steele, Lea, Flood, OOPSLA 2014) drops an element. So a client drops the same elements whether it trains alone or
among others, in any order, on a CPU or a GPU (our choice; a generator's state would depend on all of that).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

_BITS = 24
_GAMMA, _FIRST, _SECOND = (value - 2**64 for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_PASSES = 1024  # more than a step makes


class Keys:
    """Hands out one key for each pass, int64 [] or [K]. An engine calls `begin` before each local step."""

    def __init__(self, base: Tensor) -> None:
        """`base`: int64 [] or [K], one for each client's round, from its own random stream."""
        self._base, self._step, self._pass = base, torch.zeros_like(base), 0

    def begin(self, step: int | Tensor) -> None:
        """Marks the next passes as those of local step `step`, [] or one for each client."""
        # A number becomes a fill on the device. A copy of it would wait there for all earlier work.
        self._step = step if isinstance(step, Tensor) else torch.full_like(self._base, step)
        self._pass = 0

    def next(self) -> Tensor:
        """The key of this pass."""
        self._pass += 1
        return _mix(self._base + _mix(self._step * _PASSES + self._pass))


class JoinedKeys(Keys):
    """Keys of several passes that run as one, [K]: each comes from its own `Keys`."""

    def __init__(self, parts: Sequence[Keys]) -> None:
        self._parts = parts

    def next(self) -> Tensor:
        return torch.stack([part.next() for part in self._parts])


def dropout(x: Tensor, rate: float, key: Tensor, layer: int) -> Tensor:
    """x [B, ...] with each element set to 0 with probability `rate` in [0, 1), and the others multiplied by 1 / (1 - rate).

    key: int64 []; or x [K, B, ...] with keys [K]. `layer` distinguishes the dropout layers of a model.
    """
    client_dims = key.dim()
    count = x.shape[client_dims:].numel()
    position = torch.arange(1, count + 1, device=x.device) * _GAMMA
    bits = _mix(_mix(key + layer).unsqueeze(-1) + position)
    keep_mask = (bits >> (63 - _BITS) & (2**_BITS - 1)) >= round(rate * 2**_BITS)
    return x * keep_mask.view(x.shape).to(x.dtype) / (1 - rate)


def _mix(bits: Tensor) -> Tensor:
    """SplitMix64's finaliser: int64 products wrap around, and shifts bring in zeros."""
    bits = (bits ^ _shift(bits, 30)) * _FIRST
    bits = (bits ^ _shift(bits, 27)) * _SECOND
    return bits ^ _shift(bits, 31)


def _shift(bits: Tensor, places: int) -> Tensor:
    return (bits >> places) & (2 ** (64 - places) - 1)
