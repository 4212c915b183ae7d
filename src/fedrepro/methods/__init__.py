"""Methods, made of parts. Importing this package, or any module in it, loads those of all slots, which register the parts."""

import difflib
import importlib
import pkgutil
import sys

from fedrepro.methods import parts

for _slot in parts.SLOTS:
    _package = importlib.import_module(f"fedrepro.methods.{_slot}")
    for _module in pkgutil.iter_modules(_package.__path__):
        importlib.import_module(f"{_package.__name__}.{_module.name}")

for _name in parts.PARTS.names():
    _part = parts.PARTS.get(_name)
    if not getattr(vars(_part).get("__dataclass_params__"), "frozen", False):
        _file = sys.modules[_part.__module__].__file__
        raise TypeError(f"{_file}: part {_name!r} needs @dataclass(frozen=True) below @register")
    # With a misspelt hook the base class's hook would run, which is FedAvg.
    _hooks = [hook for base in _part.__mro__[1:] for hook in vars(base) if not hook.startswith("_")]
    for _attribute in vars(_part).keys() - {*_hooks} - {*_part.__dataclass_fields__}:
        if _near := difflib.get_close_matches(_attribute, [] if _attribute.startswith("_") else _hooks, n=1, cutoff=0.85):
            _file = sys.modules[_part.__module__].__file__
            raise TypeError(f"{_file}: part {_name!r}: {_attribute!r} is no hook; did you mean {_near[0]!r}? Else rename it")
