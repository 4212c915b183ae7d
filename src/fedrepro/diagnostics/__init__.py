"""Diagnostics measure kept models. Each is one file. Importing this package, or any module in it, registers all of them."""

import importlib
import pkgutil
import sys

from fedrepro.diagnostics.diagnostic import DIAGNOSTICS

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

for _name in DIAGNOSTICS.names():
    _class = DIAGNOSTICS.get(_name)
    _file = sys.modules[_class.__module__].__file__
    if not getattr(vars(_class).get("__dataclass_params__"), "frozen", False):
        raise TypeError(f"{_file}: diagnostic {_name!r} needs @dataclass(frozen=True) below @DIAGNOSTICS.register")
    _metrics = getattr(_class, "metrics", None)
    if not isinstance(_metrics, tuple) or not _metrics:
        raise TypeError(f"{_file}: diagnostic {_name!r}: metrics = {_metrics!r}: list what it measures, metrics = ('{_name}',)")
