"""torch for modules that are also read where nothing is computed: it is imported when something of it is first used.

A plan needs the names and arguments of methods, models and partitions. torch takes a second to import, so these modules write
`from fedrepro.lazy import Tensor, torch` in the place of two imports. What is taken from `torch` stays in the stand-in: each
later access finds it there, as in a module. Modules that only training reads import torch itself; so do those that need it to
be read, for a decorator or a base class.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
    from torch import Tensor as Tensor
else:

    def _later(name: str) -> ModuleType:
        """A module whose attributes are those of `name`, which is imported with the first of them."""
        module = ModuleType(name)

        def load(attribute: str) -> Any:
            value = getattr(importlib.import_module(name), attribute)
            setattr(module, attribute, value)
            return value

        module.__getattr__ = load
        return module

    torch = _later("torch")

    class _Tensors(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, torch.Tensor)

    class Tensor(metaclass=_Tensors):
        """Stands for torch's class in annotations, and in `isinstance`."""
