"""torch for modules that are also imported where nothing is computed: the first use of one of its attributes imports it.

A plan needs the names and arguments of methods, models and partitions. torch takes a second to import, so these modules write
`from fedrepro.lazy import Tensor, torch` instead of two imports. An attribute taken from `torch` stays in the stand-in, so each
later access finds it there, as in a module. Modules that only training imports import torch directly; so do modules that need
it for a decorator or a base class.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
else:

    def _lazy_module(name: str) -> ModuleType:
        """A module with the attributes of `name`. The first access to one of them imports `name`."""
        module = ModuleType(name)

        def load(attribute: str) -> Any:
            value = getattr(importlib.import_module(name), attribute)
            setattr(module, attribute, value)
            return value

        module.__getattr__ = load
        return module

    torch = _lazy_module("torch")

    class _Tensors(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, torch.Tensor)

    class Tensor(metaclass=_Tensors):
        """Stands for torch's class in annotations and in `isinstance`."""
